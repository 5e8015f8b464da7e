"""The one driver of a store: it commits the days that others may write.

    with StoreWriter.create("work/mine.zarr", dates=dates, grid=(480, 480), ...) as writer:
        for date in writer.missing:
            writer.commit(writer.write_day(date, minutes, frames))

Killed at any moment and run again, it goes on with the days that are missing. The record is the driver's alone, and a
second driver is refused.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import fcntl
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.store import record as record_file
from nowcastlab.store import schema
from nowcastlab.store.begin import begin, go_on, labelled, plan_record, read_record
from nowcastlab.store.day_writer import DayWriter, Receipt
from nowcastlab.store.record import Record, sha256
from nowcastlab.whole_files import write_atomically


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
        plan = plan_record(
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
                record = go_on(path, plan, splits=splits or {}, keep_excluded=excluded is None)
            else:
                if path.exists() and (not path.is_dir() or any(path.iterdir())):
                    raise StoreError(f"{path} is there already and is not a nowcastlab store. Choose another path.")
                begin(path, plan, exclusion)
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
            return cls(path, read_record(path), lock)
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
        days = labelled(self._record.days, splits=splits or {}, gauge_mm=gauge_mm or {})
        self._save(dataclasses.replace(self._record, days=days))

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


def _local(path: str | Path) -> Path:
    # A Path has lost a slash: it would make a folder `s3:` here.
    if str(path).partition("/")[0].endswith(":"):
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
