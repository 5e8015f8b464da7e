"""The report in a real browser, at a desk, on a telephone and on paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

NewPage = Callable[[], Any]
PHONE = {"width": 390, "height": 844}
BOXES = "[...document.querySelectorAll('svg, img, table, p, h1, h2, h3, pre, .warning, .rates')]"


@pytest.fixture(params=["radar_page", "digits_page"])
def address(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(request.param)


def test_the_page_is_all_there_without_a_complaint_or_a_request(new_page: NewPage, address: str) -> None:
    page = new_page().open(address)
    page.run("1")
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith("data:")] == [address]
    assert page.run("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
    assert page.run("[...document.querySelectorAll('svg')].every(s => s.getBoundingClientRect().height > 20)")


@pytest.mark.parametrize("width", [1280, 768, 390, 320])
def test_no_width_makes_the_page_itself_scroll_sideways(new_page: NewPage, radar_page: str, width: int) -> None:
    page = new_page().open(radar_page, width=width)
    assert page.run("document.documentElement.scrollWidth") == width
    inside = f"{BOXES}.filter(e => !e.closest('.scroll')).every(e => e.getBoundingClientRect().right <= {width} + 1)"
    assert page.run(inside)


def test_on_a_telephone_a_wide_table_scrolls_in_its_box_and_keeps_its_names(new_page: NewPage, radar_page: str) -> None:
    page = new_page().open(radar_page, **PHONE)
    box = "document.querySelector('.scroll')"
    assert page.run(f"{box}.scrollWidth > {box}.clientWidth")
    name = f"{box}.querySelector('tbody th[scope=row]').getBoundingClientRect().left"
    before = page.run(name)
    page.run(f"{box}.scrollLeft = 300")
    assert page.run(f"{box}.scrollLeft") == 300
    assert page.run(name) == before


def test_words_in_pictures_can_be_read_on_a_telephone(new_page: NewPage, radar_page: str) -> None:
    page = new_page().open(radar_page, **PHONE)
    heights = page.run("[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().height)")
    assert min(height for height in heights if height) > 8.5  # a line of 8 px letters


def test_the_warning_is_on_the_first_screen(new_page: NewPage, radar_page: str) -> None:
    page = new_page().open(radar_page, **PHONE)
    assert page.run("document.querySelector('.warning').getBoundingClientRect().bottom") < PHONE["height"]


def test_every_section_can_be_reached_from_the_top(new_page: NewPage, radar_page: str) -> None:
    page = new_page().open(radar_page)
    targets = "[...document.querySelectorAll('nav a')].map(a => document.getElementById(a.hash.slice(1)).tagName)"
    assert page.run(targets) == ["SECTION"] * 8  # made-up runs have no forecasts to show


def test_a_number_leads_to_its_runs(new_page: NewPage, digits_page: str) -> None:
    page = new_page().open(digits_page)
    page.run("document.querySelector('details').open = true")
    page.run("document.querySelector('details a').click()")
    assert page.run("document.querySelector('tr:target').innerText").startswith("conv-k3-d1\t1\t")


def test_a_real_sweep_shows_its_forecasts_and_its_links(new_page: NewPage, digits_page: str) -> None:
    page = new_page().open(digits_page)
    rows = page.run(
        "[...document.querySelectorAll('#forecasts table')[0].tBodies[0].rows].map(r => r.cells[0].innerText)"
    )
    assert rows == ["observed", "conv-k3-d1", "traj-l2"]
    assert page.run("document.querySelectorAll('#links svg image').length") == 2  # it has two links
    assert page.run("document.querySelector('h1').innerText") == "Is what is looked at there?"


def test_in_grey_print_what_is_shown_differs_from_what_is_not(
    new_page: NewPage, radar_page: str, tmp_path: Path
) -> None:
    """The filled marks of a forest plot are dark in grey, the hollow ones have a white middle."""
    page = new_page().open(radar_page)
    page.send("Emulation.setEmulatedMedia", media="print")
    marks = page.run(
        """[...document.querySelector('#pairs svg').querySelectorAll('use')]
           .map(u => [getComputedStyle(u).fill, u.getBoundingClientRect()])
           .map(([fill, b]) => [fill, b.x + b.width / 2 + scrollX, b.y + b.height / 2 + scrollY])"""
    )
    grey = np.asarray(Image.open(page.picture(tmp_path / "print.png")).convert("L"))
    filled = [grey[round(y), round(x)] for fill, x, y in marks if fill == "rgb(31, 78, 140)"]
    hollow = [grey[round(y), round(x)] for fill, x, y in marks if fill == "rgb(255, 255, 255)"]
    assert len(filled) > 3
    assert len(hollow) > 3
    assert max(filled) < 110
    assert min(hollow) > 230


def test_it_prints_on_pages(new_page: NewPage, digits_page: str) -> None:
    page = new_page().open(digits_page)
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") >= 3
