"""Locations whose echoes are not weather: stage one of the denoising in Shi et al. 2017, appendix.

Ground clutter and sun spikes stay where they are. So each location i within the boundary is described by how often it
shows each level, x_i in R^255 for the levels 1 to 255, and judged by its Mahalanobis distance from all of them:

    D(x) = sqrt((x - mean)^T S^+ (x - mean)),   outlier where D > mean(D) + 3 std(D)

with S the sample covariance and S^+ its pseudo-inverse. The frames stream by; only counts are held, 236 MB for 480x480,
and everything after them is done in blocks of locations.

Two additions make this work on weeks of data as well as on years; both can be turned off.

    classes    Every direction of S weighs the same in D, those of levels hardly ever seen too, and over a week most
               levels are seen once or never: D is then mostly chance. So rare levels are counted with their neighbours.
    looks      Strong clutter swells mean and covariance until weaker clutter hides behind them. So a second look takes
               mean, covariance and threshold from the inliers of the first. A third would start to eat into the rain.

On nine synthetic archives of 470 to 950 frames this found 98 to 100% of the planted locations, and took at most 0.2% of
the others for clutter; a single look at all 255 levels found 56 to 82%.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nowcastlab.compiled import compiled
from nowcastlab.errors import StoreError
from nowcastlab.units import NOISE_BELOW_PIXEL

if TYPE_CHECKING:
    from nowcastlab.store import Day, Store

LEVELS = 255
BLOCK = 8192  # locations at a time: 17 MB of features


@dataclass(frozen=True, kw_only=True)
class LevelCounts:
    """How often each location showed each byte. Column 0, no echo, is not counted."""

    counts: NDArray[np.uint32]  # (y * x, 256)
    frames: int
    grid: tuple[int, int]

    @property
    def echoes(self) -> NDArray[np.int64]:
        """Frames in which a location showed anything at all, (y, x)."""
        return self.counts.sum(1, dtype=np.int64).reshape(self.grid)

    @property
    def small_echoes(self) -> NDArray[np.int64]:
        """Frames in which it showed less than the noise level, (y, x): what stage two filters out."""
        return self.counts[:, 1:NOISE_BELOW_PIXEL].sum(1, dtype=np.int64).reshape(self.grid)


@dataclass(frozen=True, kw_only=True)
class Outliers:
    outlier: NDArray[np.bool_]  # (y, x)
    distance: NDArray[np.float64]  # (y, x), of the last look; not-a-number beyond the boundary
    threshold: float  # of the last look
    classes: int  # of levels: 255 where none was too rare
    rank: int  # of the covariance: how many directions vary at all
    looks: int


def count_levels(store: Store, days: Iterable[Day]) -> LevelCounts:
    """Count day by day: a day of frames and the counts are all that is in memory."""
    counts = np.zeros((store.grid[0] * store.grid[1], 256), np.uint32)
    frames = 0
    for day in days:
        _, pixels = store.read_day(day.date)
        if len(pixels):
            _add(counts, pixels.reshape(len(pixels), -1))
            frames += len(pixels)
    return LevelCounts(counts=counts, frames=frames, grid=store.grid)


@compiled()
def _add(counts: NDArray[np.uint32], pixels: NDArray[np.uint8]) -> None:
    # 2048 locations at a time: their counts are 2 MB, and stay in the cache while the frames pass
    frames, locations = pixels.shape
    for start in range(0, locations, 2048):
        for frame in range(frames):
            for location in range(start, min(start + 2048, locations)):
                level = pixels[frame, location]
                if level:
                    counts[location, level] += 1


def find_outliers(
    levels: LevelCounts,
    inside: NDArray[np.bool_],
    *,
    deviations: float = 3.0,
    echoes_per_class: float = 0.5,
    looks: int = 2,
) -> Outliers:
    """Judge the locations that are `inside`, (y, x).

    `echoes_per_class` is how often a location must have shown a class of levels, on average. With 0 and one look this
    is the method of Shi et al. 2017 to the letter.
    """
    where = np.flatnonzero(inside)
    if levels.frames == 0 or len(where) < 2:
        raise StoreError(f"{levels.frames} frames and {len(where)} locations are too few to tell clutter from rain.")
    every_level = np.arange(LEVELS)
    seen = np.sum([block.sum(0) for block in _blocks(levels, where, every_level)], axis=0) / len(where)
    classes = level_classes(seen, echoes_per_class)
    inlier = np.ones(len(where), bool)
    for _ in range(looks):
        distance, rank = _distances(levels, where, where[inlier], classes)
        threshold = float(distance[inlier].mean() + deviations * distance[inlier].std())
        # Once out, always out: a level no inlier shows has no variance, and so no part in the next look's distance.
        inlier &= distance <= threshold
    outlier, on_grid = np.zeros(inside.shape, bool), np.full(inside.shape, np.nan)
    outlier.flat[where], on_grid.flat[where] = ~inlier, distance
    return Outliers(
        outlier=outlier, distance=on_grid, threshold=threshold, classes=len(classes), rank=rank, looks=looks
    )


def _distances(
    levels: LevelCounts, where: NDArray[np.intp], typical: NDArray[np.intp], classes: NDArray[np.intp]
) -> tuple[NDArray[np.float64], int]:
    """Mahalanobis distance of the locations `where` from those that are `typical`; and the rank of the covariance."""
    mean = np.sum([block.sum(0) for block in _blocks(levels, typical, classes)], axis=0) / len(typical)
    covariance = np.zeros((len(classes), len(classes)))
    for block in _blocks(levels, typical, classes):
        block -= mean
        covariance += block.T @ block
    whiten = root_of_pseudo_inverse(covariance / max(len(typical) - 1, 1))
    blocks = [np.sqrt((((block - mean) @ whiten) ** 2).sum(1)) for block in _blocks(levels, where, classes)]
    return np.concatenate(blocks), whiten.shape[1]


def root_of_pseudo_inverse(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """W with W W^T the Moore-Penrose inverse. Directions that vary only by rounding are left out.

    A level no location ever shows has no variance, and with few locations or frames many combinations have none
    either: their inverse would be noise made large.
    """
    values, vectors = np.linalg.eigh(covariance)
    kept = values > max(values[-1], 0.0) * len(values) * np.finfo(float).eps
    return vectors[:, kept] / np.sqrt(values[kept])


def level_classes(seen: NDArray[np.float64], echoes_per_class: float) -> NDArray[np.intp]:
    """Where each class of levels begins, in 0..254 for the levels 1..255: neighbours join until seen often enough."""
    starts, total = [0], 0.0
    for level, echoes in enumerate(seen[:-1]):
        total += echoes
        if total >= echoes_per_class:
            starts.append(level + 1)
            total = 0.0
    if len(starts) > 1 and seen[starts[-1] :].sum() < echoes_per_class:
        starts.pop()  # the rarest levels join the class below
    return np.array(starts)


def _blocks(levels: LevelCounts, where: NDArray[np.intp], classes: NDArray[np.intp]) -> Iterator[NDArray[np.float64]]:
    """Echoes of each class, a block of locations at a time.

    Counts where the paper has ratios: D does not depend on the units of its features.
    """
    for start in range(0, len(where), BLOCK):
        at = where[start : start + BLOCK]
        yield np.add.reduceat(levels.counts[at, 1:].astype(np.float64), classes, axis=1)
