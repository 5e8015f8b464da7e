"""One worker at a time on a trial, and a line in its folder for each that got as far as a report.

attempts.jsonl
  {"began": 1718000000.0, "machine": "gpu-3", "pid": 4711, "steps_before": 0, "first_step": 1}
  {"began": 1718000900.0, "machine": "gpu-1", "pid": 1234, "steps_before": 213, "first_step": 201}

So a resumed trial says how much it had to do again: from its first step to what was there before.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nowcastlab.training import read_history

FILE_NAME = "attempts.jsonl"
LOCK = ".trial.lock"
WAIT_S = 60.0  # for the worker before, which may outlive its driver by a moment
Report = Callable[[dict[str, Any]], object]


@contextmanager
def attempt(folder: Path, report: Report) -> Iterator[Report]:
    """The folder to oneself, and `report` made to note where this attempt went on.

    Raises OSError where another worker does not let go: it is not the trial that is wrong then.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK, "a") as lock:
        _take(lock.fileno(), folder)
        before = read_history(folder)
        facts = {"began": time.time(), "machine": platform.node(), "pid": os.getpid()}
        facts["steps_before"] = before[-1]["step"] if before else 0
        noted = False

        def note_and_report(metrics: dict[str, Any]) -> object:
            nonlocal noted
            if not noted and "step" in metrics:
                _append_line(folder / FILE_NAME, json.dumps({**facts, "first_step": metrics["step"]}))
                noted = True
            return report(metrics)

        yield note_and_report


def read_attempts(folder: Path) -> list[dict[str, Any]]:
    """The attempts at a trial so far, in order. A line cut by a crash is left out."""
    path = folder / FILE_NAME
    found = []
    for line in path.read_text().splitlines() if path.is_file() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def _append_line(path: Path, line: str) -> None:
    """On a line of its own, also after one that was cut short."""
    cut = path.is_file() and not path.read_bytes().endswith(b"\n")
    with open(path, "a") as file:
        file.write("\n" * cut + line + "\n")


def _take(lock: int, folder: Path) -> None:
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError(f"Another worker is still at this trial, in {folder}.") from None
            time.sleep(0.2)
