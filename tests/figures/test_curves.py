from __future__ import annotations

import numpy as np
import pytest

from nowcastlab.errors import ConfigError
from nowcastlab.figures.curves import LINES, lead_curves, training_curve
from nowcastlab.skill import Scorer, SequenceScores, per_lead


def scores(shift: float = 0.0) -> SequenceScores:
    rng = np.random.default_rng(0)
    true = rng.integers(71, 150, (3, 4, 10, 10)).astype(np.uint8)  # 10 and 30 mm/h never occur
    predicted = (true / 255 + shift).astype(np.float32)
    scorer = Scorer(excluded=np.zeros((10, 10), bool), lead_minutes=[6, 12, 18, 24])
    return scorer.score(predicted, true, present=np.ones((3, 4), bool), start=[0, 30, 60], episode=[0, 0, 0])


def test_a_panel_a_threshold_and_two_errors_with_a_line_a_run() -> None:
    one, other = scores(), scores(0.05)
    figure = lead_curves({"one": one, "other": other})
    drawn = [axes for axes in figure.axes if axes.lines]
    assert len(drawn) == 7
    np.testing.assert_allclose(drawn[5].lines[1].get_ydata(), per_lead(other, "bmse").data)
    assert [line.get_label() for line in drawn[0].lines] == ["one", "other"]


def test_a_threshold_that_never_occurs_says_so() -> None:
    figure = lead_curves({"one": scores()})
    words = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert words[:5] == [[], [], [], ["no data"], ["no data"]]


def test_lines_can_be_told_apart_without_colour() -> None:
    assert len({(str(dash), mark) for _, dash, mark in LINES}) == len(LINES)


def test_no_scores_give_no_picture() -> None:
    with pytest.raises(ConfigError, match="no scores to draw"):
        lead_curves({})


def test_the_training_curve_marks_its_best() -> None:
    history = [
        {"step": 10, "train/loss": 3.0},
        {"step": 20, "train/loss": 2.0, "valid/score": 50.0},
        {"step": 30, "train/loss": 1.5, "valid/score": 60.0},
    ]
    figure = training_curve(history, title="a run")
    left, right = figure.axes
    assert left.lines[0].get_xdata().tolist() == [10, 20, 30]
    assert right.lines[0].get_ydata().tolist() == [50.0, 60.0]
    assert [text.get_text() for text in right.texts] == ["best 50\nat 20"]


def test_a_history_without_a_report_gives_no_curve() -> None:
    with pytest.raises(ConfigError, match="no report yet"):
        training_curve([])
