"""How long a trial was worked on, all attempts at it together.

    clock.json    {"seconds": 812.4}

A killed attempt cannot say when it ended, so the clock is written down while it works: what is lost is half a minute at
most. The time between two attempts, a night perhaps, does not count.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from nowcastlab.whole_files import write_atomically

FILE_NAME = "clock.json"
EVERY_S = 30.0


class Stopwatch:
    """Runs while it is entered: once an attempt, by whoever has the folder to themselves."""

    def __init__(self, folder: Path, *, every_s: float = EVERY_S) -> None:
        self._path = folder / FILE_NAME
        self._every_s = every_s
        self._before_s = seconds_before(folder)
        self._began = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="stopwatch", daemon=True)

    @property
    def seconds(self) -> float:
        """Of this attempt, and of those before it."""
        return self._before_s + time.monotonic() - self._began

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._write()

    def _work(self) -> None:
        while not self._stop.wait(self._every_s):
            self._write()

    def _write(self) -> None:
        with suppress(OSError):  # a full disk is for the trial itself to meet and to tell
            write_atomically(self._path, json.dumps({"seconds": self.seconds}).encode())


def seconds_before(folder: Path) -> float:
    """That attempts which have ended worked on the trial of this folder."""
    try:
        return float(json.loads((folder / FILE_NAME).read_bytes())["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0
