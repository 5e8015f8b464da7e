"""Figures with their captions, and frames in rows: what the page draws of the examples that runs left behind."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nowcastlab.figures.colours import COLOURS, EDGES_MMH, EXCLUDED, FAINT, rgb_from_pixels
from nowcastlab.figures.embed import frame_png, png_uri, short_name, svg
from nowcastlab.figures.links import busiest, draw_links
from nowcastlab.protocol.examples import Examples
from nowcastlab.report.page.markup import Html, join, tag
from nowcastlab.report.page.tables import scroll

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEADS_SHOWN = 5
SEQUENCES_SHOWN = 3
LINKS_SHOWN = 3


def figure_html(figure: Figure, *, name: str, alt: str, caption: str | None = None) -> Html:
    """A drawing in the page, with `alt` for those who cannot see it; `name` must be the only one of the page."""
    drawn = svg(figure, name=name).replace("<svg ", f'<svg role="img" aria-labelledby="{name}-alt" ', 1)
    first = drawn.index(">") + 1
    title = tag("title", alt, id=f"{name}-alt")
    return tag("figure", Html(drawn[:first] + title + drawn[first:]), tag("figcaption", caption) if caption else None)


def gallery(examples: Mapping[str, Examples], *, radar: bool) -> Html:
    """A table a sequence: what came, and below it what each arm forecast, lead by lead. Either rain or digits."""
    first = next(iter(examples.values()))
    same = {arm: its for arm, its in examples.items() if _same_windows(first, its)}
    left_out = [arm for arm in examples if arm not in same]
    parts = [_rates(excluded=first.excluded is not None)] if radar else []
    parts += [_sequence(same, i, radar) for i in range(min(len(first), SEQUENCES_SHOWN))]
    if left_out:
        parts.append(tag("p", f"Not shown, having kept other sequences: {', '.join(left_out)}.", class_="notes"))
    return join(*parts)


def links_html(arm: str, examples: Examples, *, radar: bool, key: str) -> Html:
    """The links of one network that differ most from place to place, over the newest frame it saw."""
    assert examples.links is not None
    frame = _image(examples.inputs[0, -1], examples.excluded, radar)
    total = examples.links.shape[1]
    panels = []
    for link in busiest(examples.links[0], LINKS_SHOWN):
        title, short = (f"{name}, link {link + 1} of {total}" for name in (arm, short_name(arm)))
        figure = draw_links(frame, examples.links[0, link], stride=examples.links_stride, title=short)
        far = float(np.hypot(*examples.links[0, link]).mean()) * examples.links_stride
        alt = f"{title}: arrows over the last input frame of {examples.labels[0]}, {far:.1f} pixels long on average"
        panels.append(figure_html(figure, name=f"links-{key}-{link}", alt=alt))
    return tag("div", *panels, class_="panels")


def leads_shown(leads: int) -> list[int]:
    """Spread over the forecast, and the last one."""
    return sorted(set((np.linspace(0, leads, min(LEADS_SHOWN, leads) + 1).round().astype(int)[1:] - 1).tolist()))


def _sequence(examples: Mapping[str, Examples], i: int, radar: bool) -> Html:
    first = next(iter(examples.values()))
    columns = leads_shown(len(first.lead_minutes))
    times = [f"+{first.lead_minutes[c]}{' min' if radar else ''}" for c in columns]
    label = first.labels[i]
    seen = _img(first.inputs[i, -1], first.excluded, radar, alt=f"{label}: the last frame seen")
    rows = [_row("observed", seen, first.truth[i], first.excluded, columns, times, radar, label)]
    for arm, its in examples.items():
        rows.append(_row(arm, None, its.forecast[i], its.excluded, columns, times, radar, label))
    head = tag("tr", tag("td"), *(tag("th", time, scope="col") for time in ("now", *times)))
    caption = tag("caption", tag("span", label))
    table = tag("table", caption, tag("thead", head), tag("tbody", *rows), class_="frames")
    return scroll(table, label=f"forecasts beside what was observed, {label}")


def _row(
    title: str,
    seen: Html | None,
    frames: NDArray[np.uint8],
    excluded: NDArray[np.bool_] | None,
    columns: list[int],
    times: list[str],
    radar: bool,
    label: str,
) -> Html:
    cells = [
        tag("td", _img(frames[c], excluded, radar, alt=f"{title}, {time}, {label}"))
        for c, time in zip(columns, times, strict=True)
    ]
    return tag("tr", tag("th", title, scope="row"), tag("td", seen), *cells)


def _img(frame: NDArray[np.uint8], excluded: NDArray[np.bool_] | None, radar: bool, *, alt: str) -> Html:
    height, width = frame.shape
    return tag("img", src=png_uri(frame_png(_image(frame, excluded, radar))), alt=alt, width=width, height=height)


def _image(frame: NDArray[np.uint8], excluded: NDArray[np.bool_] | None, radar: bool) -> NDArray[np.uint8]:
    """Rain in its colours; digits dark on white, which prints better than white on black."""
    if radar:
        return rgb_from_pixels(frame, excluded)
    return np.repeat((255 - frame)[..., None], 3, axis=-1)


def _same_windows(one: Examples, other: Examples) -> bool:
    return (
        one.labels == other.labels and one.lead_minutes == other.lead_minutes and np.array_equal(one.truth, other.truth)
    )


def _rates(*, excluded: bool) -> Html:
    """The colours of rain, from the one scale that all pictures share."""
    names = [f"{edge:g} to {after:g}" for edge, after in pairwise(EDGES_MMH)]
    colours = [(FAINT, f"below {EDGES_MMH[0]:g}"), *zip(COLOURS, [*names, f"{EDGES_MMH[-1]:g} and more"], strict=True)]
    swatches = [tag("li", tag("span", style=f"background:{colour}"), text) for colour, text in colours]
    if excluded:
        swatches.append(tag("li", tag("span", style=f"background:{EXCLUDED}"), "not scored"))
    return tag("ul", tag("li", "rain rate in mm/h:"), *swatches, class_="rates")
