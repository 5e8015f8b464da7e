"""Writing a store: one driver that commits, any number of processes that write days.

    with StoreWriter.create("work/mine.zarr", dates=dates, grid=(480, 480), ...) as writer:
        for date in writer.missing:
            writer.commit(writer.write_day(date, minutes, frames))

Killed at any moment and run again, it goes on with the days that are missing. A day is one shard, so days are written
side by side without locks; the record is the driver's alone, and a second driver is refused.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import fcntl
import itertools
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import zarr
from numpy.typing import ArrayLike, NDArray

from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.store import record as record_file
from nowcastlab.store import schema
from nowcastlab.store.record import MINUTES_PER_DAY, SPLITS, DayRecord, Record, content_hash, sha256


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


class StoreWriter:
    """The one driver of a store: it alone commits days, and sets splits, totals and the exclusion map."""

    def __init__(self, path: Path, record: Record, lock: int) -> None:
        self.path = path
        self._record = record
        self._lock = lock
        self.day_writer = DayWriter(
            path=str(path),
            rows={day.date: row for row, day in enumerate(record.days)},
            grid=record.grid,
            interval_minutes=record.interval_minutes,
        )

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        dates: Iterable[dt.date],
        grid: tuple[int, int],
        interval_minutes: int,
        km_per_pixel: float,
        title: str,
        excluded: NDArray[np.bool_] | None = None,
        splits: Mapping[dt.date, str] | None = None,
        gauge_mm: Mapping[dt.date, float] | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> StoreWriter:
        """Begin a store, or go on with one that was begun with the same arguments (days may be added at its end)."""
        exclusion = np.zeros(grid, bool) if excluded is None else np.asarray(excluded, bool)
        plan = _plan(
            dates=dates,
            grid=grid,
            interval_minutes=interval_minutes,
            km_per_pixel=km_per_pixel,
            title=title,
            excluded=exclusion,
            splits=splits or {},
            gauge_mm=gauge_mm or {},
            attributes=attributes or {},
        )
        path = _local(path)
        lock = _take_lock(path)
        try:
            if (path / record_file.FILE_NAME).exists():
                record = _go_on(path, plan, splits=splits or {}, keep_excluded=excluded is None)
            else:
                if path.exists() and (not path.is_dir() or any(path.iterdir())):
                    raise StoreError(f"{path} is there already and is not a nowcastlab store. Choose another path.")
                _begin(path, plan, exclusion)
                record = plan
            return cls(path, record, lock)
        except BaseException:
            os.close(lock)
            raise

    @classmethod
    def open(cls, path: str | Path) -> StoreWriter:
        """Open a store that is there, to change its exclusion map or splits."""
        path = _local(path)
        if not (path / record_file.FILE_NAME).exists():
            raise StoreError(f"No store at {path}. Build one with `python -m data_pipeline synth` or `ingest`.")
        lock = _take_lock(path)
        try:
            return cls(path, _read_record(path), lock)
        except BaseException:
            os.close(lock)
            raise

    @property
    def committed(self) -> tuple[dt.date, ...]:
        return tuple(day.date for day in self._record.days if day.content is not None)

    @property
    def missing(self) -> tuple[dt.date, ...]:
        return tuple(day.date for day in self._record.days if day.content is None)

    def write_day(self, date: dt.date, minutes: ArrayLike, frames: NDArray[np.uint8]) -> Receipt:
        return self.day_writer.write(date, minutes, frames)

    def commit(self, receipt: Receipt) -> None:
        """From now on readers see the day."""
        row = self.day_writer.rows[receipt.date]
        days = list(self._record.days)
        days[row] = dataclasses.replace(
            days[row], minutes=receipt.minutes, shard_bytes=receipt.shard_bytes, content=receipt.content
        )
        self._save(dataclasses.replace(self._record, days=tuple(days)))

    def set_excluded(self, excluded: NDArray[np.bool_]) -> None:
        excluded = np.asarray(excluded, bool)
        if excluded.shape != self._record.grid:
            raise ConfigError(f"The exclusion map is {excluded.shape}, the grid {self._record.grid}.")
        # A reader between these two lines would find a map that its record does not vouch for, and say so.
        schema.write_excluded(schema.open_for_writing(self.path), excluded)
        self._save(dataclasses.replace(self._record, excluded=sha256(excluded.tobytes())))

    def set_labels(
        self, *, splits: Mapping[dt.date, str] | None = None, gauge_mm: Mapping[dt.date, float] | None = None
    ) -> None:
        """Set splits and gauge totals of days, once they are known (a total may come out of the frames themselves)."""
        splits, gauge_mm = splits or {}, gauge_mm or {}
        _check_splits(splits)
        days = [
            dataclasses.replace(
                day, split=splits.get(day.date, day.split), gauge_mm=_gauge(gauge_mm.get(day.date, day.gauge_mm))
            )
            for day in self._record.days
        ]
        self._save(dataclasses.replace(self._record, days=tuple(days)))

    def close(self) -> None:
        """Bring the labels that other tools read up to date, and let the next writer in."""
        try:
            schema.write_labels(schema.open_for_writing(self.path), self._record)
        finally:
            os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _save(self, record: Record) -> None:
        write_atomically(self.path / record_file.FILE_NAME, record.dumps())
        self._record = record


def _plan(
    *,
    dates: Iterable[dt.date],
    grid: tuple[int, int],
    interval_minutes: int,
    km_per_pixel: float,
    title: str,
    excluded: NDArray[np.bool_],
    splits: Mapping[dt.date, str],
    gauge_mm: Mapping[dt.date, float],
    attributes: Mapping[str, Any],
) -> Record:
    """The record of a store that is still empty, every argument checked."""
    dates = list(dates)
    if not dates:
        raise ConfigError("A store needs at least one day.")
    if any(b <= a for a, b in itertools.pairwise(dates)):
        raise ConfigError("The days of a store must rise and not repeat.")
    if interval_minutes < 1 or MINUTES_PER_DAY % interval_minutes:
        raise ConfigError(f"`interval_minutes` (={interval_minutes}) must divide a day of {MINUTES_PER_DAY} minutes.")
    if min(grid) < 1 or excluded.shape != tuple(grid):
        raise ConfigError(f"The exclusion map is {excluded.shape}, the grid {tuple(grid)}.")
    if not km_per_pixel > 0:
        raise ConfigError(f"`km_per_pixel` (={km_per_pixel}) must be positive.")
    _check_splits(splits)
    days = (DayRecord(date=date, split=splits.get(date, "none"), gauge_mm=_gauge(gauge_mm.get(date))) for date in dates)
    return Record(
        grid=(int(grid[0]), int(grid[1])),
        interval_minutes=int(interval_minutes),
        km_per_pixel=float(km_per_pixel),
        title=title,
        excluded=sha256(excluded.tobytes()),
        attributes=dict(attributes),
        days=tuple(days),
    )


def _check_splits(splits: Mapping[dt.date, str]) -> None:
    for date, split in splits.items():
        if split not in SPLITS:
            raise ConfigError(f"{date} has split {split!r}. The splits are: {', '.join(SPLITS)}.")


def _gauge(millimetres: float | None) -> float | None:
    return None if millimetres is None else float(millimetres)


def _begin(path: Path, plan: Record, excluded: NDArray[np.bool_]) -> None:
    """Lay out an empty store beside its place and move it there whole, so there is never half a store."""
    begun = path.with_name(f".{path.name}.begun")
    if begun.exists():
        shutil.rmtree(begun)  # left by a layout that was cut short; only the holder of the lock comes here
    schema.create(str(begun), plan, excluded)
    write_atomically(begun / record_file.FILE_NAME, plan.dumps())
    os.replace(begun, path)


def _go_on(path: Path, plan: Record, *, splits: Mapping[dt.date, str], keep_excluded: bool) -> Record:
    """The record of a store begun before, extended by the days the plan adds. Anything else that changed is refused.

    Splits are compared where they are given: who gives none may set them afterwards.
    """
    begun = _read_record(path)
    if keep_excluded:
        plan = dataclasses.replace(plan, excluded=begun.excluded)
    for name in ("grid", "interval_minutes", "km_per_pixel", "title"):
        before, now = getattr(begun, name), getattr(plan, name)
        if before != now:
            raise StoreError(f"{path} was begun with {name} {before}, now it is {now}. Choose another path.")
    if begun.excluded != plan.excluded:
        raise StoreError(
            f"{path} has another exclusion map than asked for now: it was denoised, or what the map is made from "
            "changed. Choose another path, and denoise once all days are in."
        )
    moved = [day for day in begun.days if splits.get(day.date, day.split) != day.split]
    if moved:
        first = moved[0]
        raise StoreError(
            f"{path} has {first.date} in its {first.split} split, now it is asked for in {splits[first.date]} "
            f"({len(moved)} days differ). Ask for the splits it was begun with, or choose another path."
        )
    before_days = [day.date for day in begun.days]
    if before_days != [day.date for day in plan.days[: len(before_days)]]:
        changed = sorted(set(before_days) ^ {day.date for day in plan.days})
        raise StoreError(
            f"{path} holds other days than asked for now ({', '.join(map(str, changed[:5]))} ...). Days can only be "
            "added after the last one; for anything else choose another path."
        )
    added = plan.days[len(before_days) :]
    record = dataclasses.replace(begun, days=(*begun.days, *added))
    if added:
        schema.extend(schema.open_for_writing(path), record)
        write_atomically(path / record_file.FILE_NAME, record.dumps())
    return record


def _read_record(path: Path) -> Record:
    file = path / record_file.FILE_NAME
    return Record.loads(file.read_bytes(), where=str(file))


def _local(path: str | Path) -> Path:
    if "://" in str(path):
        raise ConfigError(f"A store is written to a local path, not to {path}. Build it here, then copy the folder.")
    return Path(path)


def _take_lock(path: Path) -> int:
    """The kernel frees the lock when its holder dies, however it dies."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreError(f"Cannot write a store at {path}: {error.strerror}. Choose another path.") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise StoreError(f"{path} is being written by another process. Wait for it to end.") from None
    return lock


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file in one step: whoever reads it finds the old content or the new, and the new is on disk."""
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _synced_size(path: Path) -> int:
    """Force a file to disk; its size."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        return os.fstat(file.fileno()).st_size
