"""Many comparisons at once: Holm's correction, and claims that need every one of their comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nowcastlab.errors import ReportError
from nowcastlab.significance.comparison import Comparison


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjusted p-values, in the order given: the smallest times m, the next times m - 1, ..., never falling.

    The chance that even one true "no difference" is called a difference stays below alpha, however the comparisons hang
    together.
    """
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    out = np.empty_like(p)
    out[order] = adjusted
    return out


def family(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons named before the run, corrected for being several. One that cannot be tested still counts."""
    p = [1.0 if c.p is None else c.p for c in comparisons]
    return [
        replace(c, p_holm=None if c.p is None else float(adjusted), family=len(comparisons))
        for c, adjusted in zip(comparisons, holm(p), strict=True)
    ]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement that holds only if each of its comparisons does."""

    verdict: str  # "shown", "contradicted" or "undecided"
    p: float | None  # of the weakest comparison
    shown: int
    contradicted: int
    comparisons: int

    def text(self) -> str:
        """The verdict, and by how many comparisons."""
        n = f"{self.shown} of {self.comparisons} comparisons show it"
        against = f", {self.contradicted} the opposite" if self.contradicted else ""
        return f"{self.verdict}: {n}{against}"


def all_of(comparisons: Sequence[Comparison], *, alpha: float = 0.05) -> Claim:
    """`a` is better than `b` in every comparison, as in "every deep model beats optical flow".

    Such a claim needs no correction to be shown: it can only be wrong if one of the comparisons is, and that one was
    tested at alpha (an intersection-union test). To be contradicted a single comparison would do, and among several one
    may do so by chance: that side is corrected by Holm.
    """
    if not comparisons:
        raise ReportError("A claim needs at least one comparison.")
    shown = sum(c.p is not None and c.p < alpha and c.difference * c.cell.better > 0 for c in comparisons)
    against = sum(c.winner(alpha=alpha) == c.b for c in family(comparisons))
    p = None if any(c.p is None for c in comparisons) else max(c.p or 0.0 for c in comparisons)
    verdict = "contradicted" if against else "shown" if shown == len(comparisons) else "undecided"
    return Claim(verdict=verdict, p=p, shown=shown, contradicted=against, comparisons=len(comparisons))
