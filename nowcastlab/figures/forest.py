"""A forest plot: every comparison of two arms in one score, its difference and its interval, the largest first.

A difference that is shown has a filled mark and a thick line, the others a hollow mark and a thin one: grey print tells
them apart. Comparisons named before the run have a bold name.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from nowcastlab.errors import ConfigError
from nowcastlab.figures.embed import INK, SOFT, short_name, tidy
from nowcastlab.significance import Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH_IN, ROW_IN = 4.9, 0.235
SHOWN, OPEN = "#1f4e8c", "#5b636b"


def draw_forest(
    comparisons: Sequence[Comparison],
    *,
    named: Collection[tuple[str, str]] = (),
    scale: float = 1.0,
    alpha: float = 0.05,
) -> Figure:
    """What cannot be tested is drawn as a difference alone.

    named  pairs (a, b) that were named before the run
    scale  what is drawn is the difference times this
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    drawn = [c for c in comparisons if np.isfinite(c.difference)]
    if not drawn:
        raise ConfigError("There is no comparison to draw.")
    cell = drawn[0].cell
    if any(c.cell != cell for c in drawn):
        raise ConfigError("A forest plot has one score: give it comparisons of one cell.")
    drawn = sorted(drawn, key=lambda c: (-c.difference * (cell.better or 1), c.a, c.b))
    figure = Figure(figsize=(WIDTH_IN, 0.95 + ROW_IN * len(drawn)), layout="constrained")
    axes = figure.subplots()
    tidy(axes)
    axes.grid(False, axis="y")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.axvline(0, color=INK, linewidth=1.0)
    for row, c in enumerate(drawn):
        shown = c.p_decisive is not None and c.p_decisive < alpha
        colour = SHOWN if shown else OPEN
        if c.low is not None and c.high is not None:
            axes.plot(
                [scale * c.low, scale * c.high],
                [row, row],
                color=colour,
                linewidth=3.0 if shown else 1.1,
                solid_capstyle="butt",
            )
        axes.plot(
            scale * c.difference,
            row,
            marker="D" if shown else "o",
            markersize=6 if shown else 5,
            color=colour,
            markerfacecolor=colour if shown else "white",
            linestyle="none",
        )
    axes.set_yticks(range(len(drawn)), [f"{short_name(c.a)} − {short_name(c.b)}" for c in drawn], fontsize=9)
    for label, c in zip(axes.get_yticklabels(), drawn, strict=True):
        label.set(color=INK, fontweight="bold" if (c.a, c.b) in named else "normal")
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(drawn) - 0.4, -0.6)
    _name_sides(figure, str(cell), cell.better, scale)
    return figure


def _name_sides(figure: Figure, score: str, better: int, scale: float) -> None:
    axes = figure.axes[0]
    times = f" (× {scale:g})" if scale != 1 else ""
    axes.set_xlabel(f"difference in {score}{times}, 95% interval", fontsize=9.5, color=INK)
    if better:
        left, right = ("first is better", "second is better") if better < 0 else ("second is better", "first is better")
        axes.set_title(f"← {left}", loc="left", fontsize=9, color=SOFT)
        axes.set_title(f"{right} →", loc="right", fontsize=9, color=SOFT)
