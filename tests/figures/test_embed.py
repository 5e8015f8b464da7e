from __future__ import annotations

import io
import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from nowcastlab.figures.colours import RGB_FROM_PIXEL
from nowcastlab.figures.embed import NAME_LENGTH, SIDE_PX, frame_png, short_name, svg


def picture(title: str = "a title") -> Figure:
    figure = Figure(figsize=(3, 2), layout="constrained")
    axes = figure.subplots()
    axes.plot([1, 2], [3, 4], marker="o")
    axes.set_title(title)
    return figure


def test_the_same_picture_gives_the_same_bytes_without_a_date() -> None:
    assert svg(picture(), name="a") == svg(picture(), name="a")
    assert not re.search(r"20\d\d-\d\d", svg(picture(), name="a"))


def test_two_pictures_of_one_page_share_no_id() -> None:
    one, other = (set(re.findall(r'\bid="([^"]*)"', svg(picture(), name=name))) for name in ("a", "b"))
    assert one
    assert not one & other


def test_words_stay_words_and_are_escaped() -> None:
    text = svg(picture("<script>alert(1)</script> & more"), name="a")
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in text
    assert "<script" not in text


def test_a_frame_keeps_its_colours_exactly() -> None:
    frame = np.random.default_rng(0).integers(0, 256, (40, 30), np.uint8)
    image = RGB_FROM_PIXEL[frame]
    back = np.asarray(Image.open(io.BytesIO(frame_png(image))).convert("RGB"))
    np.testing.assert_array_equal(back, image)


@pytest.mark.parametrize(("side", "shown"), [(SIDE_PX, SIDE_PX), (2 * SIDE_PX, SIDE_PX)])
def test_a_large_frame_is_thinned_without_mixing_colours(side: int, shown: int) -> None:
    frame = np.random.default_rng(0).integers(0, 256, (side, side), np.uint8)
    png = Image.open(io.BytesIO(frame_png(RGB_FROM_PIXEL[frame]))).convert("RGB")
    assert png.size == (shown, shown)
    step = side // shown
    np.testing.assert_array_equal(np.asarray(png), RGB_FROM_PIXEL[frame[::step, ::step]])


def test_a_long_name_keeps_its_beginning_and_its_end() -> None:
    short = short_name("TrajGRU-with-thirteen-links-and-seed-17")
    assert short == "TrajGRU-with-t…d-seed-17"
    assert len(short) == NAME_LENGTH
    assert short_name("TrajGRU") == "TrajGRU"


def test_a_dollar_in_a_name_begins_no_formula() -> None:
    assert "100$x$" in svg(picture(short_name("100$x$")), name="a")
