"""Where a TrajGRU looks: an arrow from each cell of a layer to the cell that one of its links reads, over the frame.

As in Shi et al. 2017, where links that turn with the digits can be seen. A network has many links and most of a picture
each; `busiest` finds those that differ most from place to place. A link that points the same way everywhere is what a
convolution has already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nowcastlab.errors import ConfigError
from nowcastlab.figures.embed import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH_IN = 3.4
ARROWS = 16  # a row, at most: more are not seen apart


def busiest(links: NDArray[np.floating[Any]], count: int) -> list[int]:
    """The links (L, 2, h, w) whose flow varies most over the cells, in that order."""
    spread = np.asarray(links, np.float64).var(axis=(2, 3)).sum(axis=1)
    return np.argsort(-spread, kind="stable")[:count].tolist()


def arrows(flow: NDArray[np.floating[Any]], *, stride: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """From where, and to where each cell reads: (arrow, 2) as (x, y) in pixels of the frame.

    flow    (2, h, w) in cells: cell (i, j) reads at (i + flow[1], j + flow[0]), as the warp does
    stride  pixels a cell; a cell's centre is the middle of its pixels
    """
    _, height, width = flow.shape
    step = max(1, -(-max(height, width) // ARROWS))
    rows, columns = np.arange(step // 2, height, step), np.arange(step // 2, width, step)
    y, x = np.meshgrid(rows, columns, indexing="ij")
    here = np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float64)
    there = here + np.stack([flow[0][y, x].ravel(), flow[1][y, x].ravel()], axis=1)
    return (here + 0.5) * stride - 0.5, (there + 0.5) * stride - 0.5


def draw_links(image: NDArray[np.uint8], flow: NDArray[np.floating[Any]], *, stride: int, title: str = "") -> Figure:
    """One link over one frame (y, x, 3), which is drawn pale so that the arrows stand out."""
    from matplotlib.figure import Figure

    if flow.ndim != 3 or flow.shape[0] != 2:
        raise ConfigError(f"A link's flow has shape (2, height, width), not {flow.shape}.")
    height, width = image.shape[:2]
    figure = Figure(figsize=(WIDTH_IN, WIDTH_IN * height / width + 0.28 * bool(title)), layout="constrained")
    axes = figure.subplots()
    pale = (255 - 0.55 * (255 - image.astype(np.float64))).round().astype(np.uint8)
    axes.imshow(pale, interpolation="nearest")
    start, end = arrows(flow, stride=stride)
    reach = end - start
    axes.quiver(
        start[:, 0],
        start[:, 1],
        reach[:, 0],
        reach[:, 1],
        angles="xy",
        scale_units="xy",
        scale=1.0,
        units="width",
        width=0.006,
        headwidth=4.2,
        headlength=4.5,
        minlength=0.5,
        color=INK,
    )
    axes.set_xlim(-0.5, width - 0.5)  # an arrow may point out of the frame, where a link reads zeros
    axes.set_ylim(height - 0.5, -0.5)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set(color=INK, linewidth=0.6)
    if title:
        axes.set_title(title, fontsize=10, color=INK, loc="left")
    return figure
