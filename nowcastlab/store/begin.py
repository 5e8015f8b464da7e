"""Beginning a store, or going on with one that was begun before: what was asked for, checked, becomes its record.

`plan_record` says what is asked for, `begin` lays it out where there is nothing yet, `go_on` holds it against what is
there.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.store import record as record_file
from nowcastlab.store import schema
from nowcastlab.store.record import MINUTES_PER_DAY, SPLITS, DayRecord, Record, sha256
from nowcastlab.whole_files import write_atomically

MAY_DIFFER = ("source",)  # of the attributes: days that are added may come from a file of another name


def plan_record(
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
    return Record(
        grid=(int(grid[0]), int(grid[1])),
        interval_minutes=int(interval_minutes),
        km_per_pixel=float(km_per_pixel),
        title=title,
        excluded=sha256(excluded.tobytes()),
        attributes=dict(attributes),
        days=labelled((DayRecord(date=date) for date in dates), splits=splits, gauge_mm=gauge_mm),
    )


def labelled(
    days: Iterable[DayRecord], *, splits: Mapping[dt.date, str], gauge_mm: Mapping[dt.date, float]
) -> tuple[DayRecord, ...]:
    """The days with the splits and gauge totals that are given; the others keep theirs."""
    for date, split in splits.items():
        if split not in SPLITS:
            raise ConfigError(f"{date} has split {split!r}. The splits are: {', '.join(SPLITS)}.")
    return tuple(
        dataclasses.replace(
            day, split=splits.get(day.date, day.split), gauge_mm=_gauge(gauge_mm.get(day.date, day.gauge_mm))
        )
        for day in days
    )


def _gauge(millimetres: float | None) -> float | None:
    return None if millimetres is None else float(millimetres)


def begin(path: Path, plan: Record, excluded: NDArray[np.bool_]) -> None:
    """Lay out an empty store beside its place and move it there whole, so there is never half a store."""
    begun = path.with_name(f".{path.name}.begun")
    if begun.exists():
        shutil.rmtree(begun)  # left by a layout that was cut short; only the holder of the lock comes here
    schema.create(str(begun), plan, excluded)
    write_atomically(begun / record_file.FILE_NAME, plan.dumps())
    os.replace(begun, path)


def go_on(path: Path, plan: Record, *, splits: Mapping[dt.date, str], keep_excluded: bool) -> Record:
    """The record of a store begun before, extended by the days the plan adds. Anything else that changed is refused.

    Splits are compared where they are given: who gives none may set them afterwards.
    """
    begun = read_record(path)
    if keep_excluded:
        plan = dataclasses.replace(plan, excluded=begun.excluded)
    for name in ("grid", "interval_minutes", "km_per_pixel", "title"):
        before, now = getattr(begun, name), getattr(plan, name)
        if before != now:
            raise StoreError(f"{path} was begun with {name} {before}, now it is {now}. Choose another path.")
    _check_attributes(path, begun.attributes, plan.attributes)
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


def _check_attributes(path: Path, begun: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Days written under other attributes, such as units, would not be what the record says of them.

    Only what both state is compared: an older version stated less.
    """
    for name, now in json.loads(record_file.canonical(dict(asked))).items():  # as the record has them: no tuples
        if name in begun and name not in MAY_DIFFER and begun[name] != now:
            raise StoreError(
                f"{path} was begun with {name} {begun[name]}, now it is {now}: what is in it would stay as it "
                "is. Ask for what it was begun with, or choose another path."
            )


def read_record(path: Path) -> Record:
    file = path / record_file.FILE_NAME
    return Record.loads(file.read_bytes(), where=str(file))
