"""The one colour scale for rain: bytes to colours, and its bar in mm/h.

    image = rgb_from_pixels(frame, excluded)     # uint8 (y, x, 3), ready for imshow or a GIF
    draw_colour_bar(figure, axes)

Steps rather than a gradient: an eye can then read a rate off the picture, and the benchmark's thresholds
(0.5, 2, 5, 10 and 30 mm/h) are edges one can see. Lightness falls from light rain to the heaviest, so the order
survives grey print; rain below 0.5 mm/h, "hardly noticeable" in Shi et al. 2017, is a faint grey.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nowcastlab.units import NOISE_BELOW_PIXEL, level_from_mmh

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure

# A colour holds from its edge up to the next one; the last has no end.
EDGES_MMH = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 50.0, 100.0)
COLOURS = ("#c6e6f5", "#86c5ea", "#4a97d4", "#2f9e5b", "#f2d03b", "#f29425", "#df3f2d", "#b01d6b", "#5b1a6e")

DRY = "#ffffff"
FAINT = "#eceff1"  # an echo, but below 0.5 mm/h
EXCLUDED = "#b9bdc1"  # never scored
OUTLIER = "#d62728"
OUT_OF_BOUNDARY = "#9467bd"


def rgb(colour: str) -> NDArray[np.uint8]:
    """`#rrggbb` as three bytes."""
    return np.frombuffer(bytes.fromhex(colour.removeprefix("#")), np.uint8)


def _table() -> NDArray[np.uint8]:
    table = np.empty((256, 3), np.uint8)
    table[:] = rgb(DRY)
    table[NOISE_BELOW_PIXEL:] = rgb(FAINT)
    for edge, colour in zip(EDGES_MMH, COLOURS, strict=True):
        table[level_from_mmh(edge) :] = rgb(colour)
    return table


RGB_FROM_PIXEL = _table()


def rgb_from_pixels(pixels: NDArray[np.uint8], excluded: NDArray[np.bool_] | None = None) -> NDArray[np.uint8]:
    """Frames (..., y, x) as images (..., y, x, 3). Small echoes, which are noise, are drawn as no echo."""
    image = RGB_FROM_PIXEL[pixels]
    if excluded is not None:
        image[..., excluded, :] = rgb(EXCLUDED)
    return image


def draw_colour_bar(figure: Figure, axes: Axes, *, label: str = "rain rate (mm/h)") -> Colorbar:
    """The scale, into axes kept for it."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    colours = ListedColormap(list(COLOURS[:-1])).with_extremes(under=FAINT, over=COLOURS[-1])
    scale = ScalarMappable(norm=BoundaryNorm(EDGES_MMH, len(COLOURS) - 1), cmap=colours)
    bar = figure.colorbar(scale, cax=axes, extend="both", extendfrac=0.03, ticks=EDGES_MMH)
    bar.ax.set_yticklabels([f"{edge:g}" for edge in EDGES_MMH])
    bar.set_label(label, fontsize=9)
    bar.ax.tick_params(labelsize=8.5)
    bar.outline.set_linewidth(0.5)
    return bar
