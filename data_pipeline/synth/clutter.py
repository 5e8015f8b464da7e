"""What a radar shows besides rain: ground clutter, a sun spike, sea clutter, and nothing at all beyond its range.

Ground clutter and the spike stand at fixed places, which is how denoising finds them: near the radar in broken rings,
on hills further out, and along one narrow sector. Each place has a level of its own, so its histogram resembles
neither rain nor its neighbour's. Sea clutter speckles the sea with values too small to be rain.
`planted_clutter` is the ground truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data_pipeline.archive_layout import MINUTES_PER_DAY, ExclusionMap
from data_pipeline.synth.rain import AREA_KM
from nowcastlab.units import NOISE_BELOW_PIXEL

_PLACES, _FRAMES = 11, 12  # streams of randomness

# While the sun stands low, some hours a day, it leaves a spike along one azimuth.
_SPIKE_HOURS = (5, 6, 7, 17, 18, 19)
_SPIKE_AZIMUTH_DEGREES = 155.0

_SEA_SHARE_NEAR_RADAR = 0.06  # of sea pixels speckled, falling with distance


@dataclass(frozen=True)
class PlantedClutter:
    ground: NDArray[np.bool_]  # (y, x)
    spike: NDArray[np.bool_]
    level: NDArray[np.int16]  # the place's own pixel value, 0 elsewhere
    shown: NDArray[np.float32]  # the share of frames in which ground clutter shows

    @property
    def places(self) -> NDArray[np.bool_]:
        return self.ground | self.spike


def out_of_range(size: int) -> NDArray[np.bool_]:
    """Beyond the circle the radar reaches: the corners, 22% of the square."""
    _, _, distance_km = _polar(size)
    return distance_km > AREA_KM / 2


def planted_clutter(seed: int, size: int) -> PlantedClutter:
    """Where the fixed clutter of a seed stands on a grid, about 1.5% of the pixels in range."""
    rng = np.random.default_rng((seed, _PLACES))
    x_km, y_km, distance_km = _polar(size)
    km_per_pixel = AREA_KM / size

    # Rings of side lobes round the radar, thinning out; then some hills, each a patch full of holes.
    chance = 0.45 * np.exp(-((distance_km / 28) ** 2)) * (0.5 + 0.5 * np.cos(2 * math.pi * distance_km / 9))
    for _ in range(14):
        reach_km, towards = rng.uniform(50, 190), rng.uniform(-math.pi, 0)  # northward: the sea is in the south
        hill_km = np.hypot(x_km - reach_km * math.cos(towards), y_km - reach_km * math.sin(towards))
        chance = np.maximum(chance, 0.55 * np.exp(-((hill_km / rng.uniform(4, 9)) ** 2)))
    ground = rng.random((size, size)) < chance

    azimuth = np.degrees(np.arctan2(x_km, -y_km)) % 360
    off_axis_km = distance_km * np.radians(np.abs(azimuth - _SPIKE_AZIMUTH_DEGREES))
    half_width_km = np.maximum(0.6 * km_per_pixel, distance_km * math.radians(0.7))
    spike = (off_axis_km <= half_width_km) & (distance_km > 60) & (distance_km < AREA_KM / 2 - 10)
    spike &= np.abs(azimuth - _SPIKE_AZIMUTH_DEGREES) < 90
    ground &= ~spike & (distance_km <= AREA_KM / 2)

    level = np.zeros((size, size), np.int16)
    level[ground] = rng.integers(75, 252, size=int(ground.sum()))
    # The receiver's noise, corrected for range: 20 dB for ten times the distance, 255 / 70 levels to the dB.
    ramp = 130 + 255 / 70 * 20 * np.log10(distance_km[spike] / 60)
    level[spike] = ramp + rng.integers(-40, 41, size=int(spike.sum()))
    shown = rng.uniform(0.25, 0.5, (size, size)).astype(np.float32)
    return PlantedClutter(ground=ground, spike=spike, level=level, shown=shown)


class Clutter:
    """Plants the clutter of a seed in its frames."""

    def __init__(self, *, seed: int, size: int) -> None:
        self._seed = seed
        self.planted = planted_clutter(seed, size)
        self.out_of_range = out_of_range(size)
        _, y_km, distance_km = _polar(size)
        self._sea_chance = np.where(
            (y_km > 20) & ~self.out_of_range, _SEA_SHARE_NEAR_RADAR * np.exp(-distance_km / 120), 0
        ).astype(np.float32)

    def exclusion(self) -> ExclusionMap:
        return ExclusionMap(outlier=self.planted.places, out_boundary=self.out_of_range)

    def add(self, pixels: NDArray[np.uint8], minutes: int) -> NDArray[np.uint8]:
        """The frame with everything on it that is not rain; a stronger echo hides a weaker one."""
        rng = np.random.default_rng((self._seed, _FRAMES, minutes))
        frame = pixels.copy()

        speckled = np.flatnonzero(rng.random(frame.shape, np.float32) < self._sea_chance)
        values = rng.integers(1, NOISE_BELOW_PIXEL, size=len(speckled), dtype=np.uint8)
        flat = frame.reshape(-1)
        flat[speckled] = np.maximum(flat[speckled], values)

        shows = self.planted.ground & (rng.random(frame.shape, np.float32) < self.planted.shown)
        if minutes % MINUTES_PER_DAY // 60 in _SPIKE_HOURS:
            shows |= self.planted.spike
        echo = self.planted.level[shows] + rng.integers(-1, 2, size=int(shows.sum()))
        frame[shows] = np.maximum(frame[shows], np.clip(echo, 1, 255).astype(np.uint8))

        frame[self.out_of_range] = 0
        return frame


def _polar(size: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Kilometres east and south of the radar, and from it."""
    centre_km = (np.arange(size) + 0.5) * AREA_KM / size - AREA_KM / 2
    x_km, y_km = np.meshgrid(centre_km, centre_km)
    return x_km, y_km, np.hypot(x_km, y_km)
