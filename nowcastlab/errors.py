"""Everything a user can mend, as one small tree.

    NowcastlabError        exit 1   the command prints its text, never a traceback
    ├── ConfigError        exit 2   a value that cannot work, alone or beside another
    ├── StoreError         exit 3   a store or file that is not there, not ours, busy, or cannot be written
    │   └── CorruptStore   exit 3   bytes that are not what was written
    ├── TrainingError      exit 4   a run that went wrong on its own: divergence, no usable checkpoint
    ├── ProtocolError      exit 4   a forecaster that broke the benchmark's rules, as by reaching for the future
    ├── TrackingError      exit 5   the tracking server or database does not answer, or has no such sweep
    └── ReportError        exit 6   runs that must not stand in one table

Messages name the value and the next step.
"""


class NowcastlabError(Exception):
    exit_code = 1


class ConfigError(NowcastlabError, ValueError):
    exit_code = 2


class StoreError(NowcastlabError):
    exit_code = 3


class CorruptStore(StoreError):
    """Carries the day whose data is damaged, where the damage belongs to one."""

    def __init__(self, message: str, *, day: str | None = None) -> None:
        super().__init__(message)
        self.day = day


class TrainingError(NowcastlabError):
    exit_code = 4


class ProtocolError(NowcastlabError):
    exit_code = 4


class TrackingError(NowcastlabError):
    exit_code = 5


class ReportError(NowcastlabError):
    exit_code = 6
