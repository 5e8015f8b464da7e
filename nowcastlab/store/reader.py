"""Reading a store: stamps in, frames out.

store = open_store("work/hko7.zarr")
frames = store.read(start + 6 * np.arange(25))
valid = valid_pixels(frames.pixels, store.excluded) & frames.present[:, None, None]
"""

from __future__ import annotations

import datetime as dt
import functools
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, NamedTuple

import fsspec
import numpy as np
import zarr
from numpy.typing import ArrayLike, NDArray

from nowcastlab.errors import ConfigError, CorruptStore, StoreError
from nowcastlab.store import record as record_file
from nowcastlab.store.record import SPLITS, Record
from nowcastlab.store.schema import DAMAGE, slot_of, unreadable
from nowcastlab.store.shards import ShardReader


class Frames(NamedTuple):
    pixels: NDArray[np.uint8]  # (n, y, x); a missing frame is zeros
    present: NDArray[np.bool_]  # (n,)


@dataclass(frozen=True, kw_only=True)
class Day:
    date: dt.date
    split: str
    gauge_mm: float | None
    frames: int


class Store:
    """An open store. Holds no open files to speak of, may be pickled, and sees what was committed when it opened."""

    def __init__(self, url: str, *, check_sizes: bool = True) -> None:
        self.url = str(url)
        try:
            self._filesystem, self._root = fsspec.core.url_to_fs(self.url)
            text = self._filesystem.cat_file(f"{self._root}/{record_file.FILE_NAME}")
        except FileNotFoundError:
            raise StoreError(
                f"No store at {self.url}: there is no {record_file.FILE_NAME}. "
                "Build one with `python -m data_pipeline synth` or `ingest`."
            ) from None
        except (ValueError, ImportError, OSError) as error:
            raise StoreError(f"Cannot reach {self.url}: {error}") from None
        self._record = Record.loads(text, where=f"{self.url}/{record_file.FILE_NAME}")
        self._shards = ShardReader(self._filesystem, self._root, self._record)
        if check_sizes:
            self._shards.check_sizes()

    def __reduce__(self) -> tuple[Any, ...]:
        return Store, (self.url,)

    def __repr__(self) -> str:
        return f"Store({self.url!r}, {len(self.minutes())} frames of {self.grid[0]}x{self.grid[1]})"

    @property
    def grid(self) -> tuple[int, int]:
        return self._record.grid

    @property
    def interval_minutes(self) -> int:
        return self._record.interval_minutes

    @property
    def km_per_pixel(self) -> float:
        return self._record.km_per_pixel

    @property
    def title(self) -> str:
        return self._record.title

    @property
    def attributes(self) -> dict[str, Any]:
        return dict(self._record.attributes)

    @property
    def record(self) -> Record:
        return self._record

    @functools.cached_property
    def digest(self) -> str:
        """Identifies the content: pixels, stamps, exclusion map, splits, gauges."""
        return self._record.digest

    @functools.cached_property
    def excluded(self) -> NDArray[np.bool_]:
        """The pixels that are never scored."""
        try:
            excluded = np.asarray(zarr.open_group(self.url, mode="r")["excluded"][...], bool)  # type: ignore[index]
        except DAMAGE as error:
            raise unreadable(self.url, "exclusion map", error) from None
        if record_file.sha256(excluded.tobytes()) != self._record.excluded:
            raise CorruptStore(
                f"The exclusion map of {self.url} is not the one that was committed: it is damaged, or whoever wrote a "
                f"new one was cut short. Make it anew with `python -m data_pipeline denoise {self.url} --fresh`."
            )
        return excluded

    @property
    def days(self) -> tuple[Day, ...]:
        """The committed days, in order."""
        return tuple(
            Day(date=day.date, split=day.split, gauge_mm=day.gauge_mm, frames=len(day.minutes))
            for day in self._record.days
            if day.content is not None
        )

    def minutes(self, split: str | None = None) -> NDArray[np.int64]:
        """Stamps of the frames there are, in minutes since 1970-01-01, sorted."""
        _check_split(split)
        stamps, splits = self._stamps
        return stamps if split is None else stamps[splits == SPLITS.index(split)]

    @functools.cached_property
    def _stamps(self) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        stamps = [np.array(day.minutes, np.int64) + day.first_minute for day in self._record.days]
        splits = [np.full(len(day.minutes), SPLITS.index(day.split), np.int8) for day in self._record.days]
        return np.concatenate([np.empty(0, np.int64), *stamps]), np.concatenate([np.empty(0, np.int8), *splits])

    @functools.cached_property
    def _places(self) -> dict[int, tuple[int, int]]:
        """Stamp -> (row of the day, slot in its shard)."""
        places: dict[int, tuple[int, int]] = {}
        for row, day in enumerate(self._record.days):
            stamps = np.array(day.minutes, np.int64)
            slots = slot_of(stamps, self.interval_minutes).tolist()
            places.update(zip((stamps + day.first_minute).tolist(), ((row, slot) for slot in slots), strict=True))
        return places

    def read(self, minutes: ArrayLike, *, split: str | None = None, out: NDArray[np.uint8] | None = None) -> Frames:
        """The frames with these stamps, in this order; one that is missing is zeros, and says so in `present`.

        split   what belongs to another split is missing: a window may run past the end of its days into a day that is
                not for it
        out     of shape (n, y, x), saves allocating memory for every window
        """
        _check_split(split)
        wanted = np.asarray(minutes, np.int64).tolist()
        pixels = np.empty((len(wanted), *self.grid), np.uint8) if out is None else out
        by_day: dict[int, list[tuple[int, int]]] = defaultdict(list)
        present = np.zeros(len(wanted), bool)
        for i, stamp in enumerate(wanted):
            place = self._places.get(stamp)
            if place is None or (split is not None and self._record.days[place[0]].split != split):
                pixels[i] = 0
            else:
                present[i] = True
                by_day[place[0]].append((place[1], i))
        for row, frames in by_day.items():
            self._shards.read(row, [slot for slot, _ in frames], [pixels[i] for _, i in frames])
        return Frames(pixels, present)

    def read_day(self, date: dt.date) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """The stamps and pixels of the frames of one day."""
        for day in self._record.days:
            if day.date == date and day.content is not None:
                stamps = np.array(day.minutes, np.int64) + day.first_minute
                return stamps, self.read(stamps).pixels
        covered = self.days
        span = f"it covers {covered[0].date} to {covered[-1].date}" if covered else "it is empty"
        raise StoreError(f"{self.url} has no frames on {date}; {span}.")

    def read_empty_slots(self, date: dt.date) -> None:
        """Verify what nobody reads: the slots of a day that hold no frame. They are zeros, and have checksums too."""
        row = next(row for row, day in enumerate(self._record.days) if day.date == date)
        used = slot_of(np.array(self._record.days[row].minutes, np.int64), self.interval_minutes)
        frame = np.empty(self.grid, np.uint8)
        for slot in np.setdiff1d(np.arange(self._record.frames_per_day), used).tolist():
            self._shards.read(row, [slot], [frame])
            if frame.any():
                raise self._shards.damaged(row, "there is a frame where the record knows of none")


def _check_split(split: str | None) -> None:
    if split is not None and split not in SPLITS:
        raise ConfigError(f"Unknown split {split!r}. The splits are: {', '.join(SPLITS)}.")


def open_store(url: str) -> Store:
    """Open a store for reading, from a local path or any URL that fsspec knows."""
    return Store(url)
