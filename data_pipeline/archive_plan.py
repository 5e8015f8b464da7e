"""What of an archive will be read: its days, their splits and one grid, decided before the first frame is decoded."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data_pipeline import archive_layout as layout
from data_pipeline.archive_day import Problem
from data_pipeline.png_frame import png_grid
from nowcastlab.errors import ConfigError, StoreError

FRAMES_LOOKED_AT = 500  # for their size, two days or so: an odd frame at the beginning does not decide it


@dataclass(frozen=True, kw_only=True)
class Plan:
    root: Path
    dates: list[dt.date]
    splits: dict[dt.date, str]
    gauge_mm: dict[dt.date, float]
    excluded: NDArray[np.bool_]
    problems: list[Problem]


def make_plan(root: Path, *, lists: Path | None, exclude: Path | None, size: int | None) -> Plan:
    """The days to read: those the lists name, or all there are where there is no list."""
    if not (root / layout.FRAMES_FOLDER).is_dir():
        raise StoreError(f"{root} has no folder {layout.FRAMES_FOLDER}/: not an archive in the HKO-7 layout.")
    there = set(_days_on_disk(root))
    splits, gauges = _listed(root if lists is None else lists, needed=lists is not None)
    problems = []
    if splits:
        problems += [Problem(kind="missing-day", day=str(date)) for date in sorted(set(splits) - there)]
        problems += [Problem(kind="unlisted-day", day=str(date)) for date in sorted(there - set(splits))]
    dates = sorted(there & set(splits)) if splits else sorted(there)
    if not dates:
        raise StoreError(f"{root} holds no frames{' of a listed day' if splits else ''}.")
    excluded = _exclusion(root, dates, exclude=exclude, size=size)
    return Plan(root=root, dates=dates, splits=splits, gauge_mm=gauges, excluded=excluded, problems=problems)


def _listed(folder: Path, *, needed: bool) -> tuple[dict[dt.date, str], dict[dt.date, float]]:
    """The split and the gauge total of every day that a list names."""
    paths = layout.find_day_lists(folder)
    if needed and not paths:
        raise StoreError(
            f"{folder} has no list of days: --lists looks for NAME_rainy_{{{','.join(layout.SPLITS)}}}_days.txt in it. "
            "Name the folder that holds them, or leave --lists out to read all days, in no split."
        )
    splits: dict[dt.date, str] = {}
    gauges: dict[dt.date, float] = {}
    for split, path in paths.items():
        for date, millimetres in layout.read_day_list(path).items():
            if date in splits:
                raise StoreError(f"{date} is listed for {splits[date]} and for {split}. A day belongs to one split.")
            splits[date], gauges[date] = split, millimetres
    return splits, gauges


def _days_on_disk(root: Path) -> Iterable[dt.date]:
    """The days that have a folder with anything in it."""
    for folder in (root / layout.FRAMES_FOLDER).glob("[0-9][0-9][0-9][0-9]/[0-9][0-9]/[0-9][0-9]"):
        year, month, day = (int(part) for part in folder.parts[-3:])
        try:
            date = dt.date(year, month, day)
        except ValueError:
            continue
        if any(folder.iterdir()):
            yield date


# --- the grid --------------------------------------------------------------------------------------------------------


def _exclusion(root: Path, dates: list[dt.date], *, exclude: Path | None, size: int | None) -> NDArray[np.bool_]:
    """The map of what is never scored, on the frames' own grid: on another one every frame would be a bad frame."""
    beside = root / layout.EXCLUSION_FILE
    path = exclude or (beside if beside.exists() else None)
    grids = _grids(root, dates)
    height, width = max(grids, key=lambda grid: grids[grid])
    if path is None:
        excluded = np.zeros((size, size) if size else (height, width), bool)
        asked, mend = f"`--size` is {size}", "Leave --size out to take theirs."
    else:
        excluded = layout.read_exclusion(path).excluded
        if size is not None and excluded.shape != (size, size):
            raise ConfigError(f"`--size` is {size}, but the exclusion map {path} is {excluded.shape}.")
        asked = f"the exclusion map {path} is {excluded.shape[0]}x{excluded.shape[1]}"
        mend = "Give the map made for them with --exclude, or take this one away to have none."
    if excluded.shape not in grids:
        raise ConfigError(f"The frames of {root} are {height}x{width}, but {asked}. {mend}")
    return excluded


def _grids(root: Path, dates: list[dt.date]) -> Counter[tuple[int, int]]:
    """How many of the first readable frames have which grid; their headers say."""
    grids: Counter[tuple[int, int]] = Counter()
    first_wrong = ""
    for path in (path for date in dates for path in sorted(layout.frames_folder(root, date).glob("RAD*.png"))):
        try:
            grids[png_grid(path)] += 1
        except (StoreError, OSError) as error:
            first_wrong = first_wrong or f" The first, {path.relative_to(root)}: {error}."
        if grids.total() == FRAMES_LOOKED_AT:
            break
    if not grids:
        raise StoreError(f"{root} holds no RADyymmddHHMM00.png that can be read.{first_wrong}")
    return grids
