"""Is the 5% test a 5% test? Played on made-up benchmarks of known truth, through the code that makes the real tables.

Under no difference the share of simulations that "find" one should be 3-7%; under a known difference it should be what
`power` states. Beside it stand the two rules it replaces: the plain bootstrap's percentile interval, and a difference
of three standard deviations over seeds.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nowcastlab.errors import ReportError
from nowcastlab.significance.comparison import Comparison, compare, summarise
from nowcastlab.significance.power import Design, power
from nowcastlab.significance.resample import resample
from nowcastlab.significance.simulate import Truth, simulate

# Where the variance of a difference comes from; the shares are printed with the results.
TRUTHS = {
    "seeds": Truth(seed=0.1, arm_by_episode=0.02, seed_by_episode=0.02),
    "episodes": Truth(seed=0.01, arm_by_episode=0.3, seed_by_episode=0.05),
    "both": Truth(seed=0.05, arm_by_episode=0.2, seed_by_episode=0.1),
    "interaction": Truth(seed=0.01, arm_by_episode=0.03, seed_by_episode=0.3),
    "heavy tails": Truth(seed=0.05, arm_by_episode=0.2, seed_by_episode=0.1, rain=1.2, heavy_tails=True),
}
SCORES = ("csi", "bmse")
RESAMPLES = 400
POWER_DRAWS = 300  # for each of hundreds of pilots


@dataclass(frozen=True, kw_only=True)
class Rates:
    """How often a difference was called, by rule, over simulations of one score."""

    truth: str
    score: str
    seeds: int
    episodes: int
    effective_episodes: float
    simulations: int
    untestable: int
    found: float  # by the test of this package, at 5%; NaN where no simulation could be tested
    plain: float  # 0 lies outside the plain bootstrap's 95% percentile interval
    three_deviations: float  # the rule of Shi et al. 2017
    seeds_share: float  # of the variance, on average
    episodes_share: float
    interaction_share: float

    @property
    def error(self) -> float:
        """Binomial standard error of `found`."""
        return float(np.sqrt(self.found * (1 - self.found) / self.simulations))


@dataclass(frozen=True, kw_only=True)
class PowerCheck:
    """The share of simulations in which a known difference was found, beside the power stated for it."""

    truth: str
    score: str
    seeds: int
    episodes: int
    difference: float  # relative to the worse arm's score
    stated: float
    found: float
    simulations: int

    @property
    def error(self) -> float:
        return float(np.sqrt(self.found * (1 - self.found) / self.simulations))


Watch = Callable[[Iterable[int]], Iterable[int]]


def rejection_rates(
    truth: str, *, seeds: int, episodes: int, simulations: int, seed: int, watch: Watch = iter
) -> list[Rates]:
    """Two arms of the same quality, compared again and again on new weather and new seeds."""
    played = _play(truth, (0.0, 0.0), seeds, episodes, simulations, seed, watch)
    return [_rates(truth, seeds, episodes, [c for c, _ in played[score]]) for score in SCORES]


def power_check(
    truth: str, *, advantage: float, seeds: int, episodes: int, simulations: int, seed: int, watch: Watch = iter
) -> list[PowerCheck]:
    """The stated power is the mean of what is stated for each of a first set of simulations, the found from a second.

    Each is a pilot with the weather of its own summer, as a plan has it: one storm more and a difference is harder to
    find, so the power of an average summer is not the average power. Its seeds tell too little alone; their deviations
    are averaged over all. Differences and deviations are relative to the worse arm's score: a wet summer has a larger
    B-MSE than a dry one.
    """
    both = (advantage, 0.0)
    pilots = _play(truth, both, seeds, episodes, simulations, seed, watch)
    played = _play(truth, both, seeds, episodes, simulations, seed + 1, watch)
    return [_power_check(truth, score, seeds, episodes, pilots[score], played[score]) for score in SCORES]


def _play(
    truth: str, advantage: tuple[float, float], seeds: int, episodes: int, simulations: int, seed: int, watch: Watch
) -> dict[str, list[tuple[Comparison, float]]]:
    """Every comparison with the second arm's score. Settings share no draws, so their errors are independent."""
    rng = np.random.default_rng([seed, seeds, episodes, zlib.crc32(truth.encode())])
    out: dict[str, list[tuple[Comparison, float]]] = {score: [] for score in SCORES}
    for i in watch(range(simulations)):
        arms = simulate(TRUTHS[truth], episodes=episodes, seeds=(seeds, seeds), advantage=advantage, rng=rng)
        benchmark = resample(arms, seed=i, resamples=RESAMPLES, scores=SCORES)
        for cell in benchmark.cells:
            score = summarise(benchmark, "arm1", cell).mean
            out[cell.score].append((compare(benchmark, "arm0", "arm1", cell), score))
    return out


def _rates(truth: str, seeds: int, episodes: int, played: list[Comparison]) -> Rates:
    variances = [parts for parts in map(_variances, played) if parts is not None]
    # nothing could be tested: then nothing is known, which is not "never called"
    by_source = np.mean(variances, axis=0) if variances else np.full(3, np.nan)
    shares = by_source / by_source.sum()
    return Rates(
        truth=truth,
        score=played[0].cell.score,
        seeds=seeds,
        episodes=episodes,
        effective_episodes=float(np.mean([c.effective_episodes for c in played])),
        simulations=len(played),
        untestable=len(played) - len(variances),
        found=_share(c.p is not None and c.p < 0.05 for c in played) if variances else np.nan,
        plain=_share(_beyond_plain(c) for c in played) if variances else np.nan,
        three_deviations=_share(bool(c.three_deviations) for c in played),
        seeds_share=float(shares[0]),
        episodes_share=float(shares[1]),
        interaction_share=float(shares[2]),
    )


def _power_check(
    truth: str,
    score: str,
    seeds: int,
    episodes: int,
    pilots: list[tuple[Comparison, float]],
    played: list[tuple[Comparison, float]],
) -> PowerCheck:
    found = [(c, scale, parts) for c, scale in pilots if (parts := _variances(c)) is not None]
    if not found:
        raise ReportError(f"None of {len(pilots)} pilots with {episodes} episodes could be tested. Give more episodes.")
    relative = np.array([np.divide(parts, scale**2) for _, scale, parts in found])
    difference = float(np.mean([c.difference / scale for c, scale, _ in found]))
    by_seeds, _, together = relative.mean(0)
    stated = [
        power(
            Design(
                # half of the seeds' variance to each arm: they are alike in all but the advantage
                std=(float(np.sqrt(seeds * by_seeds / 2)),) * 2,
                episodes=max(float(by_episodes - interaction), 0.0),
                interaction=float(seeds * together),
                effective_episodes=c.effective_episodes,
            ),
            difference=difference,
            seeds=seeds,
            draws=POWER_DRAWS,
            seed=i,
        )
        for i, ((c, _, _), (_, by_episodes, interaction)) in enumerate(zip(found, relative, strict=True))
    ]
    return PowerCheck(
        truth=truth,
        score=score,
        seeds=seeds,
        episodes=episodes,
        difference=difference,
        stated=float(np.mean(stated)),
        found=_share(c.p is not None and c.p < 0.05 for c, _ in played),
        simulations=len(played),
    )


def _variances(comparison: Comparison) -> tuple[float, float, float] | None:
    """By seeds, episodes and interaction; None where nothing could be tested."""
    parts = comparison.components
    return None if parts is None else (sum(parts.seeds), parts.episodes, parts.interaction)


def _beyond_plain(c: Comparison) -> bool:
    return c.plain_low is not None and c.plain_high is not None and c.plain_low * c.plain_high > 0


def _share(answers: Iterator[Any]) -> float:
    return float(np.mean([bool(answer) for answer in answers]))
