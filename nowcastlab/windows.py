"""Which frames make a sample: the benchmark's sequential walk and random training windows.

Time is integer minutes since 1970-01-01. A window is `length` stamps, one interval apart. It is valid if no more than
`max_missing` stamps in a row are missing; what is missing is read as an empty frame, nothing is interpolated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nowcastlab.errors import ConfigError


class Window(NamedTuple):
    start: int  # minutes since 1970-01-01
    new_episode: bool  # the frames before it are not the previous window's


def walk(
    minutes: ArrayLike, *, length: int = 25, stride: int = 5, interval_minutes: int = 6, max_missing: int = 2
) -> list[Window]:
    """The validation and test windows, in order.

    From a valid window the walk goes on by `stride` frames, whether or not a frame is there; from an invalid one it
    jumps to the next frame there is, and an episode begins. The official HKO-7 test frames give 6053 windows in 56
    episodes.
    """
    stamps = _sorted_stamps(minutes)
    _check_positive(length=length, stride=stride, interval_minutes=interval_minutes)
    if not len(stamps):
        return []
    there = set(stamps.tolist())
    span = range(0, length * interval_minutes, interval_minutes)
    windows: list[Window] = []
    start, last, new_episode = int(stamps[0]), int(stamps[-1]), True
    while start <= last:
        missing = 0
        for offset in span:
            missing = 0 if start + offset in there else missing + 1
            if missing > max_missing:
                break
        if missing > max_missing:
            start = int(stamps[np.searchsorted(stamps, start, side="right")]) if start < last else last + 1
            new_episode = True
        else:
            windows.append(Window(start, new_episode))
            start += stride * interval_minutes
            new_episode = False
    return windows


def valid_starts(
    minutes: ArrayLike, *, length: int = 25, interval_minutes: int = 6, max_missing: int = 2
) -> NDArray[np.int64]:
    """The frames a training window may start at: 184,851 of the official 192,168 training frames."""
    stamps = _sorted_stamps(minutes)
    _check_positive(length=length, interval_minutes=interval_minutes)
    missing = np.zeros(len(stamps), np.int64)
    worst = np.zeros(len(stamps), np.int64)
    for i in range(length):
        wanted = stamps + i * interval_minutes
        at = np.minimum(np.searchsorted(stamps, wanted), len(stamps) - 1)
        missing = np.where(stamps[at] == wanted, 0, missing + 1)
        worst = np.maximum(worst, missing)
    return stamps[worst <= max_missing]


def training_starts(starts: NDArray[np.int64], *, seed: int, step: int, batch_size: int) -> NDArray[np.int64]:
    """The windows of training step `step`: uniform over valid starts, and a function of (seed, step) alone.

    So a resumed run sees what an uninterrupted one would have seen, with no sampler state to save.
    """
    if not len(starts):
        raise ConfigError("No valid training window: the split has no run of frames long enough.")
    rng = np.random.default_rng((seed, step))
    return starts[rng.integers(len(starts), size=batch_size)]


def episodes(windows: list[Window]) -> NDArray[np.int64]:
    """The number of the episode each window belongs to, from 0."""
    return np.cumsum([w.new_episode for w in windows], dtype=np.int64) - 1


def _sorted_stamps(minutes: ArrayLike) -> NDArray[np.int64]:
    stamps = np.asarray(minutes)
    if stamps.ndim != 1 or (stamps.size and not np.issubdtype(stamps.dtype, np.integer)):
        raise ConfigError(f"`minutes` must be one row of integers, got {stamps.ndim} axes of {stamps.dtype}.")
    return np.unique(stamps.astype(np.int64))


def _check_positive(**values: int) -> None:
    for name, value in values.items():
        if value < 1:
            raise ConfigError(f"`{name}` (={value}) must be at least 1.")
