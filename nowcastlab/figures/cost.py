"""What a score costs: an arm a mark, and the Pareto front, on which nothing is both cheaper and better.

On the front a mark is filled and joined by the line; off it, hollow. Every mark carries its name, so no colour has to
be looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from nowcastlab.errors import ConfigError
from nowcastlab.figures.embed import INK, SOFT, short_name, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

WIDTH_IN, HEIGHT_IN = 4.6, 3.5
FRONT, BEHIND = "#1f4e8c", "#5b636b"
ASIDE = {"left": 1, "right": -1, "bottom": 1, "top": -1, "center": 0}  # which way from a mark a text so aligned stands


@dataclass(frozen=True, kw_only=True)
class CostPoint:
    """An arm: its cost, its score, the standard deviation over seeds where there is one."""

    name: str
    cost: float
    score: float
    std: float | None = None
    on_front: bool = False


def draw_cost(
    points: Sequence[CostPoint], *, cost_title: str, score_title: str, better: str = "lower", scale: float = 1.0
) -> Figure:
    """`scale`: the score drawn is the value times this. Costs that differ tenfold get a logarithmic axis."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    if not points:
        raise ConfigError("There is no arm whose cost is known.")
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    tidy(axes)
    costs = np.array([point.cost for point in points])
    if costs.min() > 0 and costs.max() > 10 * costs.min():
        axes.set_xscale("log")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
    front = sorted((point for point in points if point.on_front), key=lambda point: point.cost)
    axes.plot(
        [p.cost for p in front],
        [scale * p.score for p in front],
        color=FRONT,
        linewidth=1.2,
        linestyle="--",
        drawstyle="steps-post",
        label="Pareto front",
    )
    for point in points:
        colour = FRONT if point.on_front else BEHIND
        axes.errorbar(
            point.cost,
            scale * point.score,
            yerr=None if point.std is None else scale * point.std,
            fmt="o",
            markersize=7 if point.on_front else 6,
            color=colour,
            markerfacecolor=colour if point.on_front else "white",
            elinewidth=1.0,
        )
    axes.set_xlabel(cost_title, fontsize=9.5, color=INK)
    axes.set_ylabel(f"{score_title} ({better} is better)", fontsize=9.5, color=INK)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.margins(x=0.15, y=0.15)
    text, height = ("cheaper and better ↙", 0.01) if better == "lower" else ("cheaper and better ↖", 0.94)
    hint = axes.annotate(text, (0.01, height), xycoords="axes fraction", fontsize=8.5, color=SOFT)
    figure.canvas.draw()  # settles the layout, without which nobody knows where a name would stand
    _name(axes, points, scale, hint)
    return figure


def _name(axes: Axes, points: Sequence[CostPoint], scale: float, hint: Annotation) -> None:
    """Names beside their marks, each where it covers the least of what is there: marks, names, the front, the hint."""
    figure: Any = axes.figure
    renderer = figure.canvas.get_renderer()
    room = axes.get_window_extent(renderer)
    at = {p.name: axes.transData.transform((p.cost, scale * p.score)) for p in points}
    taken: list[Any] = [(x - 6, y - 6, x + 6, y + 6) for x, y in at.values()]
    taken.append(hint.get_window_extent(renderer).extents)
    front = sorted((at[p.name] for p in points if p.on_front), key=lambda place: place[0])
    for (x, y), (next_x, next_y) in pairwise(front):
        taken += [(x, y - 3, next_x, y + 3), (next_x - 3, min(y, next_y), next_x + 3, max(y, next_y))]
    sides = [("left", "center"), ("right", "center"), ("center", "bottom"), ("center", "top")]
    sides += [(ha, va) for ha in ("left", "right") for va in ("bottom", "top")]
    places = [(ha, va, far) for far in (7, 15, 24) for ha, va in sides]  # in points from the mark
    for point in sorted(points, key=lambda p: (not p.on_front, p.cost, p.name)):
        best: tuple[float, Any, Any] | None = None
        for ha, va, far in places:
            text = axes.annotate(
                short_name(point.name),
                (point.cost, scale * point.score),
                xytext=(far * ASIDE[ha], far * ASIDE[va]),
                textcoords="offset points",
                ha=ha,
                va=va,
                fontsize=9,
                color=INK,
                fontweight="bold" if point.on_front else "normal",
            )
            box = text.get_window_extent(renderer).extents
            covered = sum(_overlap(box, other) for other in taken)
            outside = _area(box) - _overlap(box, room.extents)
            text.remove()
            if best is None or covered + 4 * outside < best[0]:
                best = (covered + 4 * outside, text, box)
        assert best is not None
        axes.add_artist(best[1])
        taken.append(best[2])


def _area(box: Any) -> float:
    return float((box[2] - box[0]) * (box[3] - box[1]))


def _overlap(a: Any, b: Any) -> float:
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return float(max(0.0, width) * max(0.0, height))
