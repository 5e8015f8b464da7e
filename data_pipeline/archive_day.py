"""One day of an archive, decoded: its frames, and every problem on the way to them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from data_pipeline import archive_layout as layout
from data_pipeline.png_frame import read_png
from nowcastlab.errors import StoreError
from nowcastlab.stamps import clock
from nowcastlab.store import slot_of
from nowcastlab.units import valid_pixels

# What can be found, and what became of the frame.
KINDS = {
    "missing-day": "a listed day without any frame; left out",
    "unlisted-day": "a day with frames that no list names; left out",
    "missing-frame": "no file for this time; flagged as missing",
    "off-grid": "a stamp between two regular times; kept under its own stamp",
    "same-slot": "two stamps nearest to one regular time; the later one left out",
    "stray-file": "a name that holds no stamp of this day; left out",
    "bad-frame": "a PNG that is cut short, damaged, or of another size or type; flagged as missing",
    "bad-mask": "a mask that cannot be read; the derived one is used",
    "mask-disagrees": "a mask that differs from the derived one; the derived one is used",
}


@dataclass(frozen=True, kw_only=True)
class Problem:
    kind: str
    day: str
    file: str | None = None
    detail: str = ""

    def as_dict(self) -> dict[str, str | None]:
        return asdict(self)


Report = Callable[[str, Path | None, str], None]


class ArchiveDay(NamedTuple):
    minutes: NDArray[np.int64]
    frames: NDArray[np.uint8]
    problems: list[Problem]


def read_day(
    root: Path, date: dt.date, *, excluded: NDArray[np.bool_], interval_minutes: int, check_masks: bool
) -> ArchiveDay:
    """Decode a day. Whatever is wrong with a file is a Problem, and costs no more than that file."""
    problems: list[Problem] = []

    def report(kind: str, file: Path | None, detail: str) -> None:
        shown = str(file.relative_to(root)) if file else None
        problems.append(Problem(kind=kind, day=date.isoformat(), file=shown, detail=detail))

    files = _stamped_files(root, date, report)
    midnight = layout.first_minute(date)
    grid = (excluded.shape[0], excluded.shape[1])
    by_slot: dict[int, tuple[int, NDArray[np.uint8]]] = {}
    # A stamp on the grid has the first claim to its slot.
    for minutes in sorted(files, key=lambda m: (m % interval_minutes != 0, m)):
        path = files[minutes]
        slot = int(slot_of(np.array(minutes - midnight), interval_minutes))
        if slot in by_slot:
            report("same-slot", path, f"{clock(by_slot[slot][0], date=False)} is there")
            continue
        try:
            frame = read_png(path, grid)
        except (StoreError, OSError) as error:
            report("bad-frame", path, str(error))
            continue
        if minutes % interval_minutes:
            report("off-grid", path, f"not a multiple of {interval_minutes} minutes")
        by_slot[slot] = minutes, frame
        if check_masks:
            _check_mask(layout.mask_path(root, minutes), valid_pixels(frame, excluded), report)

    for slot in sorted(set(range(layout.MINUTES_PER_DAY // interval_minutes)) - set(by_slot)):
        report("missing-frame", None, clock(midnight + slot * interval_minutes))
    ordered = [by_slot[slot] for slot in sorted(by_slot)]
    frames = np.stack([frame for _, frame in ordered]) if ordered else np.empty((0, *grid), np.uint8)
    return ArchiveDay(np.array([minutes for minutes, _ in ordered], np.int64), frames, problems)


def _stamped_files(root: Path, date: dt.date, report: Report) -> dict[int, Path]:
    """Stamp -> file. What is in the folder and holds no stamp of the day is reported."""
    files: dict[int, Path] = {}
    for path in sorted(layout.frames_folder(root, date).iterdir()):
        try:
            minutes = layout.minutes_of(path.name)
            if layout.date_of(minutes) != date:
                raise StoreError(f"its stamp is of {layout.date_of(minutes)}")
            files[minutes] = path
        except StoreError as error:
            report("stray-file", path, str(error))
    return files


def _check_mask(path: Path, derived: NDArray[np.bool_], report: Report) -> None:
    """Compare a given mask with the derived one."""
    try:
        given = layout.decode_mask(path.read_bytes(), (derived.shape[0], derived.shape[1]))
    except (StoreError, OSError) as error:
        report("bad-mask", path, "there is no such file" if isinstance(error, FileNotFoundError) else str(error))
        return
    if differing := int((given != derived).sum()):
        report("mask-disagrees", path, f"{differing} pixels differ")
