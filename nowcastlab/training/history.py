"""What a run reported, a line of JSON for each reported step, each step once.

A run that resumes reports some steps again, with the same values; the file keeps the first. A line that was cut by a
crash is dropped when the file is opened.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

FILE_NAME = "history.jsonl"


def read_history(folder: Path | str) -> list[dict[str, Any]]:
    """The reports of a run so far, rising in step; of one that is running too."""
    path = Path(folder) / FILE_NAME
    return _sound_lines(path.read_bytes())[0] if path.is_file() else []


class History:
    def __init__(self, folder: Path) -> None:
        path = folder / FILE_NAME
        records, sound_bytes = _sound_lines(path.read_bytes()) if path.is_file() else ([], 0)
        self.last_step = records[-1]["step"] if records else 0
        self._file = path.open("ab")
        self._file.truncate(sound_bytes)

    def append(self, record: Mapping[str, Any]) -> None:
        if record["step"] > self.last_step:
            self._file.write(json.dumps(record).encode() + b"\n")
            self._file.flush()
            self.last_step = record["step"]

    def sync(self) -> None:
        """On disk before the checkpoint that comes after it, so that no step of a resumed run is missing here."""
        os.fsync(self._file.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def _sound_lines(content: bytes) -> tuple[list[dict[str, Any]], int]:
    """The records up to the first line that is not one, and how many bytes they take."""
    records: list[dict[str, Any]] = []
    sound_bytes = 0
    for line in content.splitlines(keepends=True):
        try:
            record = json.loads(line)
            rises = record["step"] > (records[-1]["step"] if records else 0)
        except (ValueError, TypeError, KeyError):
            break
        if not line.endswith(b"\n") or not rises:
            break
        records.append(record)
        sound_bytes += len(line)
    return records, sound_bytes
