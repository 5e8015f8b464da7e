"""The names of a run's numbers: written out here, because databases made long ago have them."""

from __future__ import annotations

import pytest

from nowcastlab import metric_names, skill
from nowcastlab.metric_names import by_lead_name, metric_name, parse_metric, radar_metrics

NAMES = [("offline/bmse", ("offline", "bmse", None)), ("online/csi/r0.5", ("online", "csi", 0.5)),
         ("valid/far/r30", ("valid", "far", 30.0)), ("test/mse", ("test", "mse", None))]  # fmt: skip


@pytest.mark.parametrize(("name", "parts"), NAMES)
def test_a_name_is_made_of_its_parts_and_taken_apart_again(name: str, parts: tuple[str, str, float | None]) -> None:
    assert metric_name(*parts) == name
    assert parse_metric(name) == parts


def test_a_score_by_lead_says_so_after_its_setting() -> None:
    assert by_lead_name("offline", "csi", 0.5) == "offline/by_lead/csi/r0.5"
    assert metric_names.DIGITS_MSE_BY_LEAD == "test/by_lead/mse"


def test_every_number_of_a_summary_has_a_name_but_where_there_is_no_data() -> None:
    summary = {"thresholds_mmh": [0.5, 30.0], **dict.fromkeys(metric_names.ERRORS, 7.0)}
    summary |= {score: [0.25, None] for score in metric_names.SKILL}
    assert radar_metrics("offline", summary) == {
        "offline/bmse": 7.0,
        "offline/bmae": 7.0,
        "offline/mse": 7.0,
        "offline/mae": 7.0,
        "offline/csi/r0.5": 0.25,
        "offline/hss/r0.5": 0.25,
        "offline/pod/r0.5": 0.25,
        "offline/far/r0.5": 0.25,
    }


def test_every_score_that_has_a_name_can_be_computed() -> None:
    assert set(metric_names.ERRORS) <= set(skill.ERRORS)
    assert set(metric_names.SKILL) <= skill.SKILL.keys()
