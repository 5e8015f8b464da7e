from __future__ import annotations

from typing import Any

import pytest

from nowcastlab.errors import ConfigError
from nowcastlab.figures.cost import CostPoint, draw_cost

POINTS = [
    CostPoint(name="cheap", cost=0.1, score=9.0, on_front=True),
    CostPoint(name="good", cost=20.0, score=5.0, std=0.5, on_front=True),
    CostPoint(name="neither", cost=19.0, score=8.0),
]


def draw(points: list[CostPoint], **options: Any) -> Any:
    figure = draw_cost(points, cost_title="hours", score_title="B-MSE", **options)
    return figure.axes[0]


def test_the_front_is_a_line_through_its_arms_by_cost() -> None:
    line = draw(POINTS[::-1]).lines[0]
    assert line.get_xdata().tolist() == [0.1, 20.0]
    assert line.get_ydata().tolist() == [9.0, 5.0]


def test_an_arm_behind_the_front_is_hollow() -> None:
    marks = [container.lines[0] for container in draw(POINTS).containers]
    assert [mark.get_markerfacecolor() == "white" for mark in marks] == [False, False, True]


def test_every_arm_has_its_name_and_no_two_names_overlap() -> None:
    near = [CostPoint(name=f"network {i}", cost=10.0 + 0.1 * i, score=5.0 + 0.01 * i) for i in range(4)]
    axes = draw([*POINTS, *near])
    texts = [text for text in axes.texts if "cheaper and" not in text.get_text()]
    assert {text.get_text() for text in texts} == {point.name for point in [*POINTS, *near]}
    boxes = [text.get_window_extent() for text in texts]
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])


@pytest.mark.parametrize(("costs", "axis"), [((1, 5, 9), "linear"), ((1, 5, 11), "log"), ((0, 5, 11), "linear")])
def test_costs_that_differ_tenfold_get_a_logarithmic_axis(costs: tuple[float, ...], axis: str) -> None:
    points = [CostPoint(name=str(cost), cost=cost, score=1.0) for cost in costs]
    assert draw(points).get_xscale() == axis


def test_no_costs_give_no_picture() -> None:
    with pytest.raises(ConfigError, match="no arm whose cost is known"):
        draw([])
