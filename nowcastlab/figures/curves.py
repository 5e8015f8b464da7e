"""Curves: how skill falls with lead time, and how a network learnt.

lead_curves({"trajgru": scores}).savefig("curves.png")
training_curve(read_history("work/run")).savefig("training.png")

Lines differ in dash and mark as well as in colour, so they can be told apart in grey.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nowcastlab.errors import ConfigError
from nowcastlab.figures.embed import INK
from nowcastlab.metric_names import TRAIN_LOSS, VALID_SCORE
from nowcastlab.skill import SequenceScores, per_lead

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# (colour, dash, mark), dark and light in turn
LINES: tuple[tuple[str, Any, str], ...] = (
    ("#1f4e8c", "-", "o"),
    ("#d9661f", "--", "s"),
    ("#2b8a57", "-.", "^"),
    ("#8c2d6b", ":", "D"),
    ("#555a60", (0, (6, 2)), "v"),
    ("#b8860b", (0, (3, 1, 1, 1)), "P"),
    ("#0f8b8d", (0, (1, 1)), "X"),
    ("#a3242b", (0, (8, 2, 2, 2)), "<"),
    ("#7a7f85", (0, (4, 4)), ">"),
)
ERROR_TITLES = {"bmse": "B-MSE", "bmae": "B-MAE"}


def lead_curves(runs: Mapping[str, SequenceScores]) -> Figure:
    """CSI by lead at every threshold, then B-MSE and B-MAE: a panel each, a line a run."""
    from matplotlib.figure import Figure

    if not runs:
        raise ConfigError("There are no scores to draw.")
    thresholds = next(iter(runs.values())).thresholds_mmh
    panels = len(thresholds) + len(ERROR_TITLES)
    columns = 4
    rows = -(-panels // columns)
    figure = Figure(figsize=(3.0 * columns, 2.5 * rows), dpi=120, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (j, rate) in zip(grid, enumerate(thresholds), strict=False):
        lines = {name: per_lead(scores, "csi")[:, j] for name, scores in runs.items()}
        _draw(axes, f"CSI, rain of {rate:g} mm/h and more", lines, runs)
        axes.set_ylim(0, max(0.05, 1.08 * _largest(lines)))
    for axes, (name, title) in zip(grid[len(thresholds) :], ERROR_TITLES.items(), strict=False):
        lines = {run: per_lead(scores, name) for run, scores in runs.items()}
        _draw(axes, f"{title}, a frame's sum", lines, runs)
        axes.set_ylim(0, max(1e-9, 1.08 * _largest(lines)))
    for axes in grid[panels:]:
        axes.axis("off")
    handles, labels = grid[0].get_legend_handles_labels()
    place = grid[panels] if panels < len(grid) else grid[0]
    place.legend(handles, labels, loc="center" if panels < len(grid) else "best", frameon=False, fontsize=9)
    return figure


def _draw(axes: Axes, title: str, lines: Mapping[str, Any], runs: Mapping[str, SequenceScores]) -> None:
    axes.set_title(title, fontsize=9, color=INK)
    axes.set_xlabel("lead (minutes)", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(True, linewidth=0.4, color="#d8dce0")
    axes.spines[["top", "right"]].set_visible(False)
    for i, (name, values) in enumerate(lines.items()):
        colour, dash, mark = LINES[i % len(LINES)]
        minutes = runs[name].lead_minutes
        y: Any = np.ma.filled(np.ma.asarray(values, float), np.nan)  # a gap where there is no data
        every = max(1, len(minutes) // 5)
        axes.plot(
            minutes,
            y,
            color=colour,
            linestyle=dash,
            marker=mark,
            markersize=4,
            markevery=every,
            linewidth=1.4,
            label=name,
        )
    axes.set_xlim(left=0)
    if all(np.ma.getmaskarray(values).all() for values in lines.values()):
        axes.text(0.5, 0.5, "no data", transform=axes.transAxes, ha="center", va="center", color=INK)


def _largest(lines: Mapping[str, Any]) -> float:
    return max((float(np.ma.max(v)) for v in lines.values() if np.ma.count(v)), default=1.0)


def training_curve(history: Sequence[Mapping[str, Any]], *, title: str = "") -> Figure:
    """The training loss, and the validation score with its best, by update; `read_history` gives the records."""
    from matplotlib.figure import Figure

    losses = _series(history, TRAIN_LOSS)
    valid = _series(history, VALID_SCORE)
    if not losses[0] and not valid[0]:
        raise ConfigError("The history holds no report yet: there is no curve to draw.")
    figure = Figure(figsize=(8.4, 3.1), dpi=120, layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes, (steps, values), name, (colour, dash, mark) in (
        (left, losses, "training loss, scaled", LINES[0]),
        (right, valid, "validation score", LINES[1]),
    ):
        few = len(steps) < 30
        axes.plot(
            steps, values, color=colour, linestyle=dash, marker=mark if few else None, markersize=4, linewidth=1.4
        )
        axes.set_title(name, fontsize=9, color=INK)
        axes.set_xlabel("update", fontsize=8)
        axes.tick_params(labelsize=8, which="both")
        axes.grid(True, which="both", linewidth=0.4, color="#d8dce0")
        axes.spines[["top", "right"]].set_visible(False)
        if values and min(values) > 0 and max(values) > 5 * min(values):
            axes.set_yscale("log")
    if valid[1]:
        best = int(np.argmin(valid[1]))
        right.plot(valid[0][best], valid[1][best], "o", markersize=10, fillstyle="none", color=INK)
        right.annotate(
            f"best {valid[1][best]:.4g}\nat {valid[0][best]:,}",
            (valid[0][best], valid[1][best]),
            textcoords="offset points",
            xytext=(-8, 14),
            ha="right",
            fontsize=8,
            color=INK,
        )
    if title:
        figure.suptitle(title, fontsize=10, color=INK)
    return figure


def _series(history: Sequence[Mapping[str, Any]], key: str) -> tuple[list[int], list[float]]:
    there = [(record["step"], record[key]) for record in history if key in record]
    return [step for step, _ in there], [value for _, value in there]
