"""A sweep's folder: what was asked for, sealed on the first run, and a folder a trial.

work/sweeps/links-vs-kernel-demo/
  sweep.json         the sweep as it was begun
  trials/Traj-L13-s1/
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nowcastlab.errors import ConfigError
from nowcastlab.store.writer import write_atomically
from nowcastlab.sweep.design import Sweep, Trial
from nowcastlab.sweep.trial import FINISHED, read_result

SWEEP = "sweep.json"


class SweepFolder:
    def __init__(self, root: Path, sweep: Sweep) -> None:
        self.path = Path(root) / f"{sweep.name}-{sweep.scale}"
        self.sweep = sweep

    def trial(self, trial: Trial) -> Path:
        return self.path / "trials" / trial.key

    def missing(self) -> list[Trial]:
        """The trials without a good result."""
        return [trial for trial in self.sweep.trials if not self._finished(trial)]

    def _finished(self, trial: Trial) -> bool:
        result = read_result(self.trial(trial))
        return result is not None and result["status"] == FINISHED and result["identity"] == trial.identity

    @contextmanager
    def claim(self) -> Iterator[None]:
        """One driver at a time; and the sweep must be the one that was begun here."""
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.path / ".lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConfigError(f"This sweep is running already, in {self.path}. Wait for it to end.") from None
            self._settle()
            yield

    def _settle(self) -> None:
        path = self.path / SWEEP
        plain = self.sweep.to_plain()
        if path.exists():
            changed = _changes(json.loads(path.read_bytes()), plain)
            if changed:
                raise ConfigError(
                    f"The sweep was changed after it was begun in {self.path}: {'; '.join(changed[:5])}. "
                    "Put it back as it was to go on, or give the sweep another name."
                )
        write_atomically(path, json.dumps(plain, indent=1).encode())


def _changes(begun: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What decides results and differs. Paths may move, and the question may be put in better words."""
    changed = []
    before, after = begun["trials"], now["trials"]
    changed += [f"trial {key} is gone" for key in before if key not in after]
    changed += [f"trial {key} is new" for key in after if key not in before]
    for key in before:
        if key in after and before[key]["identity"] != after[key]["identity"]:
            changed.append(f"trial {key}: {', '.join(_different(before[key], after[key])) or 'its identity'}")
    if begun["comparisons"] != now["comparisons"]:
        changed.append("the comparisons")
    return changed


def _different(before: dict[str, Any], after: dict[str, Any], prefix: str = "") -> list[str]:
    names = []
    for name in before.keys() | after.keys():
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            names += _different(old, new, f"{prefix}{name}.")
        elif old != new and name not in ("identity", "store"):
            names.append(f"{prefix}{name} was {old}, now {new}")
    return sorted(names)
