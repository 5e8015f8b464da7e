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
from nowcastlab.store import Store

EPOCH = dt.datetime(1970, 1, 1)
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
            return minutes_of(dt.datetime.strptime(text.strip(), form))
        except ValueError:
            continue
    raise ConfigError(f'The time {text!r} cannot be read. Write it as "2015-05-22 04:30".')


def minutes_of(moment: dt.datetime) -> int:
    return int((moment - EPOCH).total_seconds()) // 60


def moment_of(minutes: int) -> dt.datetime:
    return EPOCH + dt.timedelta(minutes=int(minutes))


def from_store(store: Store, at: int, count: int) -> Inputs:
    """The frames up to a time. That one must be there; of those before, no more than two in a row may be missing."""
    stamps = store.minutes()
    if not len(stamps):
        raise StoreError(f"{store.url} has no frames at all.")
    if at not in stamps:
        raise StoreError(f"{store.url} has no frame at {_text(at)}. {_nearest(stamps, at)}")
    minutes = at + store.interval_minutes * np.arange(1 - count, 1)
    frames = store.read(minutes)
    gap = worst = 0
    for there in frames.present:
        gap = 0 if there else gap + 1
        worst = max(worst, gap)
    if worst > MAX_MISSING:
        missing = [_text(m, date=False) for m in minutes[~frames.present]]
        raise StoreError(
            f"A forecast from {_text(at)} needs the {count} frames up to then, and {', '.join(missing)} are missing in "
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
        pixels, at = _from_npz(paths[0], count, at)
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


def _from_npz(path: Path, count: int, at: int | None) -> tuple[NDArray[np.uint8], int | None]:
    """The first uint8 array of three axes; `minutes` beside it, if it is there, says when."""
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
    if at is None and minutes is not None and minutes.shape == arrays[name].shape[:1]:
        at = int(minutes[-1])
    return arrays[name][-count:], at


def _time_in(paths: Sequence[Path], interval_minutes: int) -> int | None:
    """When the newest frame was, from the names; None where they do not tell, an error where they tell otherwise."""
    times: list[int] = []
    for path in paths:
        if found := HKO7_NAME.fullmatch(path.stem):
            moment, form = found[1], "%y%m%d%H%M"
        elif found := PLAIN_NAME.fullmatch(path.stem):
            moment, form = found[1], "%Y%m%d%H%M"
        else:
            return None
        try:
            times.append(minutes_of(dt.datetime.strptime(moment, form)))
        except ValueError:
            return None
    if (np.diff(times) != interval_minutes).any():
        raise ConfigError(
            f"By their names the files are of {', '.join(_text(t) for t in times)}: give them oldest first and "
            f"{interval_minutes} minutes apart, or say --interval and --at."
        )
    return times[-1]


def _nearest(stamps: NDArray[np.int64], at: int) -> str:
    near = stamps[np.argsort(np.abs(stamps - at), kind="stable")[:4]]
    covered = f"it covers {_text(stamps[0])} to {_text(stamps[-1])}"
    return f"The nearest are {', '.join(_text(m) for m in sorted(near))}; {covered}."


def _text(minutes: int, *, date: bool = True) -> str:
    return moment_of(minutes).strftime("%Y-%m-%d %H:%M" if date else "%H:%M")


def _size(frame: NDArray[np.uint8]) -> str:
    return f"{frame.shape[0]}x{frame.shape[1]}"
