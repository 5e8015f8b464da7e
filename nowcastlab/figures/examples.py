"""A trial's example forecasts as one picture, and the links of a TrajGRU as another.

    examples_picture(examples).save("forecast.png")

Drawn with Pillow alone, in some tens of milliseconds: a sweep's driver draws one for every trial while others train.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nowcastlab.figures.colours import COLOURS, EDGES_MMH, rgb_from_pixels
from nowcastlab.figures.embed import INK
from nowcastlab.figures.forecast import load_font
from nowcastlab.figures.links import arrows, busiest

if TYPE_CHECKING:
    from nowcastlab.protocol.examples import Examples

COLUMNS = 5
TILE, GAP, MARGIN, LINE = 128, 4, 12, 18  # pixels
LABELS = 72  # width of the row names
LINKS_SHOWN = 4
ARROW = "#c2182b"


def examples_picture(examples: Examples) -> Any:
    """Three rows an example: what was seen, what came, what was forecast, time running to the right."""
    from PIL import Image, ImageDraw

    radar = examples.excluded is not None
    height, width = examples.inputs.shape[2:]
    tall = round(TILE * height / width)
    block = 2 * LINE + 3 * (tall + GAP) + LINE
    size = (
        2 * MARGIN + LABELS + COLUMNS * (TILE + GAP),
        2 * MARGIN + len(examples) * block + (2 * LINE if radar else 0),
    )
    picture = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(picture)
    seen = _spread(examples.inputs.shape[1])
    leads = _spread(len(examples.lead_minutes), first=False)
    for n in range(len(examples)):
        top = MARGIN + n * block
        pen.text((MARGIN, top), examples.labels[n], INK, _font(13), anchor="lt")
        rows: list[tuple[str, NDArray[np.uint8], list[int]]] = [
            ("seen", examples.inputs[n], seen),
            ("observed", examples.truth[n], leads),
            ("forecast", examples.forecast[n], leads),
        ]
        y = top + LINE
        for row, (name, frames, shown) in enumerate(rows):
            if row == 1:  # the leads' own captions stand above what was observed
                y += LINE
            pen.text((MARGIN, y + tall / 2), name, INK, _font(12), anchor="lm")
            for column, i in enumerate(shown):
                x = MARGIN + LABELS + column * (TILE + GAP)
                tile = Image.fromarray(_image(frames[i], examples.excluded)).resize((TILE, tall), _filter(width))
                picture.paste(tile, (x, y))
                pen.rectangle((x, y, x + TILE - 1, y + tall - 1), outline="#b9bdc1")
                if row == 1:
                    caption = f"+{examples.lead_minutes[i]} min" if radar else f"frame +{examples.lead_minutes[i]}"
                    pen.text((x + TILE / 2, y - 3), caption, INK, _font(11), anchor="ms")
            y += tall + GAP
    if radar:
        _scale(pen, MARGIN + LABELS, size[1] - MARGIN - LINE)
    return picture


def links_picture(examples: Examples) -> Any:
    """A row an example: the last frame seen, with arrows from each place to where a link reads; the liveliest links."""
    from PIL import Image, ImageDraw

    assert examples.links is not None
    height, width = examples.inputs.shape[2:]
    side = 2 * TILE
    zoom, tall = side / width, round(side * height / width)
    shown = busiest(examples.links[0], LINKS_SHOWN)  # the same links in every row
    size = (2 * MARGIN + len(shown) * (side + GAP), 2 * MARGIN + LINE + len(examples) * (tall + GAP + LINE))
    picture = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(picture)
    for column, link in enumerate(shown):
        x = MARGIN + column * (side + GAP)
        pen.text((x, MARGIN), f"link {link + 1} of {examples.links.shape[1]}", INK, _font(13), anchor="lt")
        for n in range(len(examples)):
            y = MARGIN + LINE + n * (tall + GAP + LINE)
            frame = _image(examples.inputs[n, -1], examples.excluded)
            pale = (255 - 0.5 * (255 - frame.astype(np.float64))).astype(np.uint8)
            tile = Image.fromarray(pale).resize((side, tall), _filter(width))
            _draw_arrows(ImageDraw.Draw(tile), *arrows(examples.links[n, link], stride=examples.links_stride), zoom)
            picture.paste(tile, (x, y))
            pen.rectangle((x, y, x + side - 1, y + tall - 1), outline="#b9bdc1")
            if column == 0:
                pen.text((x, y + tall + 3), examples.labels[n], INK, _font(11), anchor="lt")
    return picture


def _draw_arrows(pen: Any, start: NDArray[np.float64], end: NDArray[np.float64], zoom: float) -> None:
    for (x0, y0), (x1, y1) in zip((start + 0.5) * zoom, (end + 0.5) * zoom, strict=True):
        pen.line((x0, y0, x1, y1), fill=ARROW, width=1)
        pen.ellipse((x1 - 1.5, y1 - 1.5, x1 + 1.5, y1 + 1.5), fill=ARROW)  # where it reads


@lru_cache
def _font(size: int) -> Any:
    return load_font(size)


def _spread(count: int, *, first: bool = True) -> list[int]:
    """At most COLUMNS of `count` frames, the last among them, and the first if asked."""
    if first:
        return sorted(set(np.linspace(0, count - 1, min(COLUMNS, count)).round().astype(int).tolist()))
    return sorted(set((np.linspace(0, count, min(COLUMNS, count) + 1).round().astype(int)[1:] - 1).tolist()))


def _image(frame: NDArray[np.uint8], excluded: NDArray[np.bool_] | None) -> NDArray[np.uint8]:
    """Rain in its colours; digits, which have no rain rate, dark on white."""
    if excluded is not None:
        return rgb_from_pixels(frame, excluded)
    return np.repeat((255 - frame)[..., None], 3, axis=-1)


def _filter(width: int) -> Any:
    """Small frames keep their pixels; large ones are averaged."""
    from PIL import Image

    return Image.Resampling.NEAREST if width <= TILE else Image.Resampling.BOX


def _scale(pen: Any, x: int, y: int) -> None:
    pen.text((x - 8, y + 5), "mm/h", INK, _font(11), anchor="rm")
    for edge, colour in zip(EDGES_MMH, COLOURS, strict=True):
        pen.rectangle((x, y, x + 40, y + 10), fill=colour)
        pen.text((x, y + 12), f"{edge:g}", INK, _font(10), anchor="lt")
        x += 41
