"""Is a published number reproduced? An equivalence test, since "not significantly different" proves nothing.

Two one-sided tests (TOST): the difference is shown to be above -margin and shown to be below +margin. That is the same
as the 90% interval lying inside the margin. Few seeds make that harder, not easier.

Only seeds enter here. Both numbers were made on the same test days, so other weather would have moved both; and what it
does to each apart cannot be known, for a paper prints no scores by episode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from nowcastlab.errors import ReportError
from nowcastlab.significance.comparison import SeedSummary

MOST_SEEDS = 1000
_POWER = 0.8


@dataclass(frozen=True, kw_only=True)
class Published:
    """A number as printed. `std` 0 is for methods without seeds; None where the paper gives none for a trained one."""

    value: float
    std: float | None
    seeds: int
    digit: float  # one unit of the last digit printed, as 0.0001: the number is known no better than that


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Ours minus the published, and what may be said of it: reproduced, better, worse or undecided."""

    verdict: str
    difference: float
    margin: float
    low: float | None  # of the 90% interval, the one that must lie inside the margin
    high: float | None
    p_equivalence: float | None
    p_difference: float | None
    seeds: int
    published_seeds: int
    reason: str
    seeds_to_decide: int | None  # of ours, for 4 chances in 5; None: decided, or no number would do


def tost(difference: float, standard_error: float, df: float, *, margin: float) -> float:
    """p of "the difference is at least the margin, to either side": small means equivalent."""
    if margin <= 0:
        raise ReportError(f"`margin` (={margin:g}) must be positive: nothing is ever shown to be exactly equal.")
    if standard_error == 0:
        return float(abs(difference) >= margin)
    return float(stats.t.sf((margin - abs(difference)) / standard_error, df))


def reproduces(
    ours: SeedSummary, published: Published, *, margin: float, better: int, alpha: float = 0.05
) -> Reproduction:
    """`better`: +1 where a higher score is better, -1 where a lower one is; `Cell.better` has it.

    A trained arm without a printed deviation is taken to have ours.
    """
    difference = ours.mean - published.value
    common: dict[str, Any] = {
        "difference": difference,
        "margin": margin,
        "seeds": ours.seeds,
        "published_seeds": published.seeds,
    }
    if ours.std is None and not ours.deterministic:
        return Reproduction(
            **common,
            verdict="undecided",
            low=None,
            high=None,
            p_equivalence=None,
            p_difference=None,
            reason="one seed says nothing about another; train a second at least",
            seeds_to_decide=2,
        )
    error, df = (float(x) for x in _spread(ours.std or 0.0, ours.seeds, published))
    p_equal = tost(difference, error, df, margin=margin)
    p_differ = float(2 * stats.t.sf(abs(difference) / error, df)) if error > 0 else float(difference == 0)
    reach = float(stats.t.ppf(1 - alpha, df)) * error
    inside = f"the 90% interval {difference - reach:+.4g} to {difference + reach:+.4g}"
    needed = None
    if p_equal < alpha:
        verdict, reason = "reproduced", f"{inside} lies within +-{margin:g}"
    elif p_differ < alpha:
        verdict = "better" if difference * better > 0 else "worse"
        reason = f"it differs (p {p_differ:.2g}), and {inside} leaves +-{margin:g}"
    else:
        verdict = "undecided"
        needed = seeds_to_decide(ours, published, margin=margin, alpha=alpha)
        reason = f"{inside} leaves +-{margin:g}, yet holds 0; " + (
            f"{needed} seeds would decide it in 4 cases of 5, if difference and deviations stay as they are"
            if needed
            else f"no number of seeds would decide it: the published number's own {published.seeds} leave too much open"
        )
    return Reproduction(
        **common,
        verdict=verdict,
        low=difference - reach,
        high=difference + reach,
        p_equivalence=p_equal,
        p_difference=p_differ,
        reason=reason,
        seeds_to_decide=needed,
    )


def seeds_to_decide(ours: SeedSummary, published: Published, *, margin: float, alpha: float = 0.05) -> int | None:
    """How many seeds would show equivalence, or else a difference, with power 0.8 if the truth is what it seems."""
    difference = abs(ours.mean - published.value)
    seeds = np.arange(max(ours.seeds, 2), MOST_SEEDS + 1)
    error, df = _spread(ours.std or 0.0, seeds, published)
    # at no difference both sides can fail, so each gets half of the allowance
    allowance = (1 - _POWER) / (2 if difference < 0.1 * margin else 1)
    equal = margin - difference >= error * (stats.t.ppf(1 - alpha, df) + stats.t.ppf(1 - allowance, df))
    differ = difference >= error * (stats.t.ppf(1 - alpha / 2, df) + stats.t.ppf(_POWER, df))
    enough = seeds[equal | differ]
    return int(enough[0]) if len(enough) else None


def _spread(std: float, seeds: ArrayLike, published: Published) -> tuple[NDArray[Any], NDArray[Any]]:
    """Welch's standard error and degrees of freedom; the printed digit adds its rounding, uniform over one unit."""
    n = np.asarray(seeds, np.float64)
    if published.std is None:  # one estimate serves for both numbers, and must not count as two
        parts = [(std**2 * (1 / n + 1 / published.seeds), n - 1)]
    else:
        theirs = np.full_like(n, published.std**2 / published.seeds)
        parts = [(std**2 / n, n - 1), (theirs, np.full_like(n, published.seeds - 1))]
    variance, bottom = np.full_like(n, published.digit**2 / 12), np.zeros_like(n)
    for part, df in parts:
        variance += part
        bottom += np.divide(part**2, df, out=np.zeros_like(n), where=df > 0)
    return np.sqrt(variance), np.divide(variance**2, bottom, out=np.full_like(n, np.inf), where=bottom > 0)
