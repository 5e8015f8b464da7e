"""A first reading of every frame of a source: which can be used, and which pixels are missing how often."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data_pipeline.archive_layout import MINUTES_PER_DAY, date_of
from data_pipeline.radar_source import RadarSource
from data_pipeline.regrid import Regrid
from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.stamps import clock

Watch = Callable[[Iterable[int]], Iterable[int]]


@dataclass(frozen=True, kw_only=True)
class Problem:
    stamp: str
    what: str


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What a first reading of every frame found, before anything is written."""

    positions: dict[dt.date, list[int]]  # the usable frames of each day, in order
    missing_share: NDArray[np.float64]  # (y, x), over the usable frames
    missing_pixels: int
    problems: list[Problem]


def commonest_gap(minutes: NDArray[np.int64]) -> int:
    """The interval of a source that does not state it."""
    gaps = np.diff(np.unique(minutes))
    if not len(gaps):
        raise ConfigError("One frame does not show the interval: pass --interval-minutes.")
    values, counts = np.unique(gaps, return_counts=True)
    return int(values[np.argmax(counts)])


def usable_order(minutes: NDArray[np.int64], interval_minutes: int) -> tuple[list[int], list[Problem]]:
    """Positions in order of time, one a slot: of two frames that claim one slot the nearer to it stays."""
    from nowcastlab.store.schema import slot_of

    best: dict[tuple[int, int], int] = {}
    problems = []

    def distance(position: int, slot: int) -> int:
        return abs(int(minutes[position]) % MINUTES_PER_DAY - slot * interval_minutes)

    for position in np.argsort(minutes, kind="stable").tolist():
        day, of_day = divmod(int(minutes[position]), MINUTES_PER_DAY)
        slot = int(slot_of(np.array([of_day]), interval_minutes)[0])
        other = best.get((day, slot))
        if other is None:
            best[day, slot] = position
            continue
        nearer = distance(position, slot) < distance(other, slot)
        loser, winner = (other, position) if nearer else (position, other)
        best[day, slot] = winner
        why = (
            "is there twice" if minutes[loser] == minutes[winner] else f"shares its slot with {clock(minutes[winner])}"
        )
        problems.append(Problem(stamp=clock(minutes[loser]), what=f"{why}: left out"))
    return list(best.values()), problems


def survey(source: RadarSource, regrid: Regrid, interval_minutes: int, *, watch: Watch = iter) -> Survey:
    """Read every frame once: which can be used, and which pixels are missing how often."""
    order, problems = usable_order(source.minutes, interval_minutes)
    positions: dict[dt.date, list[int]] = defaultdict(list)
    missing = np.zeros(regrid.grid, np.int64)
    frames = 0
    for position in watch(order):
        stamp = int(source.minutes[position])
        try:
            stored = source.read(position)
            if stored.shape != source.grid:
                raise StoreError(f"is {stored.shape}, the first frame {source.grid}")
            _, known = regrid(stored)
        except StoreError as error:
            problems.append(Problem(stamp=clock(stamp), what=f"{error}: left out"))
            continue
        if not known.any():
            problems.append(Problem(stamp=clock(stamp), what="has no known value at all: left out as a missing frame"))
            continue
        missing += ~known
        frames += 1
        positions[date_of(stamp)].append(position)
    if not frames:
        first = f" The first: {problems[0].stamp} {problems[0].what}." if problems else ""
        raise StoreError(f"None of {len(source.minutes)} frames can be used.{first}")
    return Survey(
        positions=dict(positions),
        missing_share=missing / frames,
        missing_pixels=int(missing.sum()),
        problems=problems,
    )
