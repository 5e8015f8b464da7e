"""What the verbs draw. Figures are plain matplotlib objects, so no window, no backend, no global state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nowcastlab.errors import ConfigError
from nowcastlab.figures.colours import (
    EXCLUDED,
    OUT_OF_BOUNDARY,
    OUTLIER,
    draw_colour_bar,
    rgb,
    rgb_from_pixels,
)
from nowcastlab.stamps import clock

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
INK = "#30363b"
INLIER = RAIN = "#4a97d4"


def new_figure(width_inches: float, height_inches: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width_inches, height_inches), dpi=120, layout="constrained")


def save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:  # a folder that cannot be written, an ending matplotlib does not know
        raise ConfigError(f"Cannot write the picture {path}: {error}. Name a file that ends in .png.") from error


def draw_frames(
    rows: Sequence[tuple[Sequence[int], NDArray[np.uint8], NDArray[np.bool_]]],
    *,
    excluded: NDArray[np.bool_],
    km_per_pixel: float,
    title: str,
) -> Figure:
    """Rows of frames: stamps, pixels (n, y, x), and which frames there are."""
    columns = max(len(stamps) for stamps, _, _ in rows)
    height, width = excluded.shape
    panel = 2.6
    figure = new_figure(panel * columns + 1.0, panel * height / width * len(rows) + 0.3 * len(rows) + 0.6)
    grid = figure.add_gridspec(len(rows), columns + 1, width_ratios=[*[1.0] * columns, 0.06])
    for row, (stamps, pixels, present) in enumerate(rows):
        images = rgb_from_pixels(pixels, excluded)
        for column, stamp in enumerate(stamps):
            axes = figure.add_subplot(grid[row, column])
            axes.imshow(images[column], interpolation="nearest")
            axes.set_title(clock(stamp), fontsize=8.5, color=INK, pad=3)
            axes.set_xticks([])
            axes.set_yticks([])
            for spine in axes.spines.values():
                spine.set(linewidth=0.5, color=INK)
            if not present[column]:
                axes.text(0.5, 0.5, "no frame", ha="center", va="center", transform=axes.transAxes, color=INK)
            if row == len(rows) - 1 and column == 0:
                _scale_bar(axes, width * km_per_pixel, km_per_pixel)
    draw_colour_bar(figure, figure.add_subplot(grid[:, columns]))
    note = f"   grey: never scored, {excluded.mean():.2%}" if excluded.any() else ""
    figure.suptitle(title + note, fontsize=10, color=INK)
    return figure


def _scale_bar(axes: object, width_km: float, km_per_pixel: float) -> None:
    """A round number of kilometres, about a quarter of the picture."""
    from matplotlib.axes import Axes
    from matplotlib.patheffects import withStroke

    assert isinstance(axes, Axes)
    choices = np.outer(10.0 ** np.arange(-1, 4), (1, 2, 5)).ravel()
    length_km = float(choices[np.argmin(np.abs(np.log(choices / (width_km / 4))))])
    left, length, bottom = 0.05, length_km / width_km, 0.05
    halo = [withStroke(linewidth=3, foreground="white")]
    axes.plot([left, left + length], [bottom] * 2, color=INK, lw=1.5, transform=axes.transAxes, path_effects=halo)
    axes.text(
        left + length / 2,
        bottom + 0.02,
        f"{length_km:g} km",
        ha="center",
        va="bottom",
        fontsize=7.5,
        color=INK,
        transform=axes.transAxes,
        path_effects=halo,
    )


def draw_months(mean_mmh: NDArray[np.floating], frames: NDArray[np.integer], *, title: str) -> Figure:
    """Average rain rate of each month, January to December; a month without frames has no bar."""
    figure = new_figure(6.4, 3.6)
    axes = figure.add_subplot()
    bars = axes.bar(range(12), np.nan_to_num(mean_mmh), color=RAIN, width=0.75)
    for bar, mean, count in zip(bars, mean_mmh, frames, strict=True):
        text = f"{mean:.2f}" if count else "no\nframes"
        axes.annotate(
            text,
            (bar.get_x() + bar.get_width() / 2, bar.get_height()),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=7.5,
            color=INK if count else "#9aa0a5",
        )
    axes.set_xticks(range(12), MONTHS)
    axes.set_ylabel("average rain rate (mm/h)")
    axes.set_title(title, fontsize=10, color=INK)
    axes.margins(y=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8.5)
    return figure


def draw_distances(
    distance: NDArray[np.floating],
    outlier: NDArray[np.bool_],
    *,
    threshold: float,
    deviations: float,
    rng: np.random.Generator,
    most: int = 10_000,
) -> Figure:
    """Mahalanobis distances of a random portion of the locations, and the threshold (Shi et al. 2017, appendix)."""
    chosen_at_random = rng.permutation(len(distance))[:most]
    shown, above = distance[chosen_at_random], outlier[chosen_at_random]
    place = np.arange(len(shown))
    figure = new_figure(6.4, 4.2)
    axes = figure.add_subplot()
    for chosen, colour, name in ((~above, INLIER, "inliers"), (above, OUTLIER, "outliers")):
        axes.scatter(place[chosen], shown[chosen], s=5, color=colour, lw=0, label=f"{chosen.sum():,} {name}")
    axes.axhline(threshold, color=INK, lw=1, ls="--", label=f"mean + {deviations:g} std = {threshold:.1f}")
    axes.set_yscale("log")
    axes.set_xlabel("location, in random order")
    axes.set_ylabel("Mahalanobis distance")
    axes.set_title(f"{len(shown):,} of {len(distance):,} locations within the boundary", fontsize=10, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8.5, frameon=False, markerscale=2)
    return figure


def draw_exclusion(
    outlier: NDArray[np.bool_], out_boundary: NDArray[np.bool_], kept: NDArray[np.bool_], *, title: str
) -> Figure:
    """The map of what is never scored: outliers red, beyond the boundary purple, other exclusions grey."""
    from matplotlib.patches import Patch

    image = np.full((*outlier.shape, 3), 255, np.uint8)
    parts = (
        (kept & ~outlier & ~out_boundary, EXCLUDED, "excluded before"),
        (out_boundary, OUT_OF_BOUNDARY, "out of boundary"),
        (outlier, OUTLIER, "outliers"),
    )
    for where, colour, _ in parts:
        image[where] = rgb(colour)
    height, width = outlier.shape
    figure = new_figure(5.2, 5.2 * height / width + 0.7)
    axes = figure.add_subplot()
    axes.imshow(image, interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(title, fontsize=10, color=INK)
    patches = [Patch(color=colour, label=f"{name} {where.sum():,}") for where, colour, name in parts if where.any()]
    if patches:
        figure.legend(handles=patches, loc="outside lower center", ncols=3, fontsize=8.5, frameon=False)
    return figure
