"""A forecast beside what was observed: one picture with a few moments, or an animation of all of them.

    nowcast = Nowcast(name="trajgru", times=stamps, observed=pixels, present=present, forecast=p, excluded=...)
    forecast_grid([nowcast]).savefig("forecast.png")
    animate(nowcast, "forecast.gif")

What is excluded from scoring is grey, a missing frame says so, and every picture carries the rain-rate scale.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nowcastlab.errors import ConfigError
from nowcastlab.figures.colours import draw_colour_bar, rgb, rgb_from_pixels
from nowcastlab.figures.embed import INK
from nowcastlab.stamps import clock

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER = "#f6f7f8"  # where there is no picture
LEADS_SHOWN = 5
FRAME_MS = 200
PAUSE_MS = 1500  # on the last frame, before an animation begins again


@dataclass(frozen=True, kw_only=True, eq=False)
class Nowcast:
    """Five frames seen, twenty forecast, and what came of it if that is known.

    times     (n) minutes since 1970-01-01, of the inputs and then of the leads
    observed  (n, y, x) uint8 with the truth, or (frames in, y, x) without
    present   as long as observed; False where the archive has no frame
    forecast  (leads, y, x) p, any float
    """

    name: str
    times: NDArray[np.int64]
    observed: NDArray[np.uint8]
    present: NDArray[np.bool_]
    forecast: NDArray[np.floating[Any]]
    excluded: NDArray[np.bool_]

    def __post_init__(self) -> None:
        if len(self.observed) not in (self.frames_in, len(self.times)) or self.frames_in < 1:
            raise ConfigError(
                f"`observed` has {len(self.observed)} frames; with {len(self.times)} times and {len(self.forecast)} "
                f"leads it must have {self.frames_in} without the truth, or {len(self.times)} with it."
            )

    @property
    def frames_in(self) -> int:
        return len(self.times) - len(self.forecast)

    @property
    def has_truth(self) -> bool:
        return len(self.observed) == len(self.times)

    @property
    def now(self) -> int:
        return int(self.times[self.frames_in - 1])

    def minutes_ahead(self, i: int) -> int:
        """Of frame i: 0 for the newest that was seen, negative before."""
        return int(self.times[i]) - self.now

    def observed_image(self, i: int) -> NDArray[np.uint8] | None:
        """None where there is no frame, or none yet."""
        if i >= len(self.observed) or not self.present[i]:
            return None
        return rgb_from_pixels(self.observed[i], self.excluded)

    def forecast_image(self, i: int) -> NDArray[np.uint8] | None:
        """None among the inputs."""
        if i < self.frames_in:
            return None
        return rgb_from_pixels(pixels_from_p(self.forecast[i - self.frames_in]), self.excluded)


def pixels_from_p(p: ArrayLike) -> NDArray[np.uint8]:
    """The nearest bytes; a forecast beyond [0, 1] is clipped."""
    return np.rint(255 * np.clip(np.asarray(p, np.float64), 0, 1)).astype(np.uint8)


# --- one picture


def forecast_grid(nowcasts: Sequence[Nowcast]) -> Figure:
    """Two rows a sequence, what was observed above what was forecast, time running to the right."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    first = nowcasts[0]
    columns = moments(first)
    height, width = first.excluded.shape
    panel, rows = 1.55, sum(1 + nowcast.has_truth for nowcast in nowcasts)
    tall = panel * height / width
    figure = Figure(
        figsize=(panel * len(columns) + 1.5, (tall + 0.1) * rows + 0.42 * len(nowcasts) + 0.2),
        dpi=120,
        layout=ConstrainedLayoutEngine(w_pad=0.02, h_pad=0.03, wspace=0.01, hspace=0.01),
    )
    # an axis of its own for the scale, as high as two sequences at most: a long bar is no clearer
    grid = figure.add_gridspec(rows, len(columns) + 1, width_ratios=[*[1.0] * len(columns), 0.08])
    top = 0
    for nowcast in nowcasts:
        _draw_rows(figure, grid, top, nowcast, columns)
        top += 1 + nowcast.has_truth
    draw_colour_bar(figure, figure.add_subplot(grid[: min(rows, 2), -1]))
    return figure


def moments(nowcast: Nowcast) -> list[int]:
    """The frames a picture shows: the first and the last input, and leads spread over the forecast."""
    seen = nowcast.frames_in
    leads = np.unique(np.linspace(0, len(nowcast.forecast), LEADS_SHOWN + 1).round().astype(int)[1:]) + seen - 1
    return sorted({0, seen - 1} | set(leads.tolist()))


def _draw_rows(figure: Figure, grid: Any, top: int, nowcast: Nowcast, columns: Sequence[int]) -> None:
    for column, i in enumerate(columns):
        seen = i < nowcast.frames_in
        axes = figure.add_subplot(grid[top, column])
        # Without the truth one row tells it all: what was seen, then what is forecast.
        image = nowcast.observed_image(i) if seen or nowcast.has_truth else nowcast.forecast_image(i)
        _show(axes, image, missing="no frame")
        ahead = nowcast.minutes_ahead(i)
        time = f"{clock(nowcast.times[i], date=False)}  ({ahead:+d} min)" if ahead else clock(nowcast.now)
        kind = "" if nowcast.has_truth else "observed\n" if seen else "forecast\n"
        axes.set_title(kind + time, fontsize=7.5, color=INK, fontweight="normal" if ahead else "bold")
        if not nowcast.has_truth:
            continue
        if column == 0:
            _label_row(axes, "observed")
        below = figure.add_subplot(grid[top + 1, column])
        if seen:
            below.axis("off")
            if column == 0:
                below.text(0.5, 0.5, nowcast.name, ha="center", va="center", fontsize=9, color=INK, wrap=True)
        else:
            _show(below, nowcast.forecast_image(i))
            if columns[column - 1] < nowcast.frames_in:
                _label_row(below, "forecast")


def _label_row(axes: Axes, text: str) -> None:
    axes.set_ylabel(text, fontsize=8, color=INK)


def _show(axes: Axes, image: NDArray[np.uint8] | None, *, missing: str = "") -> Any:
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set(linewidth=0.5, color=INK)
    if image is None:
        axes.set_facecolor(PAPER)
        axes.set_box_aspect(1)
        axes.text(0.5, 0.5, missing, transform=axes.transAxes, ha="center", va="center", fontsize=7, color=INK)
        return None
    return axes.imshow(image, interpolation="nearest")


# --- an animation


def animate(nowcast: Nowcast, path: Path | str) -> None:
    """A GIF of all frames in their order; with the truth, that on the left and the forecast on the right."""
    from PIL import Image, ImageDraw

    stage, boxes = _stage(nowcast)
    small, large = load_font(12), load_font(14, mono=True)
    pictures = []
    for i, time in enumerate(nowcast.times):
        picture = stage.copy()
        pen = ImageDraw.Draw(picture)
        for (left, top, right, bottom), (image, text) in zip(boxes, _panels(nowcast, i), strict=True):
            if image is not None:
                size = (right - left, bottom - top)
                picture.paste(Image.fromarray(image).resize(size, Image.Resampling.NEAREST), (left, top))
            pen.text(((left + right) / 2, top - 6), text, INK, small, anchor="ms")
        ahead = nowcast.minutes_ahead(i)
        heading = f"{clock(time)}  {f'{ahead:+4d} min' if ahead else '     now'}"
        pen.text(((boxes[0][0] + boxes[-1][2]) / 2, 24), heading, INK, large, anchor="ms")
        pictures.append(picture)
    save_gif(pictures, path)


def _stage(nowcast: Nowcast) -> tuple[Any, list[tuple[int, int, int, int]]]:
    """What stays the same from frame to frame, drawn once, and where its panels are: left, top, right, bottom."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    height, width = nowcast.excluded.shape
    panels, side = 1 + nowcast.has_truth, 3.3
    figure = Figure(figsize=(side * panels + 1.05, side * height / width + 0.75), dpi=100, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    figure.suptitle(" ", fontsize=12)  # room for the words that change
    grid = figure.add_gridspec(1, panels + 1, width_ratios=[*[1.0] * panels, 0.06])
    nothing = np.full((height, width, 3), rgb(PAPER))
    axes = [figure.add_subplot(grid[0, i]) for i in range(panels)]
    for panel in axes:
        _show(panel, nothing)
        panel.set_title(" ", fontsize=11)
    draw_colour_bar(figure, figure.add_subplot(grid[0, panels]))
    canvas.draw()
    stage = np.asarray(canvas.buffer_rgba())[..., :3].copy()
    boxes = []
    for panel in axes:
        box = panel.get_window_extent()
        inside = (box.x0 + 1, len(stage) - box.y1 + 1, box.x1 - 1, len(stage) - box.y0 - 1)  # the frame stays visible
        left, top, right, bottom = (round(edge) for edge in inside)
        boxes.append((left, top, right, bottom))
    return Image.fromarray(stage), boxes


def load_font(size: int, *, mono: bool = False) -> Any:
    """Matplotlib's own face for words that Pillow draws, so that all pictures have one."""
    import matplotlib
    from PIL import ImageFont

    name = "DejaVuSansMono.ttf" if mono else "DejaVuSans.ttf"  # comes with matplotlib
    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name), size)


def _panels(nowcast: Nowcast, i: int) -> list[tuple[NDArray[np.uint8] | None, str]]:
    seen = i < nowcast.frames_in
    observed = nowcast.observed_image(i)
    past = (observed, "observed" if observed is not None else "observed: no frame")
    if seen:
        return [past] * (1 + nowcast.has_truth)
    forecast = (nowcast.forecast_image(i), f"forecast by {nowcast.name}")
    return [past, forecast] if nowcast.has_truth else [forecast]


def save_gif(pictures: Sequence[Any], path: Path | str) -> None:
    """One palette for all frames, taken from first and last, so that a colour means one rain rate throughout."""
    from PIL import Image

    sample = Image.fromarray(np.concatenate([np.asarray(pictures[0]), np.asarray(pictures[-1])]))
    palette = sample.quantize(255, dither=Image.Dither.NONE)
    frames = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    times = [FRAME_MS] * (len(frames) - 1) + [PAUSE_MS]
    content = io.BytesIO()  # written whole, so that a full disk leaves no half animation
    frames[0].save(content, format="GIF", save_all=True, append_images=frames[1:], duration=times, loop=0)
    Path(path).write_bytes(content.getvalue())
