"""Kendall's tau between scores over runs: does a lower B-MSE go with a higher CSI?

Runs of one arm differ little, so 8 arms with 3 seeds are not 24 independent points. The interval leaves out one arm at
a time with all its runs (a jackknife), and n is said both ways. Shi et al. 2017 do not say which runs their table has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from nowcastlab.errors import ReportError


@dataclass(frozen=True, kw_only=True)
class Tau:
    """`low` and `high` are missing with fewer than five arms, and where leaving one out leaves nothing to correlate or
    changes nothing at all: too little to say how far off tau may be."""

    tau: float
    low: float | None
    high: float | None
    runs: int
    arms: int


def kendall(x: ArrayLike, y: ArrayLike, arms: Sequence[str]) -> Tau:
    """tau-b of two scores, an entry a run; `arms` names each run's arm."""
    first, second = _columns(arms, x, y)
    return _jackknifed(lambda keep: _tau(first[keep], second[keep]), arms, bounds=(-1.0, 1.0))


def kendall_gain(x: ArrayLike, than: ArrayLike, y: ArrayLike, arms: Sequence[str]) -> Tau:
    """|tau(x, y)| - |tau(than, y)|: above 0, x tracks y more closely than `than` does, as B-MSE against MSE.

    `y` may be several scores, (score, run): then it is the mean gain over them.
    """
    one, other, *targets = _columns(arms, x, than, *np.atleast_2d(np.asarray(y, np.float64)))

    def gain(keep: NDArray[np.bool_]) -> float:
        each = [abs(_tau(one[keep], y[keep])) - abs(_tau(other[keep], y[keep])) for y in targets]
        return float(np.mean(each))

    return _jackknifed(gain, arms, bounds=(-1.0, 1.0))


def _columns(arms: Sequence[str], *columns: ArrayLike) -> list[NDArray[np.float64]]:
    arrays = [np.asarray(column, np.float64) for column in columns]
    for array in arrays:
        if array.shape != (len(arms),) or not np.isfinite(array).all():
            raise ReportError(f"{len(arms)} runs need {len(arms)} finite values of each score, got {array.tolist()}.")
    return arrays


def _tau(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    return float(stats.kendalltau(x, y).statistic)


def _jackknifed(
    statistic: Callable[[NDArray[np.bool_]], float], arms: Sequence[str], *, bounds: tuple[float, float]
) -> Tau:
    named = np.asarray(arms)
    groups = list(dict.fromkeys(arms))
    if len(groups) < 2:
        raise ReportError(f"Kendall's tau needs runs of two arms at least, got {len(groups)}.")
    whole, k = statistic(np.ones(len(named), np.bool_)), len(groups)
    low = high = None
    if k >= 5:
        without = np.array([statistic(named != group) for group in groups])
        if np.isfinite([whole, *without]).all() and np.ptp(without) > 0:
            error = np.sqrt((k - 1) / k * ((without - without.mean()) ** 2).sum())
            reach = float(stats.t.ppf(0.975, k - 1) * error)
            low, high = max(whole - reach, bounds[0]), min(whole + reach, bounds[1])
    return Tau(tau=whole, low=low, high=high, runs=len(named), arms=k)
