"""Skill from counts: the formulas by hand, means over leads, and what there is no data for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nowcastlab.errors import ConfigError
from nowcastlab.skill import SKILL, SequenceScores, as_text, lead_mean, leads_with_data, per_lead, summarize


def made(tp: Any, fn: Any, fp: Any, tn: Any, **errors: Any) -> SequenceScores:
    """Scores from counts (sequence, lead, threshold); errors are 0 unless given."""
    counts = {name: np.asarray(value, np.int64) for name, value in (("tp", tp), ("fn", fn), ("fp", fp), ("tn", tn))}
    sequences, leads, thresholds = counts["tp"].shape
    sums = {name: np.zeros((sequences, leads)) for name in ("mse", "mae", "bmse", "bmae", "gdl")}
    sums |= {name: np.asarray(value, np.float64) for name, value in errors.items()}
    return SequenceScores(
        **counts,
        **sums,
        start=30 * np.arange(sequences),
        episode=np.zeros(sequences, np.int64),
        thresholds_mmh=np.array((0.5, 2.0, 5.0, 10.0, 30.0)[:thresholds]),
        lead_minutes=6.0 * np.arange(1, leads + 1),
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("csi", 30 / (30 + 10 + 20)),
        # (TP + FN)(FN + TN) + (TP + FP)(FP + TN) = 40 * 50 + 50 * 60
        ("hss", 2 * (30 * 40 - 10 * 20) / (40 * 50 + 50 * 60)),
        ("pod", 30 / 40),
        ("far", 20 / 50),
        # hits by chance: 40 * 50 / 100 = 20
        ("gss", (30 - 20) / (60 - 20)),
        ("bias", 50 / 40),
    ],
)
def test_each_formula_on_numbers_done_by_hand(name: str, expected: float) -> None:
    assert SKILL[name](30, 10, 20, 40).item() == pytest.approx(expected, rel=1e-15)


def test_a_perfect_forecast_has_the_best_of_every_score() -> None:
    best = {"csi": 1, "hss": 1, "pod": 1, "far": 0, "gss": 1, "bias": 1}
    assert {name: score(5, 0, 0, 7).item() for name, score in SKILL.items()} == best


def test_long_archives_do_not_overflow() -> None:
    # 10^11 pixels of each kind: products are 10^22, beyond 64-bit integers; half right by chance is no skill
    n = np.array(10**11)
    assert SKILL["hss"](n, n, n, n).item() == 0


def test_counts_are_summed_over_sequences_then_scored_per_lead_then_averaged() -> None:
    # lead 1: TP 9 + 0 of 10 + 0 events; lead 2: 1 + 0 of 10 + 80
    tp, fn = np.array([[[9], [1]], [[0], [0]]]), np.array([[[1], [9]], [[0], [80]]])
    scores = made(tp=tp, fn=fn, fp=0 * tp, tn=100 - tp - fn)
    csi = per_lead(scores, "csi")
    assert csi[:, 0].tolist() == [9 / 10, 1 / 90]
    assert lead_mean(csi).tolist() == [pytest.approx((9 / 10 + 1 / 90) / 2)]
    # pooling the leads, or averaging over sequences, would have given other numbers
    assert lead_mean(csi).item() != pytest.approx(10 / 100)


def test_errors_are_averaged_over_sequences_then_leads_with_missing_targets_in_the_denominator() -> None:
    nothing = np.zeros((2, 2, 1))
    scores = made(nothing, nothing, nothing, nothing, bmse=[[10, 40], [0, 60]])  # sequence 2 missed its first target
    assert per_lead(scores, "bmse").tolist() == [5, 50]
    assert summarize(scores)["bmse"] == 27.5


def test_a_threshold_never_observed_has_no_data_whatever_was_forecast() -> None:
    for false_alarms in (0, 3):
        scores = made(tp=[[[2, 0]]], fn=[[[1, 0]]], fp=[[[3, false_alarms]]], tn=[[[4, 10 - false_alarms]]])
        for name in SKILL:
            value = lead_mean(per_lead(scores, name))
            assert value.tolist()[1] is None
            assert np.isnan(value.data[1])  # a lost mask cannot pass for a number
            assert summarize(scores)[name][1] is None
            assert summarize(scores)[name][0] is not None
        assert "no data" in as_text(scores)
        assert "2 mm/h was never observed: no data." in as_text(scores)


def test_a_threshold_observed_at_some_leads_only_is_averaged_over_those_and_said_so() -> None:
    scores = made(tp=[[[2], [0], [6]]], fn=[[[2], [0], [2]]], fp=[[[0], [5], [0]]], tn=[[[6], [5], [2]]])
    csi = per_lead(scores, "csi")
    assert csi[:, 0].tolist() == [0.5, None, 0.75]
    assert lead_mean(csi).tolist() == [0.625]
    assert leads_with_data(csi).tolist() == summarize(scores)["leads_with_data"]["csi"] == [2]
    assert "CSI at 0.5 mm/h: 2 of 3 leads have data." in as_text(scores)


def test_far_has_no_data_where_nothing_was_forecast_and_the_others_have() -> None:
    scores = made(tp=[[[0]]], fn=[[[4]]], fp=[[[0]]], tn=[[[6]]])
    summary = summarize(scores)
    assert summary["far"] == [None]
    assert summary["csi"] == summary["pod"] == summary["bias"] == [0.0]


def test_a_frame_that_rains_everywhere_leaves_no_chance_to_beat() -> None:
    assert SKILL["hss"](10, 0, 0, 0).tolist() is None
    assert SKILL["gss"](10, 0, 0, 0).tolist() is None
    assert SKILL["csi"](10, 0, 0, 0).item() == 1


def test_no_sequences_at_all_is_no_data_and_not_a_warning() -> None:
    nothing = np.zeros((0, 2, 1))
    summary = summarize(made(nothing, nothing, nothing, nothing))
    assert summary["csi"] == [None]
    assert summary["bmse"] is None
    assert "no data" in as_text(made(nothing, nothing, nothing, nothing))


def test_means_work_on_resampled_counts_too() -> None:
    # (replicate, lead, threshold), as a bootstrap has them
    tp = np.array([[[1], [3]], [[0], [2]]])
    csi = SKILL["csi"](tp, 4 - tp, 0 * tp, 0 * tp)
    assert lead_mean(csi, axis=1).tolist() == [[0.5], [0.25]]


def test_an_unknown_score_is_refused_with_the_names() -> None:
    with pytest.raises(ConfigError, match=r"No score 'ets'\. The scores are: csi, hss"):
        per_lead(made([[[1]]], [[[1]]], [[[1]]], [[[1]]]), "ets")


def test_the_printed_rows_of_the_benchmark_need_the_factor_two() -> None:
    # Shi et al. 2017, table 3, Last Frame at 0.5 mm/h: CSI .4022, HSS .5207. A base rate of 9.69 % and equal counts of
    # misses and false alarms (a shifted frame) tie the two: TP = x, FN = FP = b - x, CSI = x / (2b - x).
    b = 0.0969
    x = 2 * b * 0.4022 / 1.4022
    assert SKILL["csi"](x, b - x, b - x, 1 - 2 * b + x).item() == pytest.approx(0.4022)
    assert SKILL["hss"](x, b - x, b - x, 1 - 2 * b + x).item() == pytest.approx(0.5207, abs=0.01)
