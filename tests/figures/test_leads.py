from __future__ import annotations

import numpy as np
import pytest

from nowcastlab.errors import ConfigError
from nowcastlab.figures.leads import LeadCurve, draw_key, draw_leads, line_style


def curve(name: str = "A", leads: int = 20, level: float = 0.5) -> LeadCurve:
    mean = np.full(leads, level)
    return LeadCurve(name=name, leads=6.0 * np.arange(1, leads + 1), mean=mean, low=mean - 0.1, high=mean + 0.2)


def bars(axes: object) -> list[np.ndarray]:
    return [np.array(b.get_segments()) for c in axes.containers for b in c.lines[2]]  # type: ignore[attr-defined]


def test_a_bar_spans_the_interval_at_its_lead() -> None:
    (axes,) = draw_leads([curve()], title="CSI").axes
    (segments,) = bars(axes)
    np.testing.assert_allclose(segments[:, :, 1], [[0.4, 0.7]] * len(segments))
    assert len(segments) >= 5


def test_arms_have_their_bars_at_different_places() -> None:
    (axes,) = draw_leads([curve(name) for name in "ABCDEFGHI"], title="CSI").axes
    x = np.concatenate([segments[:, 0, 0] for segments in bars(axes)])
    assert len(np.unique(x.round(6))) == len(x)


@pytest.mark.parametrize("leads", [1, 2, 5, 20])
def test_every_mark_stands_on_its_own_line(leads: int) -> None:
    curves = [curve(name, leads, level) for name, level in (("A", 0.2), ("B", 0.4), ("C", 0.6))]
    (axes,) = draw_leads(curves, title="CSI").axes
    lines = [line for line in axes.lines if line.get_linestyle() != "None"]
    marks = [container.lines[0] for container in axes.containers]
    for line, mark in zip(lines, marks, strict=True):
        points = set(zip(line.get_xdata(), line.get_ydata(), strict=True))
        assert set(zip(mark.get_xdata(), mark.get_ydata(), strict=True)) <= points


def test_what_is_drawn_is_the_value_times_the_scale() -> None:
    (axes,) = draw_leads([curve()], title="MSE x 100", scale=100).axes
    assert set(axes.lines[0].get_ydata()) == {50.0}


def test_a_score_without_data_says_so() -> None:
    empty = LeadCurve(name="A", leads=(6, 12), mean=(np.nan, np.nan))
    (axes,) = draw_leads([empty], title="CSI").axes
    assert [text.get_text() for text in axes.texts] == ["no data"]


def test_many_arms_can_be_told_apart_without_colour() -> None:
    assert len({(str(dash), mark) for _, dash, mark in map(line_style, range(18))}) == 18


def test_the_key_names_every_arm() -> None:
    (legend,) = draw_key(["A", "B", "a rather long name"]).legends
    assert [text.get_text() for text in legend.get_texts()] == ["A", "B", "a rather long name"]


def test_an_interval_of_another_length_is_refused() -> None:
    with pytest.raises(ConfigError, match="`low` has 1 values for 2 leads"):
        LeadCurve(name="A", leads=(6, 12), mean=(1, 2), low=(1,), high=(2,))
