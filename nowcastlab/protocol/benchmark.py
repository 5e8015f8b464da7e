"""The rules of the HKO-7 benchmark, and the windows they give on a store."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.store import Frames, Store
from nowcastlab.windows import Window, episodes, walk


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """Both settings use the same windows: that is what makes them comparable."""

    frames_in: int = 5
    leads: int = 20
    stride: int = 5
    max_missing: int = 2

    def __post_init__(self) -> None:
        for name in ("frames_in", "leads", "stride"):
            if getattr(self, name) < 1:
                raise ConfigError(f"`{name}` (={getattr(self, name)}) must be at least 1.")

    @property
    def length(self) -> int:
        return self.frames_in + self.leads

    def sequences(self, store: Store, split: str) -> Sequences:
        """The windows of a split, or a StoreError where it has none."""
        minutes = store.minutes(split)
        windows = walk(
            minutes,
            length=self.length,
            stride=self.stride,
            interval_minutes=store.interval_minutes,
            max_missing=self.max_missing,
        )
        if not windows:
            raise StoreError(
                f"{store.url} has no window of {self.length} frames in its {split} split "
                f"({len(minutes)} frames there, {len(store.minutes())} in all). Give that split more days."
            )
        return Sequences(windows=windows, episode=episodes(windows), split=split)

    def lead_minutes(self, store: Store) -> NDArray[np.float64]:
        return store.interval_minutes * np.arange(1.0, self.leads + 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sequences:
    """The windows of a split in their order, each with the number of its episode."""

    windows: list[Window]
    episode: NDArray[np.int64]
    split: str

    def __len__(self) -> int:
        return len(self.windows)

    @property
    def start(self) -> NDArray[np.int64]:
        return np.array([window.start for window in self.windows], np.int64)

    def first(self, n: int | None) -> Sequences:
        """The first n, for a quick look; None is all."""
        if n is not None and n < 1:
            raise ConfigError(f"`limit` (={n}) must be at least 1 window, or not given for all of them.")
        return self if n is None else replace(self, windows=self.windows[:n], episode=self.episode[:n])

    def read(self, store: Store, stamps: ArrayLike) -> Frames:
        """The frames with these stamps. What belongs to another split is missing here, as in the split's own list: the
        last window of a test day may run into the next day, and that may be one the network was trained on."""
        return store.read(stamps, split=self.split)

    def read_windows(self, store: Store, starts: ArrayLike, length: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """Pixels (batch, time, y, x) and whether each frame is there (batch, time)."""
        stamps = np.asarray(starts, np.int64)[:, None] + store.interval_minutes * np.arange(length)
        frames = self.read(store, stamps.ravel())
        return frames.pixels.reshape(*stamps.shape, *store.grid), frames.present.reshape(stamps.shape)


HKO7 = Benchmark()  # 5 frames in, 20 out, every 5 frames: Shi et al. 2017
