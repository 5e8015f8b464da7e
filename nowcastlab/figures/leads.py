"""Curves by lead time with their intervals: a picture a score, small enough for a telephone, and one key for all.

    curves = [LeadCurve(name="TrajGRU", leads=(6, 12, ...), mean=..., low=..., high=...), ...]
    draw_leads(curves, title="CSI, 30 mm/h and more")
    draw_key([curve.name for curve in curves])

Bands of nine arms would cover each other, so an interval is a bar through a mark; arms have their marks at leads of
their own where there are enough leads, and where not their lines stand a little beside each other. Lines differ in dash
and mark as well as in colour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nowcastlab.errors import ConfigError
from nowcastlab.figures.curves import LINES
from nowcastlab.figures.embed import INK, short_name, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH_IN, HEIGHT_IN = 3.9, 2.9
MARKS = 5  # a line, at least


@dataclass(frozen=True, kw_only=True, eq=False)
class LeadCurve:
    """A score by lead; NaN where there is no data. Without `low` and `high` no interval is known."""

    name: str
    leads: Sequence[float]
    mean: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None

    def __post_init__(self) -> None:
        for what in ("mean", "low", "high"):
            values = getattr(self, what)
            if values is not None and len(values) != len(self.leads):
                raise ConfigError(f"{self.name}: `{what}` has {len(values)} values for {len(self.leads)} leads.")
        if (self.low is None) != (self.high is None):
            raise ConfigError(f"{self.name}: an interval needs both `low` and `high`.")


def draw_leads(
    curves: Sequence[LeadCurve],
    *,
    title: str,
    unit: str = "lead (minutes)",
    scale: float = 1.0,
    styles: Mapping[str, int] | None = None,
) -> Figure:
    """One score.

    scale   what is drawn is the value times this
    styles  which line (`line_style`) a name has, where it should have the same in several pictures
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    if not curves:
        raise ConfigError("There are no curves to draw.")
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN), layout="constrained")
    axes = figure.subplots()
    tidy(axes)
    axes.set_title(title, fontsize=10.5, color=INK, loc="left")
    axes.set_xlabel(unit, fontsize=9.5, color=INK)
    top = 0.0
    for i, curve in enumerate(curves):
        colour, dash, mark = line_style(styles[curve.name] if styles else i)
        leads, mean = np.asarray(curve.leads, float), scale * np.asarray(curve.mean, float)
        at, shift = _marked(len(leads), i, len(curves))
        x = leads + shift * (leads[1] - leads[0] if len(leads) > 1 else 1.0)
        axes.plot(x, mean, color=colour, linestyle=dash, linewidth=1.5)
        reach = None
        highest = mean
        if curve.low is not None and curve.high is not None:
            low, high = scale * np.asarray(curve.low, float), scale * np.asarray(curve.high, float)
            reach = np.stack([mean - low, high - mean])[:, at]
            highest = high
        axes.errorbar(x[at], mean[at], yerr=reach, fmt=mark, color=colour, markersize=4.5, elinewidth=1.0, capsize=0)
        top = max(top, float(np.nanmax(np.concatenate([mean, highest[at]]), initial=0.0)))
    if not any(np.isfinite(curve.mean).any() for curve in curves):
        axes.text(0.5, 0.5, "no data", transform=axes.transAxes, ha="center", va="center", color=INK)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 3, 6, 10], nbins=7))
    axes.set_ylim(0, 1.06 * top if top > 0 else 1.0)
    return figure


def draw_key(names: Sequence[str], *, styles: Mapping[str, int] | None = None) -> Figure:
    """Which line is which, in as many columns as fit."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    longest = max((len(short_name(name)) for name in names), default=1)
    columns = max(1, min(len(names), int(WIDTH_IN / (0.55 + 0.085 * longest))))
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(WIDTH_IN, 0.12 + 0.23 * rows))
    handles = []
    for i, name in enumerate(names):
        colour, dash, mark = line_style(styles[name] if styles else i)
        handles.append(
            Line2D([], [], color=colour, linestyle=dash, marker=mark, markersize=4.5, label=short_name(name))
        )
    figure.legend(
        handles=handles, loc="center left", ncols=columns, frameon=False, fontsize=9, labelcolor=INK, handlelength=3.2
    )
    return figure


def line_style(i: int) -> tuple[str, Any, str]:
    """Colour, dash and mark of the i-th arm. Beyond those there are, colours begin anew with other marks."""
    colour, dash, _ = LINES[i % len(LINES)]
    return colour, dash, LINES[(i + i // len(LINES)) % len(LINES)][2]


def _marked(leads: int, i: int, arms: int) -> tuple[NDArray[np.int64], float]:
    """Where arm i has its marks, and how far beside the leads its line stands, in steps between leads."""
    step = max(1, leads // MARKS)
    first = (i % step + step - 1) % step  # the last lead, which all are asked about, is the first arm's
    at = np.arange(leads - 1 - first, -1, -step)[::-1]
    beside = -(-arms // step)  # so many share a lead
    return at, (i // step - (beside - 1) / 2) * min(0.12, 0.4 / beside)
