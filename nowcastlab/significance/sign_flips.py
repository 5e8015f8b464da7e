"""How large a difference episodes alone would make by chance, counted by turning their signs round.

Student's t takes what each episode adds to a difference for normal and of known weight. In a score that few storms
decide it is neither: where one storm makes most of the error, t is exceeded far less often than it says. If the arms
are equal, each episode might as well have spoken for the other one, so the t of the episodes is computed again with
their signs turned at random: a wild bootstrap with the null hypothesis imposed (Cameron, Gelbach and Miller 2008, doi
10.1162/rest.90.3.414). Its 95% point over Student's is the factor given here.

Signs say nothing about skew. An arm that is a little better in 55 storms and far worse in one has a difference that the
one storm speaks against, and turned signs would call it four times as often as t does. There t stays.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

MOST_EPISODES = 500  # with more, contributions add up to a normal sum, and leaving out each is dear
_FLIPS = 2**11
_LEVEL = 0.95


def critical_factor(difference: float, without: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """By what to multiply the episodes' standard error, so that Student's t cuts off 5% of the turned signs.

    without: (episode), the difference where that episode is left out. weights: (episode), shares that sum to 1.
    Never beyond 1/2 and 2.
    """
    episodes, squares = len(weights), float((weights**2).sum())
    centred = (1 - weights) * (difference - without)  # an error's w (d - D), whose sum is 0; linear for CSI and HSS
    own = centred + weights * difference  # w d, whose sum is the difference
    size = float((own**2).sum())
    if not np.isfinite(size) or size == 0 or difference * (centred**3).sum() < 0:
        return 1.0
    turned, crossed = (_signs(episodes) @ np.stack([own, own * weights], 1)).T
    # the sum over episodes of (s w d - w D')^2, D' being the turned difference
    variance = episodes / (episodes - 1) * (size - 2 * turned * crossed + turned**2 * squares)
    t = np.abs(turned) / np.sqrt(np.maximum(variance, 1e-12 * size))
    return float(np.clip(np.quantile(t, _LEVEL) / stats.t.ppf((1 + _LEVEL) / 2, 1 / squares - 1), 0.5, 2.0))


@lru_cache(maxsize=8)
def _signs(episodes: int) -> NDArray[np.float64]:
    """(flip, episode): all there are of few episodes, the last one's held (only the size counts); else the same draw
    for every comparison."""
    if 2 ** (episodes - 1) <= _FLIPS:
        bits = np.arange(2 ** (episodes - 1))[:, None] >> np.arange(episodes)
    else:
        bits = np.random.default_rng(episodes).integers(2, size=(_FLIPS, episodes))
    return (1 - 2 * (bits & 1)).astype(np.float64)
