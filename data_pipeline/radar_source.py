"""Somebody's radar files as one thing: stamps, a grid, and frames on demand.

    one .npz         `frames` (time, y, x) with `times`, and `mask` if there is one (1 = valid)
    a folder         of PNG or npz files, one frame each, with the stamp in the file's name
    anything else    what xarray opens: NetCDF, HDF5, zarr (radar_xarray.py)

Nothing is unpickled, and no array or image is made before its header was found to be of a sensible size.
"""

from __future__ import annotations

import datetime as dt
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from data_pipeline.npy_header import LARGEST_SIDE, read_npy_header
from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.stamps import minutes_from_datetime

LARGEST_ARRAY_BYTES = 4 << 30  # one npz array is decompressed whole
FRAMES_KEY, TIMES_KEY, MASK_KEY = "frames", "times", "mask"
_EARLIEST, _LATEST = (minutes_from_datetime(dt.datetime(year, 1, 1)) for year in (1950, 2100))
_PER_MINUTE = {"seconds": 60, "milliseconds": 60 * 10**3, "microseconds": 60 * 10**6, "nanoseconds": 60 * 10**9}
_WIDTHS = {"Y": 4, "y": 2, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2, "j": 3}


@dataclass(frozen=True, kw_only=True)
class RadarSource:
    minutes: NDArray[np.int64]  # a stamp a frame, in the source's order
    grid: tuple[int, int]
    read: Callable[[int], NDArray[Any]]  # the frame at a position, as it is stored; missing values not-a-number
    units: str | None = None  # as the source says them, if it does
    valid: NDArray[np.bool_] | None = None  # a static mask, if there is one
    chosen: dict[str, str] = field(default_factory=dict)  # of what else the source holds, for the store's attributes
    notes: list[str] = field(default_factory=list)  # what a user should know
    close: Callable[[], None] = lambda: None


def open_source(
    path: Path, *, variable: str | None, pattern: str, time: str | None, select: dict[str, int]
) -> RadarSource:
    """Look at what there is and say what it holds; frames are read later, one at a time."""
    if not path.exists():
        raise StoreError(f"There is no {path}.")
    if (path / "pixels" / "committed.json").exists():
        raise StoreError(f"{path} is a nowcastlab store already. `python -m data_pipeline info {path}` describes it.")
    kind = kind_of(path)
    if kind == "npz":
        return _sequence(path, variable)
    if kind == "folder":
        return _folder(path, variable, pattern)
    from data_pipeline.radar_xarray import open_dataset

    return open_dataset(path, variable=variable, time=time, select=select)


def kind_of(path: Path) -> Literal["npz", "folder", "xarray"]:
    """As what a path is read; one PNG is as good as a folder of one."""
    if path.suffix.lower() == ".npz":
        return "npz"
    is_zarr = any((path / name).exists() for name in ("zarr.json", ".zgroup", ".zmetadata", ".zarray"))
    return "folder" if path.suffix.lower() == ".png" or (path.is_dir() and not is_zarr) else "xarray"


# --- npz -------------------------------------------------------------------------------------------------------------


def _sequence(path: Path, variable: str | None) -> RadarSource:
    arrays = npz_headers(path)
    name = chosen(variable or FRAMES_KEY, arrays, where=path)
    if TIMES_KEY not in arrays:
        raise StoreError(f"{path} has no `{TIMES_KEY}`, only {', '.join(arrays)}: add a stamp for each frame.")
    shape = arrays[name][0]
    if len(shape) != 3:
        raise StoreError(f"`{name}` of {path} is {shape}, not (time, y, x).")
    frames, times = load_array(path, name), load_array(path, TIMES_KEY)
    if times.shape != (len(frames),):
        raise StoreError(f"{path} has {len(frames)} frames and {times.shape} times.")
    valid = None
    if MASK_KEY in arrays:
        valid = load_array(path, MASK_KEY) != 0
        if valid.shape != shape[1:]:
            raise StoreError(f"`{MASK_KEY}` of {path} is {valid.shape}, its frames {shape[1:]}.")
    return RadarSource(
        minutes=minutes_of_times(times),
        grid=shape[1:],
        read=frames.__getitem__,
        valid=valid,
        chosen={"source_variable": name},
    )


def npz_headers(path: Path) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Name -> shape and type of every array, each found sensible, none loaded."""
    found: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                if member.endswith(".npy"):
                    with archive.open(member) as file:
                        shape, _, dtype = read_npy_header(file)
                        found[member.removesuffix(".npy")] = shape, dtype
    except (OSError, ValueError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise StoreError(f"Cannot read {path}: {error}.") from error
    for name, (shape, dtype) in found.items():
        if len(shape) >= 2 and max(shape[-2:]) > LARGEST_SIDE:
            raise StoreError(f"`{name}` of {path} claims to be {shape}: sides are at most {LARGEST_SIDE} pixels.")
        if np.prod(shape, dtype=float) * dtype.itemsize > LARGEST_ARRAY_BYTES:
            raise StoreError(f"`{name}` of {path} claims {shape} of {dtype}, over 4 GB: save it in several files.")
    return found


def load_array(path: Path, name: str) -> NDArray[Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            with np.load(path, allow_pickle=False) as archive:
                return np.asarray(archive[name])
    except (OSError, ValueError, EOFError, KeyError, zlib.error, zipfile.BadZipFile) as error:
        raise StoreError(f"Cannot read `{name}` of {path}: {error}.") from error


def chosen(name: str, there: Any, *, where: Path) -> str:
    if name not in there:
        raise ConfigError(f"{where} has no variable {name!r}. Pass --variable with one of: {', '.join(there)}.")
    return name


def minutes_of_times(times: ArrayLike) -> NDArray[np.int64]:
    """Stamps as whole minutes, rounded. ISO text, datetimes, or integers that are minutes already."""
    values = np.asarray(times)
    if values.dtype.kind in "iu":
        _check_minutes(values)
        return values.astype(np.int64)
    if values.dtype.kind not in "MUS":
        # numpy would take numbers with a fraction for seconds, where whole ones are minutes
        raise StoreError(
            f"The times are {values.dtype}: give ISO text, datetimes, or whole minutes since 1970-01-01 as integers."
        )
    try:
        moments = values.astype("datetime64[s]")
    except ValueError as error:
        raise StoreError(f"Cannot read the times as ISO dates: {error}.") from error
    if np.isnat(moments).any():
        raise StoreError(f"{np.isnat(moments).sum()} of {len(moments)} frames have no time at all: leave them out.")
    return (moments.astype(np.int64) + 30) // 60


def _check_minutes(stamps: NDArray[Any]) -> None:
    """No radar is older than 1950: a stamp that says so, or lies far ahead, is counted in something else."""
    outside = stamps[(stamps < _EARLIEST) | (stamps >= _LATEST)]
    if len(outside):
        raise StoreError(
            f"As minutes since 1970-01-01 the time {outside[0]} is not between 1950 and 2100.{_guess(int(outside[0]))} "
            "Give datetimes, ISO text, or whole minutes since 1970-01-01."
        )


def _guess(stamp: int) -> str:
    for digits, pattern in ((12, "%Y%m%d%H%M"), (14, "%Y%m%d%H%M%S")):
        if len(str(stamp)) == digits and stamp_of(str(stamp), pattern) is not None:
            return f" It looks like a date written as {pattern}."
    for unit, in_a_minute in _PER_MINUTE.items():
        if _EARLIEST <= stamp // in_a_minute < _LATEST:
            return f" It looks like {unit} since 1970."
    return ""


# --- a folder of frames ----------------------------------------------------------------------------------------------


def _folder(path: Path, variable: str | None, pattern: str) -> RadarSource:
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.suffix.lower() in (".png", ".npz"))
    stamped = {file: stamp for file in files if (stamp := stamp_of(file.stem, pattern)) is not None}
    if not stamped:
        example = f", for example {files[0].name}" if files else ""
        raise StoreError(
            f"No PNG or npz file in {path} has a stamp of the form {pattern} in its name ({len(files)} files{example})."
            " Pass --pattern with another form."
        )
    notes = [f"{len(files) - len(stamped)} files without a stamp in their name were left out."] * (
        len(stamped) < len(files)
    )
    paths = list(stamped)

    def read(position: int) -> NDArray[Any]:
        return read_image(paths[position], variable)

    return RadarSource(
        minutes=np.array(list(stamped.values()), np.int64),
        grid=_first_grid(paths, variable),
        read=read,
        chosen={"source_variable": variable} if variable else {},
        notes=notes,
    )


def _first_grid(paths: list[Path], variable: str | None) -> tuple[int, int]:
    """Of the first file that can be read: one broken file does not stop the others."""
    first_error: StoreError | None = None
    for path in paths:
        try:
            return _grid(read_image(path, variable), path)
        except StoreError as error:
            first_error = first_error or error
    assert first_error is not None
    raise first_error


def read_image(path: Path, variable: str | None) -> NDArray[Any]:
    """One frame from a PNG or npz file, looked at before it is decoded."""
    if path.suffix.lower() == ".png":
        return _read_png(path)
    arrays = npz_headers(path)
    fields = [name for name, (shape, _) in arrays.items() if len(shape) == 2 and name != MASK_KEY]
    if variable is None and len(fields) != 1:
        raise ConfigError(f"{path} has {len(fields)} frames ({', '.join(fields)}). Pass --variable with one of them.")
    return load_array(path, chosen(variable or fields[0], arrays, where=path))


def _read_png(path: Path) -> NDArray[Any]:
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own bound is tighter
            with Image.open(path, formats=["PNG"]) as image:
                if max(image.size) > LARGEST_SIDE:
                    raise StoreError(f"{path} claims to be {image.size}: sides are at most {LARGEST_SIDE} pixels.")
                if image.mode not in ("L", "I;16", "I", "1"):
                    raise StoreError(f"{path} is a colour image (mode {image.mode}); frames are grey PNGs.")
                return np.asarray(image)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise StoreError(f"Cannot read {path}: {error}.") from error


def _grid(frame: NDArray[Any], path: Path) -> tuple[int, int]:
    if frame.ndim != 2:
        raise StoreError(f"{path} is {frame.shape}, not (y, x).")
    return frame.shape[0], frame.shape[1]


def stamp_of(name: str, pattern: str) -> int | None:
    """The stamp somewhere in a name, in the form of a strptime pattern such as %Y%m%d%H%M; None if there is none."""
    for match in _expression(pattern).finditer(name):
        try:
            return minutes_from_datetime(dt.datetime.strptime(match[0], pattern))
        except ValueError:
            continue
    return None


def _expression(pattern: str) -> re.Pattern[str]:
    """A pattern as a regular expression. The digits before it must not go on into it: 12345678 holds no %H%M."""
    pieces = re.split(r"%(.)", pattern)
    unknown = sorted(set(pieces[1::2]) - set(_WIDTHS))
    if unknown or len(pieces) == 1:
        raise ConfigError(
            f"--pattern {pattern!r} should be made of {', '.join('%' + code for code in _WIDTHS)}, as in %Y%m%d%H%M."
        )
    parts = [rf"\d{{{_WIDTHS[piece]}}}" if i % 2 else re.escape(piece) for i, piece in enumerate(pieces)]
    return re.compile(rf"(?<!\d){''.join(parts)}")
