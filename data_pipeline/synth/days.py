"""One synthetic day: its stamps, its frames, what its gauge caught. A function of (plan, date) alone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from data_pipeline.archive_layout import MINUTES_PER_DAY, ExclusionMap, first_minute
from data_pipeline.synth.clutter import Clutter, PlantedClutter
from data_pipeline.synth.rain import AREA_KM, Rain
from nowcastlab.errors import ConfigError
from nowcastlab.units import mmh_from_pixel

_GAPS, _OFF_GRID = 21, 22  # streams of randomness

_GAUGES_WITHIN_KM = 30.0  # the daily total is the mean of gauges all over this disc

# (chance a day, fewest frames, most frames): about 0.6% of frames are missing, as in the real archive
_GAPS_A_DAY = ((0.45, 1, 1), (0.2, 2, 2), (0.1, 3, 12))


@dataclass(frozen=True, kw_only=True)
class SyntheticPlan:
    """What to make. Checked here, before any frame is."""

    start: dt.date
    days: int
    size: int = 480
    seed: int = 1
    interval_minutes: int = 6
    gaps: bool = True
    off_grid: bool = False  # now and then a frame stamped a minute late

    def __post_init__(self) -> None:
        if self.days < 1:
            raise ConfigError(f"`days` (={self.days}) must be at least 1.")
        if self.interval_minutes < 1 or MINUTES_PER_DAY % self.interval_minutes:
            raise ConfigError(f"`interval_minutes` (={self.interval_minutes}) must divide a day of {MINUTES_PER_DAY}.")
        if not 2000 <= self.start.year < 2090:
            raise ConfigError(f"`start` (={self.start}) must lie between 2000 and 2089: file names hold two digits.")
        if self.off_grid and self.interval_minutes == 1:
            raise ConfigError("`off_grid` needs an `interval_minutes` of 2 or more: a minute late is the next frame.")

    @property
    def dates(self) -> list[dt.date]:
        return [self.start + dt.timedelta(days=i) for i in range(self.days)]

    @property
    def splits(self) -> dict[dt.date, str]:
        """The last sixth of the days for testing; before it every sixth day for validation, at least one if it can."""
        dates = self.dates
        test = max(1, round(len(dates) / 6)) if len(dates) > 1 else 0
        rest = len(dates) - test
        valid = set(range(3, rest, 6)) or ({rest - 1} if rest > 1 else set())
        return {date: "test" if i >= rest else "valid" if i in valid else "train" for i, date in enumerate(dates)}

    def minutes(self, date: dt.date) -> NDArray[np.int64]:
        """The stamps of the day's frames, without those lost."""
        stamps = np.arange(0, MINUTES_PER_DAY, self.interval_minutes) + first_minute(date)
        kept = np.ones(len(stamps), bool)
        if self.gaps:
            rng = np.random.default_rng((self.seed, _GAPS, date.toordinal()))
            for chance, fewest, most in _GAPS_A_DAY:
                if rng.random() < chance:
                    first = int(rng.integers(len(stamps)))
                    kept[first : first + int(rng.integers(fewest, most + 1))] = False
        stamps = stamps[kept]
        if self.off_grid:
            rng = np.random.default_rng((self.seed, _OFF_GRID, date.toordinal()))
            if rng.random() < 0.3:
                stamps[rng.integers(len(stamps))] += 1
        return stamps.astype(np.int64)


@dataclass(frozen=True)
class SyntheticDay:
    date: dt.date
    minutes: NDArray[np.int64]  # (n,)
    frames: NDArray[np.uint8]  # (n, y, x)
    gauge_mm: float


class Sky:
    """Makes the frames of a plan. Keeps fields between frames to save time, never anything a frame depends on."""

    def __init__(self, plan: SyntheticPlan) -> None:
        self.plan = plan
        self._rain = Rain(seed=plan.seed, size=plan.size)
        self._clutter = Clutter(seed=plan.seed, size=plan.size)

    @cached_property
    def exclusion(self) -> ExclusionMap:
        return self._clutter.exclusion()

    @property
    def planted(self) -> PlantedClutter:
        return self._clutter.planted

    @cached_property
    def _gauges(self) -> NDArray[np.bool_]:
        centre_km = (np.arange(self.plan.size) + 0.5) * AREA_KM / self.plan.size - AREA_KM / 2
        return np.hypot(centre_km[:, None], centre_km[None, :]) <= _GAUGES_WITHIN_KM

    def frames(self, minutes: NDArray[np.int64]) -> Iterator[NDArray[np.uint8]]:
        for minute in minutes.tolist():
            yield self._clutter.add(self._rain.pixels(minute), minute)

    def day(self, date: dt.date) -> SyntheticDay:
        minutes = self.plan.minutes(date)
        frames = np.empty((len(minutes), self.plan.size, self.plan.size), np.uint8)
        rain_mmh = 0.0
        for i, minute in enumerate(minutes.tolist()):
            rain = self._rain.pixels(minute)
            rain_mmh += float(mmh_from_pixel(rain[self._gauges]).mean())
            frames[i] = self._clutter.add(rain, minute)
        return SyntheticDay(date, minutes, frames, round(rain_mmh * self.plan.interval_minutes / 60, 1))
