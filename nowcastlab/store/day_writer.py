"""Writing one day's frames: a day is one shard, so days are written side by side, in any process, without locks."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import zarr
from numpy.typing import ArrayLike, NDArray

from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.store import schema
from nowcastlab.store.record import MINUTES_PER_DAY, DayRecord, content_hash


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """Says that a day's shard lies on disk in full. Nobody sees it until it is committed."""

    date: dt.date
    minutes: tuple[int, ...]
    shard_bytes: int
    content: str


@dataclass(frozen=True, kw_only=True)
class DayWriter:
    """Writes days of one store from any process; small enough to send along with a task."""

    path: str
    rows: Mapping[dt.date, int]
    grid: tuple[int, int]
    interval_minutes: int

    def write(self, date: dt.date, minutes: ArrayLike, frames: NDArray[np.uint8]) -> Receipt:
        """Write a day's shard: frames (n, y, x) with their stamps in minutes since 1970-01-01, rising."""
        stamps = np.asarray(minutes, np.int64)
        if date not in self.rows:
            raise ConfigError(f"{date} is not among the days of {self.path}.")
        midnight = DayRecord(date=date).first_minute
        of_day = stamps - midnight
        if frames.dtype != np.uint8 or frames.shape != (len(stamps), *self.grid):
            raise ConfigError(
                f"{date}: frames are {frames.dtype} {frames.shape}, "
                f"but {self.path} takes uint8 {(len(stamps), *self.grid)}."
            )
        if len(stamps) and (of_day.min() < 0 or of_day.max() >= MINUTES_PER_DAY or (np.diff(of_day) <= 0).any()):
            raise ConfigError(f"{date}: stamps must rise, and lie within the day.")
        slots = schema.slot_of(of_day, self.interval_minutes)
        if len(np.unique(slots)) != len(slots):
            raise ConfigError(f"{date}: two frames claim one {self.interval_minutes}-minute slot.")

        per_day = MINUTES_PER_DAY // self.interval_minutes
        shard = np.zeros((per_day, *self.grid), np.uint8)
        shard[slots] = frames
        row = self.rows[date]
        try:
            pixels = schema.open_for_writing(self.path)["pixels"]
            assert isinstance(pixels, zarr.Array)
            pixels.with_config({"write_empty_chunks": True})[row * per_day : (row + 1) * per_day] = shard
            shard_bytes = _synced_size(Path(self.path) / "pixels" / "c" / str(row) / "0" / "0")
        except OSError as error:  # a full disk, as a rule
            raise StoreError(
                f"Cannot write {date} to {self.path}: {error.strerror or error}. Mend that and run the same again: it "
                "goes on with the days that are missing."
            ) from error
        return Receipt(
            date=date,
            minutes=tuple(of_day.tolist()),
            shard_bytes=shard_bytes,
            content=content_hash(stamps, frames),
        )


def _synced_size(path: Path) -> int:
    """Force a file to disk; its size."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        return os.fstat(file.fileno()).st_size
