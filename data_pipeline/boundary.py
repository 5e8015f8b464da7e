"""Where the radar does not reach: the out-of-boundary map, given, drawn or detected."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from data_pipeline.outliers import LevelCounts
from data_pipeline.radar_source import load_array, npz_headers, read_image
from nowcastlab.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from nowcastlab.store import Store

WORDS = ("detect", "circle", "store", "none")

# A location without a single echo is out of range only if the others show enough of them to say so.
ENOUGH_ECHOES = 50
KEY = "out_boundary_mask"


def boundary_map(choice: str, levels: LevelCounts, store: Store) -> NDArray[np.bool_]:
    """True beyond the boundary. `choice` is a word or the name of a file."""
    if choice == "none":
        return np.zeros(levels.grid, bool)
    if choice == "store":
        return store.excluded
    if choice == "circle":
        return beyond_circle(levels.grid)
    if choice == "detect":
        return never_an_echo(levels)
    outside = read_boundary(Path(choice))
    if outside.shape != levels.grid:
        raise ConfigError(f"The boundary in {choice} is {outside.shape}, the store's grid {levels.grid}.")
    return outside


def beyond_circle(grid: tuple[int, int]) -> NDArray[np.bool_]:
    """Outside the largest circle in the grid, the reach of one radar in its middle."""
    y, x = (np.arange(size) - (size - 1) / 2 for size in grid)
    return np.hypot(y[:, None], x[None, :]) > min(grid) / 2


def never_an_echo(levels: LevelCounts) -> NDArray[np.bool_]:
    """Locations that never show anything, noise included, while most others do all the time."""
    echoes = levels.echoes
    silent = echoes == 0
    typical = float(np.median(echoes[~silent])) if not silent.all() else 0.0
    if typical < ENOUGH_ECHOES:
        raise StoreError(
            f"In {levels.frames} frames a typical location shows an echo {typical:.0f} times, under {ENOUGH_ECHOES}: "
            "too few to tell out of range from dry. Pass --boundary circle, store, none or a file."
        )
    return silent


def read_boundary(path: Path) -> NDArray[np.bool_]:
    """A map from an npz (`out_boundary_mask`, or its only array) or a grey PNG; not zero is beyond the boundary."""
    if not path.is_file():
        raise ConfigError(f"--boundary {path} is neither a file nor one of: {', '.join(WORDS)}.")
    if path.suffix.lower() == ".png":
        return read_image(path, None) != 0
    arrays = npz_headers(path)
    name = KEY if KEY in arrays else next(iter(arrays)) if len(arrays) == 1 else None
    if name is None or len(arrays[name][0]) != 2:
        raise StoreError(f"{path} has no map `{KEY}`, only {', '.join(arrays)}.")
    return load_array(path, name) != 0
