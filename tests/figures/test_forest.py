from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nowcastlab.errors import ConfigError
from nowcastlab.figures.forest import draw_forest
from nowcastlab.significance import Cell, Comparison


def comparison(a: str, b: str, difference: float, p: float | None = 0.5, **changes: Any) -> Comparison:
    values: dict[str, Any] = {
        "a": a,
        "b": b,
        "cell": Cell(score="bmse"),
        "difference": difference,
        "seeds": (3, 3),
        "paired_seeds": False,
        "episodes": 56,
        "effective_episodes": 30.0,
        "resamples": 10_000,
        "effect_size": None,
        "std_larger": None,
        "low": difference - 1,
        "high": difference + 2,
        "p": p,
    }
    return Comparison(**{**values, **changes})


def names(figure: Any) -> list[str]:
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def marks(figure: Any) -> list[Any]:
    return [line for line in figure.axes[0].lines if line.get_marker() not in ("None", None, "")]


def test_the_best_of_the_first_arms_comes_first() -> None:
    """A lower B-MSE is better, so the most negative difference leads."""
    figure = draw_forest([comparison("A", "B", 5), comparison("C", "B", -7), comparison("D", "B", 0)])
    assert names(figure) == ["C − B", "D − B", "A − B"]


def test_for_a_score_of_which_more_is_better_the_order_turns() -> None:
    cell = Cell(score="csi", threshold_mmh=5.0)
    figure = draw_forest([comparison("A", "B", -5, cell=cell), comparison("C", "B", 7, cell=cell)])
    assert names(figure) == ["C − B", "A − B"]
    titles = [figure.axes[0].get_title(loc=side) for side in ("left", "right")]
    assert titles == ["← second is better", "first is better →"]


def test_what_is_shown_is_filled_and_another_mark() -> None:
    shown, open_ = marks(draw_forest([comparison("A", "B", -9, p=0.01), comparison("C", "B", 1, p=0.4)]))
    assert (shown.get_marker(), open_.get_marker()) == ("D", "o")
    assert shown.get_markerfacecolor() == shown.get_color()
    assert open_.get_markerfacecolor() == "white"


def test_holms_value_decides_where_there_is_one() -> None:
    (mark,) = marks(draw_forest([comparison("A", "B", -9, p=0.01, p_holm=0.2, family=5)]))
    assert mark.get_marker() == "o"


def test_comparisons_named_before_the_run_are_bold() -> None:
    figure = draw_forest([comparison("A", "B", -1), comparison("C", "B", 1)], named=[("A", "B")])
    assert [label.get_fontweight() for label in figure.axes[0].get_yticklabels()] == ["bold", "normal"]


def test_an_interval_is_drawn_from_low_to_high_times_the_scale() -> None:
    figure = draw_forest([comparison("A", "B", 3)], scale=10)
    assert [20.0, 50.0] in [list(line.get_xdata()) for line in figure.axes[0].lines]


def test_what_cannot_be_tested_has_a_mark_and_no_interval() -> None:
    bare = replace(comparison("A", "B", 3), low=None, high=None, p=None, untestable="one seed")
    figure = draw_forest([bare])
    assert len(marks(figure)) == 1
    assert len(figure.axes[0].lines) == 2  # zero, and the mark


def test_scores_are_not_mixed() -> None:
    with pytest.raises(ConfigError, match="one score"):
        draw_forest([comparison("A", "B", 1), comparison("A", "B", 1, cell=Cell(score="bmae"))])


def test_nothing_to_compare_gives_no_picture() -> None:
    with pytest.raises(ConfigError, match="no comparison"):
        draw_forest([])
