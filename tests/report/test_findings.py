"""Comparisons, curves and cost, from MLflow alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nowcastlab.report import Findings, find, from_mlflow
from nowcastlab.report.standing import standing
from nowcastlab.significance import Cell
from nowcastlab.tracking import connect


@pytest.fixture(scope="module")
def radar(radar_uri: str) -> Findings:
    return find(*from_mlflow(connect(radar_uri), "hko7-benchmark"), resamples=500)


@pytest.fixture(scope="module")
def digits(digits_uri: str) -> Findings:
    return find(*from_mlflow(connect(digits_uri), "links-vs-kernel"), resamples=500)


def test_the_comparisons_are_those_the_sweep_named_and_online_against_offline(radar: Findings) -> None:
    titles = [f.title for f in radar.comparisons if f.comparison.cell == Cell(score="bmse")]
    assert titles == [
        "TrajGRU - ConvGRU, offline",
        "TrajGRU - ConvGRU, online",
        "2D-CNN - ROVER-Nonlinear, offline",
        "ConvGRU - ConvGRU-nobal, offline",
        "2D-CNN: online - offline",
        "3D-CNN: online - offline",
        "ConvGRU: online - offline",
        "TrajGRU: online - offline",
    ]


def test_holms_correction_is_over_both_decisive_scores_together(radar: Findings) -> None:
    decisive = [f.comparison for f in radar.comparisons if f.decisive]
    assert len(decisive) == 2 * 8
    assert {c.family for c in decisive} == {16}
    assert all(c.p is not None and c.p_holm is not None and c.p_holm >= c.p for c in decisive)


def test_only_the_same_trainings_have_paired_seeds(radar: Findings) -> None:
    assert {f.title for f in radar.comparisons if f.comparison.paired_seeds} == {
        f"{arm}: online - offline" for arm in ("2D-CNN", "3D-CNN", "ConvGRU", "TrajGRU")
    }


def test_seeds_added_to_a_sweep_that_had_begun_are_told_of(radar: Findings) -> None:
    record = radar.collection.record
    assert record is not None
    grown = replace(record, plain={**record.plain, "seeds": [[1, 2], [3]]})
    (mark,) = set(standing(replace(radar.collection, record=grown)).marks) - set(standing(radar.collection).marks)
    assert mark.startswith("Seeds 3 were added after the sweep had begun with 1, 2: whoever adds seeds")


def test_a_baseline_has_no_seeds_to_vary(radar: Findings) -> None:
    (found,) = [f for f in radar.comparisons if f.b == "ROVER-Nonlinear" and f.comparison.cell == Cell(score="bmse")]
    assert found.comparison.seeds == (3, 1)
    assert found.comparison.p is not None  # one run of a trained arm could not be tested
    assert found.comparison.episodes == 12


def test_digits_sequences_are_their_own_episodes(digits: Findings) -> None:
    assert digits.tested_on == (60, 60)
    assert [f.title for f in digits.comparisons] == ["Traj-L5 - Conv-K3-D2", "Traj-L9 - Traj-L5"]
    assert all(f.comparison.winner() == f.a for f in digits.comparisons)


def test_a_curve_has_a_point_and_an_interval_at_every_lead(radar: Findings) -> None:
    (curve,) = [c for c in radar.curves if (c.arm, c.setting, c.cell) == ("TrajGRU", "online", Cell(score="bmse"))]
    assert curve.lead_minutes == (6.0, 12.0, 18.0)
    for low, mean, high in zip(curve.low, curve.mean, curve.high, strict=True):
        assert low is not None
        assert high is not None
        assert low < mean < high
    assert (curve.seeds, curve.episodes) == (3, 12)
    # the mean over leads of the points is the table's number
    cell = radar.collection.cell("TrajGRU", "online/bmse")
    assert cell is not None
    assert sum(curve.mean) / 3 == pytest.approx(cell.mean)


def test_an_arm_that_is_worse_and_dearer_than_another_is_not_on_the_front(radar: Findings) -> None:
    rows = {row.arm: row for row in radar.costs if row.setting == "offline"}
    # made with 1000 weights a letter, so that ConvGRU and TrajGRU have 7000: the better of them is on the front
    assert "parameters" in rows["TrajGRU"].front
    assert "parameters" not in rows["ConvGRU"].front
    assert "parameters" in rows["3D-CNN"].front  # worse, but 6000
    assert rows["3D-CNN"].hours is not None
    assert rows["3D-CNN"].hours.mean == pytest.approx((360 + 36 * 2 + 6) / 3600)
