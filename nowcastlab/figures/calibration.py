"""Pictures that explain the statistics: how often each rule is wrong, and how many seeds a difference needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nowcastlab.significance.calibration import Rates
from nowcastlab.significance.power import Design, power

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Told apart by lightness and marker too, for grey print.
_RULES = {
    "plain": ("plain bootstrap", "#b0b0b0", "s"),
    "three_deviations": ("three standard deviations", "#d98032", "^"),
    "found": ("this test", "#1f4e79", "o"),
}

_EDGE = 34  # percent: the plain bootstrap of two seeds calls 32


def draw_rates(rates: Sequence[Rates], *, score: str = "csi") -> Figure:
    """A panel for each source of variance, a row a setting: how often each rule calls a difference not there."""
    from matplotlib.figure import Figure

    rates = [r for r in rates if r.score == score]
    truths = list(dict.fromkeys(r.truth for r in rates))
    settings = list(dict.fromkeys((r.seeds, r.episodes) for r in rates))
    figure = Figure(figsize=(2.2 + 2.0 * len(truths), 1.5 + 0.3 * len(settings)), layout="constrained")
    panels = figure.subplots(1, len(truths), sharey=True, squeeze=False)[0]
    for axes, truth in zip(panels, truths, strict=True):
        axes.axvspan(3, 7, color="#dce9f2", zorder=0)
        for rule, (label, colour, marker) in _RULES.items():
            mine = [r for r in rates if r.truth == truth]
            rows = [settings.index((r.seeds, r.episodes)) for r in mine]
            axes.plot([100 * getattr(r, rule) for r in mine], rows, marker, color=colour, label=label, markersize=6)
        axes.set_title(f"variance: {truth}", fontsize=9)
        axes.set_xlim(-1.5, _EDGE)
        axes.grid(axis="x", linewidth=0.4, color="#dddddd")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xticks([0, 5, 10, 20, 30])
        for r, row in zip(mine, rows, strict=True):  # what the axis cannot show is written at its edge
            if 100 * r.three_deviations > _EDGE:
                axes.annotate(
                    f"{r.three_deviations:.0%} ▸", (_EDGE, row), ha="right", va="center", color="#a85a17", fontsize=8
                )
    panels[0].set_yticks(range(len(settings)), [f"{n} seeds, {e} episodes" for n, e in settings])
    panels[0].set_ylim(len(settings) - 0.5, -0.5)
    figure.supxlabel("a difference is called where there is none, % of simulations (shaded: 3-7)", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def draw_power(designs: Mapping[str, Design], differences: Sequence[float], *, unit: str, most: int = 12) -> Figure:
    """Power against seeds, a panel for each design and a line for each true difference."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.2 + 3.2 * len(designs), 3.0), layout="constrained")
    panels = figure.subplots(1, len(designs), sharey=True, squeeze=False)[0]
    seeds = list(range(2, most + 1))
    shades = ["#9dc3e0", "#4f8fbf", "#1f4e79", "#0b2239"]
    for axes, (title, design) in zip(panels, designs.items(), strict=True):
        axes.axhline(80, color="#999999", linewidth=0.8, linestyle="--")
        for difference, shade in zip(differences, shades, strict=False):
            found = [100 * power(design, difference=difference, seeds=n) for n in seeds]
            axes.plot(seeds, found, color=shade, marker="o", markersize=3.5, label=f"{difference:g}")
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("seeds an arm")
        axes.set_ylim(0, 103)
        axes.set_xlim(1.5, most + 0.5)
        axes.set_xticks(range(2, most + 1, 2))
        axes.grid(linewidth=0.4, color="#dddddd")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("found, % of cases")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles[::-1], labels[::-1], title=f"true difference\nin {unit}", loc="outside right upper", frameon=False
    )
    return figure


def draw_example_power() -> Figure:
    """B-MSE of TrajGRU and ConvGRU in Shi et al. 2017: they are 135 apart, with deviations of 18 and 52 over seeds."""
    designs = {
        "for the test days alone": Design(std=(52.0, 18.0)),
        "if weather adds a standard error of 40": Design(std=(52.0, 18.0), episodes=40.0**2),
    }
    return draw_power(designs, (45.0, 90.0, 135.0), unit="B-MSE")
