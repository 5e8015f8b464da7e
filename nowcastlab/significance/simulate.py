"""Benchmarks made up to known truth: what the calibration and the tests of this package run on.

Episodes have the lengths of the official HKO-7 test walk's, drawn with replacement, and rain that differs between them
more than tenfold, so few episodes decide a score, as in nature. An arm's hit rate in an episode is

    logit(hits) = episode + lead + arm + seed + arm x episode + seed x episode

and CSI, HSS and B-MSE are computed from the counts by the code that computes the real ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from nowcastlab.significance.episodes import EpisodeSums
from nowcastlab.significance.resample import Arm

# Windows in each of the 56 episodes of the official test days, as {length: how many}.
OFFICIAL_LENGTHS = Counter(
    {19: 1, 39: 1, 44: 23, 48: 1, 57: 1, 92: 14, 118: 1, 140: 5, 188: 2, 236: 1, 260: 1, 284: 2, 332: 1, 380: 1, 620: 1}
)
LEADS = 3
PIXELS = 1e5  # a sequence


@dataclass(frozen=True, kw_only=True)
class Truth:
    """The standard deviation of every part of the logit."""

    seed: float
    arm_by_episode: float
    seed_by_episode: float
    rain: float = 0.7  # of the logarithm of an episode's rain a sequence
    episode: float = 0.5
    heavy_tails: bool = False  # the two parts by episode from Student's t with 4 degrees instead of the normal


def simulate(
    truth: Truth,
    *,
    episodes: int,
    seeds: Sequence[int],
    advantage: Sequence[float] = (0.0, 0.0),
    rng: np.random.Generator,
) -> list[Arm]:
    """Arms "arm0", "arm1", ... with seeds[i] runs each and advantage[i] on the logit. All else is drawn anew."""
    lengths = rng.choice(list(OFFICIAL_LENGTHS.elements()), episodes)
    rain = lengths * PIXELS * 0.02 * np.exp(truth.rain * rng.standard_normal(episodes))
    rain = np.minimum(rain, 0.3 * lengths * PIXELS)
    common = truth.episode * rng.standard_normal(episodes)[:, None] - 0.3 * np.arange(LEADS)
    arms = []
    for i, (n, better) in enumerate(zip(seeds, advantage, strict=True)):
        by_episode = better + truth.arm_by_episode * _draw(truth, episodes, rng)
        runs = {}
        for s in range(1, n + 1):
            own = truth.seed * rng.standard_normal() + truth.seed_by_episode * _draw(truth, episodes, rng)
            runs[s] = _sums(lengths, rain, expit(common + (by_episode + own)[:, None]))
        arms.append(Arm(name=f"arm{i}", runs=runs))
    return arms


def _draw(truth: Truth, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    # variance 1 either way: a t with 4 degrees of freedom has 2
    return rng.standard_t(4, size) / np.sqrt(2) if truth.heavy_tails else rng.standard_normal(size)


def _sums(lengths: NDArray[np.int64], rain: NDArray[np.float64], hits: NDArray[np.float64]) -> EpisodeSums:
    observed = np.repeat(np.rint(rain)[:, None], LEADS, 1)
    tp = np.rint(observed * hits)
    fp = np.rint(0.8 * (observed - tp))
    tn = lengths[:, None] * PIXELS - observed - fp
    counts = dict(zip(("tp", "fn", "fp", "tn"), (tp, observed - tp, fp, tn), strict=True))
    return EpisodeSums(
        sequences=lengths.astype(np.int64),
        lead_minutes=np.arange(6.0, 6.0 * LEADS + 1, 6.0, dtype=np.float64),
        errors={"bmse": observed * (1 - hits)},
        counts={name: table.astype(np.int64)[:, :, None] for name, table in counts.items()},
        thresholds_mmh=np.array([5.0]),
    )
