"""How long a trial was worked on, all attempts at it together.

    clock.json    {"before_s": 812.4, "began": 1718000900.0}

A killed attempt cannot say when it ended: it worked from its start to the last thing it wrote. The next one reads that
off the folder before it writes anything itself. The time in between, a night perhaps, does not count.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from nowcastlab.whole_files import write_atomically

FILE_NAME = "clock.json"


class Stopwatch:
    """Started once an attempt, by whoever has the folder to themselves."""

    def __init__(self, folder: Path) -> None:
        self._before_s = seconds_before(folder)
        self._began = time.time()
        write_atomically(folder / FILE_NAME, json.dumps({"before_s": self._before_s, "began": self._began}).encode())

    @property
    def seconds(self) -> float:
        """Of this attempt, and of those before it."""
        return self._before_s + time.time() - self._began


def seconds_before(folder: Path) -> float:
    """That attempts which have ended worked on the trial of this folder."""
    try:
        clock = json.loads((folder / FILE_NAME).read_bytes())
    except (FileNotFoundError, ValueError):
        return 0.0
    last_written = max(path.stat().st_mtime for path in folder.rglob("*") if path.is_file())
    return float(clock["before_s"] + max(0.0, last_written - clock["began"]))
