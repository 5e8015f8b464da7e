"""A few sequences of moving digits as a picture or an animation that says which digits they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nowcastlab.moving_digits import MovingDigits

BRIGHTEST = 1 / 0.6  # the highest illumination either preset reaches
ROWS = 4
COLUMNS = 10


def draw(source: MovingDigits, path: Path, *, seed: int = 0) -> None:
    """The first sequences of `seed`: ten of their frames side by side (.png), or all of them moving (.gif)."""
    frames = source.batch(seed, range(ROWS))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() == ".gif":
        _animate(frames, path)
    else:
        _picture(frames, path, title=f"{source}, seed {seed}")


def _picture(frames: NDArray[np.float32], path: Path, *, title: str) -> None:
    from matplotlib.figure import Figure

    rows, length = frames.shape[:2]
    times = np.unique(np.linspace(0, length - 1, COLUMNS).round().astype(int))
    columns = len(times)
    figure = Figure(figsize=(1.1 * columns + 0.6, 1.1 * rows + 0.7), layout="constrained")
    figure.suptitle(title, fontsize=9)
    axes = figure.subplots(rows, columns, squeeze=False)
    for row in range(rows):
        for column in range(columns):
            cell = axes[row][column]
            drawn = cell.imshow(
                frames[row, times[column]], cmap="gray", vmin=0, vmax=BRIGHTEST, interpolation="nearest"
            )
            cell.set(xticks=[], yticks=[])
            if row == 0:
                cell.set_title(f"frame {times[column]}", fontsize=7)
    figure.colorbar(drawn, ax=axes, shrink=0.8, aspect=30).ax.tick_params(labelsize=7)
    figure.savefig(path, dpi=130)


def _animate(frames: NDArray[np.float32], path: Path) -> None:
    from PIL import Image

    levels = np.round(np.pad(frames, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=0.3) / BRIGHTEST * 255)
    side_by_side = np.concatenate(list(levels.astype(np.uint8)), axis=2)
    enlarge = max(1, 192 // frames.shape[-1])
    pictures = [Image.fromarray(picture.repeat(enlarge, 0).repeat(enlarge, 1)) for picture in side_by_side]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=150, loop=0)
