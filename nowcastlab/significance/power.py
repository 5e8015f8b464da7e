"""How many seeds a difference needs, asked before the seeds are paid for.

    plan = Design(std=(52.0, 18.0))                        # B-MSE of ConvGRU and TrajGRU in Shi et al. 2017
    power(plan, difference=135.0, seeds=3)
    seeds_needed(plan, difference=135.0)
    seeds_needed(Design.from_pilot(comparison), difference=135.0)

Power is computed by playing the test itself on variances drawn as they would come out, so what is promised is what the
test does, correction for few seeds included.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nowcastlab.errors import ReportError
from nowcastlab.significance.comparison import Comparison
from nowcastlab.significance.interval import combine, p_value

MOST_SEEDS = 200
_DRAWS = 20_000


@dataclass(frozen=True, kw_only=True)
class Design:
    """What is known of a comparison beforehand, all in the units of the score.

    std: an arm's standard deviation over seeds, one entry for each arm that has seeds; of paired seeds, the standard
    deviation of their differences, one entry.
    episodes: the part of the difference's variance that weather alone makes, which no number of seeds reduces. A
    paper's table does not tell it; 0 means "for these very test days", and promises too much for other weather.
    interaction: the variance one seed adds by being lucky in some episodes, summed over arms.
    effective_episodes: 28.7 is that of the official HKO-7 test set by sequences; scores of heavy rain have fewer.
    """

    std: tuple[float, ...]
    episodes: float = 0.0
    interaction: float = 0.0
    effective_episodes: float = 28.7

    def __post_init__(self) -> None:
        if not self.std or min(self.std) < 0 or self.episodes < 0 or self.interaction < 0:
            raise ReportError(
                f"{self}: give a standard deviation over seeds for each arm that has seeds, none negative."
            )
        if self.effective_episodes <= 1:
            raise ReportError(f"`effective_episodes` (={self.effective_episodes:g}) must be above 1.")

    @classmethod
    def from_pilot(cls, pilot: Comparison) -> Design:
        """From a comparison already made, on fewer seeds."""
        parts = pilot.components
        if parts is None:
            raise ReportError(f"{pilot.a} and {pilot.b} give no pilot: {pilot.untestable}.")
        if not parts.seeds:
            raise ReportError(f"Neither {pilot.a} nor {pilot.b} has seeds, so there is no number of them to plan.")
        per_seed = [df + 1 for df in parts.seeds_df]
        return cls(
            std=tuple(float(np.sqrt(v * n)) for v, n in zip(parts.seeds, per_seed, strict=True)),
            episodes=max(parts.episodes - parts.interaction, 0.0),
            interaction=parts.interaction * min(per_seed),
            effective_episodes=pilot.effective_episodes,
        )


@dataclass(frozen=True, kw_only=True)
class SeedPlan:
    """How many seeds find a difference, or why none do."""

    difference: float
    seeds: int | None  # an arm; None: no number up to 200 does
    power: float  # with that many, or with 200
    wanted: float
    smallest_with_most: float  # the smallest difference found with the wanted power at 200 seeds
    alpha: float
    by_weather: bool  # at 200 seeds the weather's part of the variance is larger than the seeds'

    def text(self) -> str:
        """One sentence, with what to do where no number of seeds is enough."""
        if self.seeds is None:
            why, instead = (
                ("the chance of the test set alone hides it", "; for less, a larger one is needed")
                if self.by_weather
                else ("it is too small beside the deviations over seeds", "")
            )
            return (
                f"No number of seeds up to {MOST_SEEDS} finds a difference of {self.difference:g} in {self.wanted:.0%} "
                f"of cases ({self.power:.0%} at {MOST_SEEDS}): {why}. "
                f"About {self.smallest_with_most:.3g} could be found{instead}."
            )
        return (
            f"{self.seeds} seeds an arm find a difference of {self.difference:g} in {self.power:.0%} of cases "
            f"(two-sided test at {self.alpha:.3g})."
        )


def power(
    design: Design, *, difference: float, seeds: int, alpha: float = 0.05, draws: int = _DRAWS, seed: int = 0
) -> float:
    """The chance that `compare` finds a true difference of this size, with so many seeds an arm."""
    if seeds < 2:
        raise ReportError(f"`seeds` (={seeds}) must be at least 2: one seed says nothing about another.")
    rng = np.random.default_rng(seed)
    between = np.square(design.std) / seeds
    interaction = min(design.interaction / seeds, float(between.sum()))  # it is a part of the deviation over seeds
    weather = design.episodes + interaction
    df, episodes_df = seeds - 1, design.effective_episodes - 1
    found = difference + np.sqrt(between.sum() + design.episodes) * rng.standard_normal(draws)
    variance, combined_df = combine(
        between * rng.chisquare(df, (draws, len(between))) / df,
        np.full(len(between), df),
        weather * rng.chisquare(episodes_df, draws) / episodes_df,
        episodes_df,
        np.full(draws, interaction),
    )
    return float((p_value(found, variance, combined_df) < alpha).mean())


def seeds_needed(design: Design, *, difference: float, wanted: float = 0.8, alpha: float = 0.05) -> SeedPlan:
    """The fewest seeds an arm. In a family of m comparisons, ask at alpha / m to be sure of Holm's correction too."""
    size = abs(difference)
    if not size:
        raise ReportError("A difference of 0 is never found. Give the smallest one that would matter.")
    low, high = 2, MOST_SEEDS
    reached = {high: power(design, difference=size, seeds=high, alpha=alpha)}
    if reached[high] >= wanted:
        while low < high:  # power rises with the seeds
            middle = (low + high) // 2
            reached[middle] = power(design, difference=size, seeds=middle, alpha=alpha)
            low, high = (low, middle) if reached[middle] >= wanted else (middle + 1, high)
    return SeedPlan(
        difference=size,
        seeds=high if reached[high] >= wanted else None,
        power=reached[high],
        wanted=wanted,
        smallest_with_most=smallest_difference(design, seeds=MOST_SEEDS, wanted=wanted, alpha=alpha),
        alpha=alpha,
        by_weather=design.episodes > np.square(design.std).sum() / MOST_SEEDS,
    )


def smallest_difference(design: Design, *, seeds: int, wanted: float = 0.8, alpha: float = 0.05) -> float:
    """What so many seeds can find, to three digits."""
    scale = float(np.sqrt(np.square(design.std).sum() / seeds + design.episodes))
    low, high = 0.0, 100 * scale
    while high - low > 1e-3 * high and high > 0:
        middle = (low + high) / 2
        enough = power(design, difference=middle, seeds=seeds, alpha=alpha, draws=4000) >= wanted
        low, high = (low, middle) if enough else (middle, high)
    return high
