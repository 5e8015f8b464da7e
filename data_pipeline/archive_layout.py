"""The radar archive on disk, as the authors' release lays out HKO-7: names, day lists, masks. Decodes no images.

    radarPNG/YYYY/MM/DD/RADyymmddHHMM00.png          8-bit grey frames
    radarPNG_mask/YYYY/MM/DD/RADyymmddHHMM00.mask    zlib of the raw bytes of a bool array, True = use the pixel
    NAME_rainy_{train,valid,test}_days.txt           lines `YYYYMMDD, mm`: the split's days and their gauge totals
    mask_dat.npz                                     outlier_mask, out_boundary_mask, exclude_mask = their union

Time is integer minutes since 1970-01-01, in the archive's own time zone, which nothing states.
"""

from __future__ import annotations

import datetime as dt
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from data_pipeline.npy_header import LARGEST_SIDE, read_npy_header
from nowcastlab.errors import StoreError
from nowcastlab.stamps import EPOCH, datetime_from_minutes, minutes_from_datetime

FRAMES_FOLDER = "radarPNG"
MASKS_FOLDER = "radarPNG_mask"
EXCLUSION_FILE = "mask_dat.npz"
SPLITS = ("train", "valid", "test")
MINUTES_PER_DAY = 24 * 60

_NAME = re.compile(r"RAD(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})00\.(png|mask)")
_DAY_LINE = re.compile(r"(\d{4})(\d{2})(\d{2})\s*,\s*(\d+(?:\.\d*)?)")


class ExclusionMap(NamedTuple):
    """Static maps of the grid, bool (y, x): True where a pixel is never used."""

    outlier: NDArray[np.bool_]  # fixed clutter
    out_boundary: NDArray[np.bool_]  # beyond the radar's range

    @property
    def excluded(self) -> NDArray[np.bool_]:
        return self.outlier | self.out_boundary


# --- stamps and names ------------------------------------------------------------------------------------------------


def first_minute(date: dt.date) -> int:
    """Midnight at which a day begins."""
    return (date - EPOCH.date()).days * MINUTES_PER_DAY


def date_of(minutes: int) -> dt.date:
    return datetime_from_minutes(minutes).date()


def frames_folder(root: Path, date: dt.date) -> Path:
    return Path(root) / FRAMES_FOLDER / f"{date:%Y}" / f"{date:%m}" / f"{date:%d}"


def masks_folder(root: Path, date: dt.date) -> Path:
    return Path(root) / MASKS_FOLDER / f"{date:%Y}" / f"{date:%m}" / f"{date:%d}"


def frame_path(root: Path, minutes: int) -> Path:
    moment = datetime_from_minutes(minutes)
    return frames_folder(root, moment.date()) / f"RAD{moment:%y%m%d%H%M}00.png"


def mask_path(root: Path, minutes: int) -> Path:
    moment = datetime_from_minutes(minutes)
    return masks_folder(root, moment.date()) / f"RAD{moment:%y%m%d%H%M}00.mask"


def minutes_of(name: str) -> int:
    """The stamp in a frame's or mask's file name: RAD150621095500.png is 2015-06-21 09:55.

    Raises StoreError for a name of another form or a time that does not exist. Years are 2000 to 2099.
    """
    match = _NAME.fullmatch(name)
    if match:
        year, month, day, hour, minute = (int(group) for group in match.groups()[:5])
        try:
            return minutes_from_datetime(dt.datetime(2000 + year, month, day, hour, minute))
        except ValueError:
            pass
    raise StoreError(f"File name {name!r} holds no stamp; expected RADyymmddHHMM00.png or .mask.")


# --- day lists -------------------------------------------------------------------------------------------------------


def day_list_path(root: Path, split: str, *, name: str) -> Path:
    return Path(root) / f"{name}_rainy_{split}_days.txt"


def find_day_lists(root: Path) -> dict[str, Path]:
    """The day list of each split under the root; a split without a list is left out, two lists of one are refused."""
    found: dict[str, Path] = {}
    for split in SPLITS:
        paths = sorted(Path(root).glob(f"*_rainy_{split}_days.txt"))
        if len(paths) > 1:
            raise StoreError(
                f"{root} has {len(paths)} day lists for {split} ({paths[0].name}, {paths[1].name}): keep one."
            )
        if paths:
            found[split] = paths[0]
    return found


def write_day_list(path: Path, gauge_mm: Mapping[dt.date, float]) -> None:
    path.write_text("".join(f"{date:%Y%m%d}, {gauge_mm[date]:.1f}\n" for date in sorted(gauge_mm)), encoding="ascii")


def read_day_list(path: Path) -> dict[dt.date, float]:
    """Date -> gauge total in mm. A line that is not `YYYYMMDD, mm`, or a date listed twice, is a StoreError."""
    try:
        text = Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"Cannot read the day list {path}: {error}.") from error
    days: dict[dt.date, float] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        match = _DAY_LINE.fullmatch(line.strip())
        try:
            if not match:
                raise ValueError("it is not `YYYYMMDD, mm`")
            date = dt.date(int(match[1]), int(match[2]), int(match[3]))
            if date in days:
                raise ValueError("the day is listed twice")
        except ValueError as error:
            raise StoreError(f"{path}, line {number}: cannot use {line!r}: {error}.") from error
        days[date] = float(match[4])
    return days


# --- masks -----------------------------------------------------------------------------------------------------------


def encode_mask(valid: NDArray[np.bool_]) -> bytes:
    return zlib.compress(np.ascontiguousarray(valid, bool).tobytes())


def decode_mask(data: bytes, grid: tuple[int, int]) -> NDArray[np.bool_]:
    """The mask of a frame of this grid. Inflates no more than the grid needs, whatever the file claims."""
    size = grid[0] * grid[1]
    inflate = zlib.decompressobj()
    try:
        raw = inflate.decompress(data, size + 1)
    except zlib.error as error:
        raise StoreError(f"Mask is not zlib data: {error}.") from error
    if len(raw) != size:
        held = f"more than {size}" if len(raw) > size else str(len(raw))
        raise StoreError(f"Mask holds {held} bytes; a {grid[0]}x{grid[1]} grid needs {size}.")
    if not inflate.eof:
        raise StoreError("Mask ends before its checksum: the file is truncated.")
    values = np.frombuffer(raw, np.uint8)
    if values.max(initial=0) > 1:
        raise StoreError(f"Mask holds the byte {values.max()}; only 0 and 1 mean anything.")
    return values.view(np.bool_).reshape(grid)


def write_exclusion(root: Path, exclusion: ExclusionMap) -> None:
    np.savez_compressed(
        Path(root) / EXCLUSION_FILE,
        outlier_mask=exclusion.outlier.astype(np.uint8),
        out_boundary_mask=exclusion.out_boundary.astype(np.uint8),
        exclude_mask=exclusion.excluded.astype(np.uint8),
    )


def read_exclusion(path: Path) -> ExclusionMap:
    """Read mask_dat.npz. Shapes are checked in the headers, before anything of that size is made."""
    try:
        with zipfile.ZipFile(path) as archive:
            outlier, boundary, union = (
                _read_map(archive, f"{name}_mask.npy") for name in ("outlier", "out_boundary", "exclude")
            )
    except (OSError, KeyError, ValueError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise StoreError(f"Cannot read the exclusion map {path}: {error}.") from error
    if not outlier.shape == boundary.shape == union.shape:
        raise StoreError(f"The maps of {path} differ in shape: {outlier.shape}, {boundary.shape}, {union.shape}.")
    exclusion = ExclusionMap(outlier, boundary)
    if not np.array_equal(exclusion.excluded, union):
        raise StoreError(f"In {path} exclude_mask is not the union of outlier_mask and out_boundary_mask.")
    return exclusion


def _read_map(archive: zipfile.ZipFile, member: str) -> NDArray[np.bool_]:
    with archive.open(member) as file:
        shape, fortran_order, dtype = read_npy_header(file)
        if len(shape) != 2 or max(shape) > LARGEST_SIDE or dtype not in (np.uint8, np.bool_):
            raise ValueError(f"{member} is {dtype} of shape {shape}, not a map of bytes")
        raw = file.read(shape[0] * shape[1])
        if len(raw) != shape[0] * shape[1]:
            raise ValueError(f"{member} ends early")
    values = np.frombuffer(raw, np.uint8).reshape(shape, order="F" if fortran_order else "C")
    return np.ascontiguousarray(values != 0)
