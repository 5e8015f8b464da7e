"""The driver's clerk: keeps MLflow up to date while trials run elsewhere.

It reads the trials' folders, which survive anything; so a tracking server that is away for a while loses nothing, and a
driver that dies leaves nothing that the next one cannot copy.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from nowcastlab.errors import TrackingError
from nowcastlab.sweep.design import Trial
from nowcastlab.sweep.record import key_of, record_of, result_of, status_of
from nowcastlab.tracking import Mirror
from nowcastlab.tracking.backend import reason, shown
from nowcastlab.training.history import FILE_NAME

EVERY_S, SELDOM_S = 1.0, 10.0  # between rounds: the first by rule, the second where much is to be copied
SHARE = 0.05  # of a core that rounds may take before they become seldom: the cores are the trials'
PATIENCE_S = 600.0  # for a tracking server at the end of a sweep
REFUSALS, REFUSALS_S = 3, 60.0  # of a server that answers: so many, for so long, and it will not take what it is given


class Folder(Protocol):
    """Of a sweep or a search: knows where a trial's folder is."""

    def trial(self, trial: Trial) -> Path: ...


class Clerk:
    def __init__(
        self,
        name: str,
        folder: Folder,
        mirror: Mirror,
        code_version: str,
        *,
        patience_s: float = PATIENCE_S,
        refusals_s: float = REFUSALS_S,
        say: Callable[[str], object] = print,
    ) -> None:
        self._name, self._folder, self._mirror, self._code = name, folder, mirror, code_version
        self._patience_s, self._refusals_s, self._say = patience_s, refusals_s, say
        self._pending: dict[str, Trial] = {}  # begun, and not yet copied to their end
        self._failed: dict[str, str] = {}  # trials that could not even write down why
        self._copied: dict[str, tuple[int, int]] = {}  # how far a running trial's history was copied
        self._stop = threading.Event()
        self._guard = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="clerk", daemon=True)
        self.trouble: dict[str, str] = {}  # of the last round, by trial

    def start(self) -> None:
        self._thread.start()

    def watch(self, trial: Trial) -> None:
        with self._guard:
            self._pending[trial.key] = trial

    def failed(self, trial: Trial, why: str) -> None:
        """Of a trial that left no result: its worker died once too often, or had nowhere to write."""
        with self._guard:
            self._failed[trial.key] = why
            self._pending[trial.key] = trial

    def finish(self, *, unfinished: str, status: str) -> None:
        """Copy what is left and close the sweep's own run; wait for the server if need be.

        Trials without an end get the status `unfinished`.
        """
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._until_done(lambda: self._round(unfinished=unfinished))
        self._until_done(lambda: self._closed(status))

    def _until_done(self, work: Callable[[], bool]) -> None:
        deadline, told = time.monotonic() + self._patience_s, False
        refusals: list[float] = []  # when they were
        while not work():
            if not told:
                self._say(self._waiting())
                told = True
            if self._mirror.answers():
                refusals.append(time.monotonic())
            refused = len(refusals) >= REFUSALS
            # not at once: what refuses may be a part of it that is away for a moment, as where artifacts are kept
            if time.monotonic() > deadline or (refused and refusals[-1] - refusals[0] >= self._refusals_s):
                raise TrackingError(self._complaint(refused=refused))
            time.sleep(min(2.0, self._patience_s))

    def _waiting(self) -> str:
        what, why = self._first_trouble()
        return (
            f"Waiting for the tracking store at {shown(self._mirror.uri)} to take {what} ({why}), for "
            f"{self._patience_s / 60:.0f} minutes at most. Ctrl-C is safe: the same command copies what is missing."
        )

    def _first_trouble(self) -> tuple[str, str]:
        about, why = next(iter(self.trouble.items()))
        return about + (f" and {len(self.trouble) - 1} more" if len(self.trouble) > 1 else ""), why

    def _complaint(self, *, refused: bool) -> str:
        about, why = self._first_trouble()
        what = f"did not take {about}" if refused else f"has not answered for {self._patience_s / 60:.0f} minutes"
        return (
            f"The tracking store at {shown(self._mirror.uri)} {what}: {why}. Nothing is lost: mend that and run the "
            "same command again, it copies what is missing."
        )

    def _work(self) -> None:
        pause_s = EVERY_S
        while not self._stop.wait(pause_s):
            before = time.thread_time()
            self._round(unfinished="RUNNING")
            pause_s = pause_after(time.thread_time() - before)

    def _round(self, *, unfinished: str) -> bool:
        """Copy every pending trial once; False if one could not be."""
        with self._guard:
            pending = list(self._pending.values())
        trouble: dict[str, str] = {}
        for trial in pending:
            try:
                self._copy(trial, unfinished)
            except Exception as error:
                # whatever a client far away raises: the folder still has it, and the next round tries again
                trouble[trial.key] = reason(error)
                if not self._mirror.answers():
                    break  # it is away; else it refused this one, which is no reason to keep the others from it
        self.trouble = trouble
        return not trouble

    def _copy(self, trial: Trial, unfinished: str) -> None:
        folder, key = self._folder.trial(trial), key_of(trial)
        with self._guard:
            failed = self._failed.get(trial.key)
        result, reached = result_of(folder, failed), _reached(folder)
        status, there = status_of(result, unfinished=unfinished), self._mirror.status(key)
        if status == "RUNNING" and there == (status, None) and self._copied.get(key) == reached:
            return  # most rounds, for most of many trials: a look at a file, not the reading of it
        if status == "RUNNING" or there != (status, result.get("error")):  # else all of it is there
            record = record_of(trial, folder, code_version=self._code, unfinished=unfinished, failed=failed)
            self._mirror.sync(record)
            self._copied[key] = reached
        if result:
            with self._guard:
                self._pending.pop(trial.key, None)
            self._copied.pop(key, None)

    def _closed(self, status: str) -> bool:
        try:
            self._mirror.close_sweep(status=status)
        except Exception as error:
            self.trouble = {f"the end of {self._name}": reason(error)}
            return False
        return True


def pause_after(cpu_s: float) -> float:
    """Seconds to wait after a round that took so much of a core."""
    return min(max(EVERY_S, cpu_s / SHARE), SELDOM_S)


def _reached(folder: Path) -> tuple[int, int]:
    """Changes whenever a trial reports."""
    try:
        history = (folder / FILE_NAME).stat()
    except FileNotFoundError:
        return (0, 0)
    return (history.st_size, history.st_mtime_ns)
