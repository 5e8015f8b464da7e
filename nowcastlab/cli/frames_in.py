"""The frames a forecast starts from: out of a store at a time, or out of files."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.stamps import clock, minutes_from_datetime
from nowcastlab.store import Store

MAX_MISSING = 2  # in a row, as in the benchmark
MAX_SIDE = 4096  # pixels; a picture that claims more is not opened
HKO7_KM_PER_PIXEL = 512 / 480
HKO7_NAME = re.compile(r"RAD(\d{10})00")  # RADyymmddHHMM00.png
PLAIN_NAME = re.compile(r"(\d{12})")  # 201505220430.png, as this command writes them


@dataclass(frozen=True, kw_only=True, eq=False)
class Inputs:
    """What is seen before forecasting, the newest frame last."""

    minutes: NDArray[np.int64]
    pixels: NDArray[np.uint8]  # (n, y, x)
    present: NDArray[np.bool_]
    excluded: NDArray[np.bool_]
    interval_minutes: int
    km_per_pixel: float
    source: str  # words


def parse_time(text: str) -> int:
    """Minutes since 1970-01-01 of "2015-05-22 04:30"."""
    for form in ("%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y%m%d%H%M", "%Y%m%d %H%M"):
        try:
            return minutes_from_datetime(dt.datetime.strptime(text.strip(), form))
        except ValueError:
            continue
    raise ConfigError(f'The time {text!r} cannot be read. Write it as "2015-05-22 04:30".')


def from_store(store: Store, at: int, count: int) -> Inputs:
    """The frames up to a time. That one must be there; of those before, no more than two in a row may be missing."""
    stamps = store.minutes()
    if not len(stamps):
        raise StoreError(f"{store.url} has no frames at all.")
    if at not in stamps:
        raise StoreError(f"{store.url} has no frame at {clock(at)}. {_nearest(stamps, at)}")
    minutes = at + store.interval_minutes * np.arange(1 - count, 1)
    frames = store.read(minutes)
    gap = worst = 0
    for there in frames.present:
        gap = 0 if there else gap + 1
        worst = max(worst, gap)
    if worst > MAX_MISSING:
        missing = [clock(m, date=False) for m in minutes[~frames.present]]
        raise StoreError(
            f"A forecast from {clock(at)} needs the {count} frames up to then, and {', '.join(missing)} are missing in "
            f"{store.url}. No more than {MAX_MISSING} in a row may be: choose a later time."
        )
    return Inputs(
        minutes=minutes,
        pixels=frames.pixels,
        present=frames.present,
        excluded=store.excluded,
        interval_minutes=store.interval_minutes,
        km_per_pixel=store.km_per_pixel,
        source=store.url,
    )


def from_files(
    paths: Sequence[Path], count: int, *, at: int | None, interval_minutes: int, km_per_pixel: float
) -> Inputs:
    """Grey 8-bit PNG files, one a frame, oldest first; or one .npz with a uint8 array (frames, y, x)."""
    if len(paths) == 1 and paths[0].suffix == ".npz":
        pixels, minutes = _from_npz(paths[0], count)
        at = at if at is not None or minutes is None else _newest(minutes, interval_minutes, f"{paths[0]} says")
    else:
        if len(paths) != count:
            raise ConfigError(f"A forecast needs {count} frames, oldest first; got {len(paths)} files.")
        frames = [read_png(path) for path in paths]
        odd = next((i for i, frame in enumerate(frames) if frame.shape != frames[0].shape), None)
        if odd is not None:
            raise StoreError(f"{paths[odd]} is {_size(frames[odd])}, and {paths[0]} {_size(frames[0])}.")
        pixels = np.stack(frames)
        at = at if at is not None else _time_in(paths, interval_minutes)
    if at is None:
        raise ConfigError(
            'The files\' names do not say when the newest frame was. Say so with --at, as --at "2015-05-22 04:30".'
        )
    return Inputs(
        minutes=at + interval_minutes * np.arange(1 - count, 1),
        pixels=pixels,
        present=np.ones(count, bool),
        excluded=np.zeros(pixels.shape[1:], bool),
        interval_minutes=interval_minutes,
        km_per_pixel=km_per_pixel,
        source=", ".join(path.name for path in paths),
    )


def read_png(path: Path) -> NDArray[np.uint8]:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as image:  # reads the header only
            if image.format != "PNG" or image.mode != "L":
                raise StoreError(f"{path} is {image.format} of mode {image.mode}; a frame is an 8-bit grey PNG.")
            if max(image.size) > MAX_SIDE:
                raise StoreError(f"{path} says it is {image.size[0]}x{image.size[1]}; at most {MAX_SIDE} is read.")
            return np.asarray(image)
    except FileNotFoundError:
        raise StoreError(f"No file {path}.") from None
    except (OSError, SyntaxError, ValueError, UnidentifiedImageError) as error:
        raise StoreError(f"{path} cannot be read as a PNG: {error}") from None


def _from_npz(path: Path, count: int) -> tuple[NDArray[np.uint8], list[int] | None]:
    """The first uint8 array of three axes, and when its frames were if `minutes` beside it says so."""
    import zipfile

    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise StoreError(f"No file {path}.") from None
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise StoreError(f"{path} cannot be read as an .npz file: {error}") from None
    name = next((n for n, a in arrays.items() if a.ndim == 3 and a.dtype == np.uint8), None)
    if name is None or len(arrays[name]) < count:
        held = ", ".join(f"{n} {a.dtype} {a.shape}" for n, a in arrays.items()) or "nothing"
        raise StoreError(f"{path} must hold a uint8 array (at least {count} frames, y, x); it holds {held}.")
    minutes = arrays.get("minutes")
    if minutes is None:
        return arrays[name][-count:], None
    if minutes.shape != arrays[name].shape[:1] or minutes.dtype.kind not in "iu":
        raise StoreError(
            f"{path} has `minutes` {minutes.dtype} {minutes.shape} for {len(arrays[name])} frames: give each its whole "
            "minutes since 1970-01-01, or leave them out and say --at."
        )
    return arrays[name][-count:], minutes[-count:].tolist()


def _time_in(paths: Sequence[Path], interval_minutes: int) -> int | None:
    """When the newest frame was, from the names; None where they do not tell."""
    times: list[int] = []
    for path in paths:
        if found := HKO7_NAME.fullmatch(path.stem):
            moment, form = found[1], "%y%m%d%H%M"
        elif found := PLAIN_NAME.fullmatch(path.stem):
            moment, form = found[1], "%Y%m%d%H%M"
        else:
            return None
        try:
            times.append(minutes_from_datetime(dt.datetime.strptime(moment, form)))
        except ValueError:
            return None
    return _newest(times, interval_minutes, "By their names")


def _newest(times: Sequence[int], interval_minutes: int, says: str) -> int:
    """The last of times that follow one another as a forecast needs them."""
    if (np.diff(times) != interval_minutes).any():
        raise ConfigError(
            f"{says} the frames are of {', '.join(clock(t) for t in times)}: give them oldest first and "
            f"{interval_minutes} minutes apart, or say --interval and --at."
        )
    return times[-1]


def _nearest(stamps: NDArray[np.int64], at: int) -> str:
    near = stamps[np.argsort(np.abs(stamps - at), kind="stable")[:4]]
    covered = f"it covers {clock(stamps[0])} to {clock(stamps[-1])}"
    return f"The nearest are {', '.join(clock(m) for m in sorted(near))}; {covered}."


def _size(frame: NDArray[np.uint8]) -> str:
    return f"{frame.shape[0]}x{frame.shape[1]}"
