"""Pictures as text for a page of one file: SVG for what is drawn, small PNGs for frames. The same picture gives the
same bytes: no dates, no random names.

    page = f"<figure>{svg(figure, name='forest')}</figure>"
    image = f'<img src="{png_uri(frame_png(rgb_from_pixels(frame)))}">'
"""

from __future__ import annotations

import base64
import io
import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#30363b"
SOFT = "#6b7278"
GRID = "#d8dce0"
NAME_LENGTH = 24  # characters
SIDE_PX = 240  # of a frame on a page: more is not seen there, and a benchmark has hundreds of them
# Words stay words: they can be searched, copied and read aloud. Laid out with the first, which is as wide as the
# second; the others are narrower, so nothing runs into anything where a reader has only those.
FONTS = ["DejaVu Sans", "Verdana", "Arial", "Helvetica"]


def svg(figure: Figure, *, name: str) -> str:
    """An <svg> element to stand in HTML. `name` keeps apart what the pictures of one page define."""
    import matplotlib

    out = io.StringIO()
    # savefig has no argument for these
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "font.sans-serif": FONTS}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Type": None, "Format": None})
    text = out.getvalue()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # matplotlib names every group alike in every picture, and an id may stand once in a page; nothing refers to them
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    # said once for all words rather than with every one of them
    families = ", ".join(FONTS) + ", sans-serif"
    text = re.sub(r" font-family: [^;\"]*;", "", text).replace("<svg ", f'<svg style="font-family: {families}" ', 1)
    text = re.sub(r' (d|x|y|points)="[^"]*"', _shorter, text)
    return re.sub(r"\n\s*", "\n", text)


def _shorter(attribute: re.Match[str]) -> str:
    """Coordinates to a hundredth of a point: less is not seen, and more doubles the bytes."""
    return re.sub(r"(\.\d\d)\d+", r"\1", attribute[0])


def frame_png(image: NDArray[np.uint8]) -> bytes:
    """A frame (y, x, 3) as a PNG with a palette, at most SIDE_PX wide: pixels are left out, never mixed."""
    from PIL import Image

    step = -(-max(image.shape[:2]) // SIDE_PX)
    out = io.BytesIO()
    picture = Image.fromarray(np.ascontiguousarray(image[::step, ::step]))
    colours = picture.getcolors(256)
    if colours is not None:
        picture = picture.quantize(max(2, len(colours)), dither=Image.Dither.NONE)
    picture.save(out, format="PNG", optimize=True)
    return out.getvalue()


def png_uri(content: bytes) -> str:
    """A PNG as the address of itself."""
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def short_name(name: str) -> str:
    """A name as it fits into a picture: a long one without its middle, and no dollar that would begin a formula."""
    kept = name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 10]}…{name[-9:]}"
    return kept.replace("$", r"\$")


def tidy(axes: Axes) -> None:
    """What all drawn pictures have in common."""
    axes.tick_params(labelsize=9, colors=INK, which="both")
    axes.grid(True, linewidth=0.5, color=GRID)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(color=SOFT, linewidth=0.8)
