"""The one rule of this package: from three variances to a standard error and its degrees of freedom.

A difference between two arms is uncertain for three reasons:

- **seeds**: other seeds would have given other networks. Estimated from few seeds, so poorly.
- **episodes**: other weather would have favoured one arm or the other.
- their **interaction**: a seed that is lucky in one episode and not in another. It is part of both estimates above, so
  their plain sum counts it twice.

The variance is `episodes + seeds - (1 - 3/4n) interaction`, with n seeds. Taking away all of the interaction would be
right on average, but leaves too little whenever few seeds happen to agree; of three, three quarters are taken. When
they agree so well that their part would be negative, the episodes' part, which holds the interaction too, may lose up
to three tenths of it: with none of that the test is too careful where interaction is all there is. The degrees of
freedom are Satterthwaite's, with the seeds' part counted double: an estimate from two or four degrees of freedom that
comes out small is more often luck than truth.

None of the three numbers (3/4, 3/10, 2) is derived: they were picked from about eighty variants, so that on normal
variables a 5% test of two arms rejects in 3-7% of cases from three seeds an arm on, wherever the variance lies
(`tests/significance/test_interval.py`). `nowcastlab calibrate` shows what the whole procedure does on made-up
benchmarks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

INTERACTION_LEFT = 0.75  # over the number of seeds
MOST_TAKEN_FROM_EPISODES = 0.3
SEEDS_COUNTED = 2.0


@dataclass(frozen=True, kw_only=True)
class Components:
    """The variance of one difference, by source, as it counts in the test.

    Seeds: one entry for each independent set of seeds. Episodes: with the factor of `sign_flips`, squared.
    """

    seeds: tuple[float, ...]
    seeds_df: tuple[float, ...]
    episodes: float
    episodes_df: float
    interaction: float

    def spread(self) -> tuple[float, float]:
        """Standard error and degrees of freedom."""
        variance, df = combine(self.seeds, self.seeds_df, self.episodes, self.episodes_df, self.interaction)
        return float(np.sqrt(variance)), float(df)


def combine(
    seeds: ArrayLike, seeds_df: ArrayLike, episodes: ArrayLike, episodes_df: float, interaction: ArrayLike
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Variance and degrees of freedom; `seeds` is (..., set of seeds), the others (...)."""
    seeds, seeds_df = np.asarray(seeds, np.float64), np.asarray(seeds_df, np.float64)
    episodes, interaction = np.asarray(episodes, np.float64), np.asarray(interaction, np.float64)
    together = seeds.sum(-1)
    least = -MOST_TAKEN_FROM_EPISODES * np.minimum(episodes, interaction)
    left = INTERACTION_LEFT / (1 + seeds_df.min(initial=np.inf))
    net = np.maximum(together - (1 - left) * interaction, least)
    share = np.divide(np.abs(net), together, out=np.zeros_like(net), where=together > 0)
    counted = SEEDS_COUNTED * share[..., None] * seeds
    top = (episodes + SEEDS_COUNTED * np.abs(net)) ** 2
    bottom = (counted**2 / seeds_df).sum(-1) + episodes**2 / episodes_df
    df = np.divide(top, bottom, out=np.full_like(top, np.inf), where=bottom > 0)
    return episodes + net, df


def p_value(difference: ArrayLike, variance: ArrayLike, df: ArrayLike) -> NDArray[Any]:
    """Two-sided. Without any variance, 1 for no difference and 0 for any."""
    difference, variance = np.abs(np.asarray(difference, np.float64)), np.asarray(variance, np.float64)
    still = np.where(difference == 0, 0.0, np.inf)
    t = np.divide(difference, np.sqrt(variance), out=still, where=variance > 0)
    return 2 * stats.t.sf(t, df)


def half_width(standard_error: float, df: float, *, level: float) -> float:
    """How far an interval of this level reaches to either side."""
    return float(stats.t.ppf((1 + level) / 2, df) * standard_error)
