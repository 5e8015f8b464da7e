"""Two arms compared in one score: difference, interval, effect size, p-value, and a sentence that says no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nowcastlab.errors import ReportError
from nowcastlab.significance.interval import Components, half_width, p_value
from nowcastlab.significance.resample import Benchmark, Cell
from nowcastlab.significance.sign_flips import critical_factor

LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class SeedSummary:
    """Mean and standard deviation over seeds, as the benchmark's two tables print them.

    The divisor is n - 1. Shi et al. 2017 do not say which they used; with three seeds the other one gives 0.816 times
    as much. With one run there is no standard deviation.
    """

    mean: float
    std: float | None
    seeds: int
    deterministic: bool


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """`a` minus `b`. Where nothing can be tested, `untestable` says why and the interval is missing."""

    a: str
    b: str
    cell: Cell
    difference: float
    seeds: tuple[int, ...]  # runs of each arm
    paired_seeds: bool
    episodes: int
    effective_episodes: float  # as many episodes of equal weight would be as uncertain
    resamples: int
    effect_size: float | None  # difference / standard deviation over seeds, Hedges-corrected; see `_effect_size`
    std_larger: float | None  # of the two arms' standard deviations over seeds
    untestable: str | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    standard_error: float | None = None
    df: float | None = None
    components: Components | None = None
    plain_low: float | None = None  # the uncorrected percentile interval, for comparison only
    plain_high: float | None = None
    p_holm: float | None = None  # over `family` comparisons
    family: int | None = None

    @property
    def p_decisive(self) -> float | None:
        """Holm's where the comparison has a family, else its own."""
        return self.p if self.p_holm is None else self.p_holm

    def winner(self, *, alpha: float = 0.05) -> str | None:
        """The arm shown to be better, or None: nothing shown, or a score without a better side."""
        if self.p_decisive is None or self.p_decisive >= alpha or not self.cell.better:
            return None
        return self.a if self.difference * self.cell.better > 0 else self.b

    @property
    def three_deviations(self) -> bool | None:
        """The rule of Shi et al. 2017, read strictly: the difference exceeds three times the larger deviation."""
        return None if self.std_larger is None else abs(self.difference) > 3 * self.std_larger

    @property
    def decimals(self) -> int:
        """So many that two digits of the uncertainty show."""
        return _decimals(self.difference if self.standard_error is None else self.standard_error)

    def text(self, *, alpha: float = 0.05, drawn: str = "episodes") -> str:
        """One sentence with its n. `drawn`: what to call episodes that are single sequences."""
        d = self.decimals
        seeds = " and ".join(map(str, self.seeds))
        n = (
            f"{seeds} {'paired ' if self.paired_seeds else ''}seeds, {self.episodes} {drawn}"
            f" that weigh as {self.effective_episodes:.1f}"
        )
        found = f"{self.difference:+.{d}f}" if np.isfinite(self.difference) else "no data"
        difference = f"{self.cell}, {self.a} - {self.b}: {found}"
        if self.low is None or self.high is None or self.p is None:
            return f"{difference}. Not testable: {self.untestable} ({n})."
        holm = "" if self.p_holm is None else f", {p_text(self.p_holm)} after Holm over {self.family}"
        numbers = f"95% interval {self.low:+.{d}f} to {self.high:+.{d}f}, p {p_text(self.p)}{holm}; {n}"
        winner = self.winner(alpha=alpha)
        if winner:
            return f"{difference}: {winner} is better ({numbers})."
        if self.p_decisive is not None and self.p_decisive < alpha:
            return f"{difference}: they differ ({numbers})."
        return f"{difference}: no difference shown, which does not show that there is none ({numbers})."


def summarise(benchmark: Benchmark, arm: str, cell: Cell) -> SeedSummary:
    """Of one arm in one score, on the test set itself."""
    member = benchmark.arm(arm)
    values = benchmark.scores[arm][:, benchmark.index(cell)]
    return SeedSummary(
        mean=float(values.mean()),
        std=float(values.std(ddof=1)) if len(values) > 1 else None,
        seeds=len(values),
        deterministic=member.deterministic,
    )


def compare(benchmark: Benchmark, a: str, b: str, cell: Cell, *, paired_seeds: bool = False) -> Comparison:
    """`paired_seeds`: run s of both arms is the same training, as offline and online of one network are."""
    if a == b:
        raise ReportError(f"Arm {a} is compared with itself.")
    return contrast(benchmark, {a: 1.0, b: -1.0}, cell, names=(a, b), paired_seeds=paired_seeds)


def estimate(benchmark: Benchmark, arm: str, cell: Cell) -> Comparison:
    """An arm's own score with its interval: the difference from 0. Wider than a difference between arms ever is, since
    nothing is paired away; its p-value means nothing."""
    return contrast(benchmark, {arm: 1.0}, cell, names=(arm, "0"))


def contrast(
    benchmark: Benchmark,
    coefficients: Mapping[str, float],
    cell: Cell,
    *,
    names: tuple[str, str],
    paired_seeds: bool = False,
) -> Comparison:
    """Any weighted sum of arms, as a trend over link counts: {"Traj-L5": -3, "Traj-L9": -1, "Traj-L13": 1, ...}."""
    at = benchmark.index(cell)
    arms = {name: benchmark.arm(name) for name in coefficients}
    if paired_seeds and len({tuple(sorted(arm.runs)) for arm in arms.values()}) > 1:
        lists = "; ".join(f"{name} has {sorted(arm.runs)}" for name, arm in arms.items())
        raise ReportError(f"Seeds can be paired only where the arms have the same ones: {lists}.")
    # Sets of seeds that were drawn independently: one an arm, or one for all arms if they are the same trainings.
    sets = (
        [_joint(benchmark, coefficients, at)]
        if paired_seeds
        else [_joint(benchmark, {name: c}, at) for name, c in coefficients.items()]
    )
    difference = float(sum(s.here.mean() for s in sets))
    weights = np.mean([benchmark.weights[name][at] for name in coefficients], axis=0)
    effective = float(1 / (weights**2).sum()) if weights.sum() > 0 else 0.0
    plain: dict[str, Any] = {
        "a": names[0],
        "b": names[1],
        "cell": cell,
        "difference": difference,
        "seeds": tuple(len(arm.runs) for arm in arms.values()),
        "paired_seeds": paired_seeds,
        "episodes": benchmark.episodes,
        "effective_episodes": effective,
        "resamples": benchmark.resamples,
        **_against_seeds(benchmark, coefficients, at, difference),
    }
    untestable = _untestable(benchmark, coefficients, sets, effective, difference)
    if untestable:
        return Comparison(**plain, untestable=untestable)
    components = _components(
        sets, benchmark.episodes, effective, _flipped(benchmark, coefficients, at, difference, weights)
    )
    error, df = components.spread()
    reach = half_width(error, df, level=LEVEL)
    joint = sum((s.there * s.draws).sum(1) for s in sets)
    low, high = np.nanquantile(joint, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Comparison(
        **plain,
        low=difference - reach,
        high=difference + reach,
        p=float(p_value(difference, error**2, df)),
        standard_error=error,
        df=df,
        components=components,
        plain_low=float(low),
        plain_high=float(high),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _SeedSet:
    here: NDArray[np.float64]  # (seed): on the test set
    there: NDArray[np.float64]  # (resample, seed): on each resample of its episodes
    draws: NDArray[np.float64]  # (resample, seed): how often each seed was drawn / number of seeds
    fixed: bool


def _joint(benchmark: Benchmark, coefficients: Mapping[str, float], at: int) -> _SeedSet:
    """The arms' weighted sum, seed by seed (in the order of the seeds, which is the same in all of them)."""
    here, there = [], []
    for name, c in coefficients.items():
        order = np.argsort(list(benchmark.arms[name].runs))
        here.append(c * benchmark.scores[name][order, at])
        there.append(c * benchmark.resampled[name][:, order, at])
    first = next(iter(coefficients))
    return _SeedSet(
        here=np.sum(here, axis=0),
        there=np.sum(there, axis=0),
        draws=benchmark.seed_draws[first],
        fixed=all(benchmark.arms[name].deterministic for name in coefficients),
    )


def _flipped(
    benchmark: Benchmark, coefficients: Mapping[str, float], at: int, difference: float, weights: NDArray[np.float64]
) -> float:
    """What turned signs make of the episodes' standard error. An arm's own score, whose coefficients do not cancel, is
    not thought to be 0 by anyone, so nothing may be turned there."""
    without = np.sum([c * benchmark.without[name][at] for name, c in coefficients.items()], axis=0)
    if not without.size or not np.isclose(sum(coefficients.values()), 0):
        return 1.0
    return critical_factor(difference, without, weights)


def _components(sets: list[_SeedSet], episodes: int, effective: float, flipped: float) -> Components:
    """The bootstrap's variances, each freed of the bias that resampling few things has.

    A resample of n things has only (n - 1) / n of the variance. Drawing from n seeds has a closed form, the variance
    over seeds divided by n, so no dice are thrown for it; likewise for the interaction, within each resample of the
    episodes. How well the episodes' variance is known depends on their effective number: 56 episodes of which one holds
    a tenth of the rain are not 56. Where they are far from normal, `flipped` says how much less, or more, it takes.
    """
    unbiased = episodes / (episodes - 1)
    moved = np.sum([s.there.mean(1) for s in sets], axis=0)
    random = [s for s in sets if not s.fixed]
    shifts = [s.there - s.here for s in random]
    return Components(
        seeds=tuple(float(s.here.var(ddof=1)) / len(s.here) for s in random),
        seeds_df=tuple(float(len(s.here) - 1) for s in random),
        episodes=flipped**2 * unbiased * float(np.nanvar(moved)),
        episodes_df=effective - 1,
        interaction=unbiased * sum(float(np.nanmean(x.var(axis=1, ddof=1))) / x.shape[1] for x in shifts),
    )


def _untestable(
    benchmark: Benchmark,
    coefficients: Mapping[str, float],
    sets: list[_SeedSet],
    effective: float,
    difference: float,
) -> str | None:
    if not np.isfinite(difference):
        return "the threshold was never observed, so there is no data"
    single = [name for name in coefficients if len(benchmark.arms[name].runs) < 2]
    single = [name for name in single if not benchmark.arms[name].deterministic]
    if single:
        have = "has one seed" if len(single) == 1 else "have one seed each"
        return f"{' and '.join(single)} {have}, which says nothing about another; train a second at least"
    if effective < 2:
        return f"the episodes weigh as {effective:.1f}: one decides the score alone; test on more weather"
    lost = float(np.mean(np.any([~np.isfinite(s.there.mean(1)) for s in sets], axis=0)))
    if lost > 0.05:
        return f"in {lost:.0%} of the resamples the threshold is not observed; test on more weather"
    return None


def _against_seeds(
    benchmark: Benchmark, coefficients: Mapping[str, float], at: int, difference: float
) -> dict[str, float | None]:
    """What the deviations over seeds alone say of the difference."""
    stds = {n: float(benchmark.scores[n][:, at].std(ddof=1)) for n in coefficients if len(benchmark.arms[n].runs) > 1}
    return {
        "effect_size": _effect_size(difference, {n: (std, len(benchmark.arms[n].runs)) for n, std in stds.items()}),
        "std_larger": max(stds.values(), default=None),
    }


def _effect_size(difference: float, stds: Mapping[str, tuple[float, int]]) -> float | None:
    """How many standard deviations between seeds the difference is: Cohen's d with Hedges' correction.

    The deviation is pooled over the arms that have one; an arm without seeds has none. At three seeds an arm the
    correction is 0.8, and the number is still a rough one.
    """
    df = sum(n - 1 for _, n in stds.values())
    if not df:
        return None
    pooled = np.sqrt(sum((n - 1) * std**2 for std, n in stds.values()) / df)
    return float(difference / pooled * (1 - 3 / (4 * df - 1))) if pooled > 0 else None


def _decimals(uncertainty: float) -> int:
    """So many that two digits of the uncertainty show: 0.0012 and 34 alike."""
    if not np.isfinite(uncertainty) or uncertainty == 0:
        return 4
    return int(np.clip(1 - np.floor(np.log10(abs(uncertainty))), 0, 12))


def p_text(p: float | None) -> str:
    """A p-value as it is printed; a dash where there is none."""
    return "-" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"
