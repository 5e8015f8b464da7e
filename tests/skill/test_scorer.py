"""Counts and errors of every frame, against the slow reference and against each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from nowcastlab.errors import ConfigError, TrainingError
from nowcastlab.skill import COUNTS, ERRORS, Scorer, SequenceScores, concatenate
from nowcastlab.skill.device import score_on_device
from nowcastlab.skill.rule import Rule, first_p
from nowcastlab.units import THRESHOLDS_MMH, level_from_mmh, mmh_from_pixel


def same(a: SequenceScores, b: SequenceScores) -> bool:
    left, right = a.arrays(), b.arrays()
    return left.keys() == right.keys() and all(
        left[name].dtype == right[name].dtype and left[name].tobytes() == right[name].tobytes() for name in left
    )


def test_counts_and_errors_are_those_of_a_slow_loop_over_pixels(frames: Any, score: Any, reference: Any) -> None:
    rng = np.random.default_rng(1)
    predicted, true = frames(rng, 2, 3)
    excluded = rng.random(true.shape[2:]) < 0.2
    scores = score(predicted, true, excluded=excluded)
    for b, lead in np.ndindex(2, 3):
        counts, errors = reference(predicted[b, lead], true[b, lead], excluded)
        for name in COUNTS:
            assert getattr(scores, name)[b, lead].tolist() == counts[name]
        for name in ERRORS:
            assert getattr(scores, name)[b, lead] == pytest.approx(errors[name], rel=1e-12)


def test_a_frame_taller_than_a_byte_counts_right(score: Any) -> None:
    # 600 rows that all rain: more than a counter of one byte holds
    true = np.full((1, 1, 600, 3), 200, np.uint8)
    scores = score((true / 255).astype(np.float32), true)
    assert scores.tp[0, 0].tolist() == [1800] * 5


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (3, 512)])
def test_any_grid_is_scored(shape: tuple[int, int], frames: Any, score: Any, reference: Any) -> None:
    predicted, true = frames(np.random.default_rng(2), 1, 1, *shape)
    scores = score(predicted, true)
    counts, errors = reference(predicted[0, 0], true[0, 0], np.zeros(shape, bool))
    assert scores.tp[0, 0].tolist() == counts["tp"]
    assert scores.gdl[0, 0] == pytest.approx(errors["gdl"], rel=1e-12)


def round_map(y: Any, x: Any) -> Any:
    return np.hypot(y - 30, x - 40) > 25


@pytest.mark.parametrize(
    "excluded_at",
    [
        round_map,
        lambda y, x: np.abs(y - x) > 3,  # a diagonal band: every row begins and ends elsewhere
        lambda y, x: (y != 31) | (x != 47),  # one pixel
        lambda y, x: y % 3 > 0,  # rows of nothing between rows
        lambda y, x: (x < 16) | (x >= 32),
        lambda y, x: y >= 0,  # everything
    ],
)
def test_any_map_of_excluded_pixels_is_kept_to(excluded_at: Any, frames: Any, score: Any, reference: Any) -> None:
    predicted, true = frames(np.random.default_rng(13), 1, 1, 61, 83)
    excluded = excluded_at(*np.mgrid[:61, :83])
    scores = score(predicted, true, excluded=excluded)
    counts, errors = reference(predicted[0, 0], true[0, 0], excluded)
    for name in COUNTS:
        assert getattr(scores, name)[0, 0].tolist() == counts[name]
    for name in ERRORS:
        assert getattr(scores, name)[0, 0] == pytest.approx(errors[name], rel=1e-12)


def test_a_prediction_that_is_a_level_is_judged_as_that_level(score: Any) -> None:
    # 256 pixels, one of each level, as truth and, divided three ways, as prediction: never a miss, never a false alarm
    true = np.arange(256, dtype=np.uint8).reshape(1, 1, 16, 16)
    divided = (true / 255).astype(np.float32)
    in_float32 = true.astype(np.float32) / np.float32(255)
    in_torch = torch.from_numpy(true).float() / 255
    for predicted in (divided, in_float32, in_torch):
        scores = score(predicted, true)
        assert not scores.fn.any()
        assert not scores.fp.any()
        assert scores.tp[0, 0].tolist() == [256 - 84, 256 - 118, 256 - 141, 256 - 158, 256 - 185]


def test_a_threshold_that_falls_on_a_level_still_judges_prediction_and_truth_alike() -> None:
    levels = np.arange(256)
    for level in levels[1:]:
        rate = float(mmh_from_pixel(level))  # back on the scale of levels this may be a hair above or below
        rains = levels >= level_from_mmh(rate)
        assert ((levels / 255).astype(np.float32) >= first_p(rate)).tolist() == rains.tolist()


def test_a_prediction_between_levels_is_compared_with_the_exact_threshold(score: Any) -> None:
    # 0.5 mm/h is p = .328253...: 83.70 on the scale of levels
    true = np.full((1, 1, 1, 2), 84, np.uint8)
    predicted = np.array([83.6, 83.8], np.float32).reshape(true.shape) / 255
    scores = score(predicted, true)
    assert (scores.tp[0, 0, 0], scores.fn[0, 0, 0]) == (1, 1)


def test_a_missing_target_adds_nothing(frames: Any, score: Any) -> None:
    predicted, true = frames(np.random.default_rng(3), 1, 2)
    scores = score(predicted, true, present=np.array([[True, False]]))
    for name in (*COUNTS, *ERRORS):
        assert not getattr(scores, name)[0, 1].any()
        assert getattr(scores, name)[0, 0].any()
    assert scores.missing.tolist() == [[False, True]]


def test_what_the_mask_hides_may_be_anything(frames: Any, score: Any) -> None:
    predicted, true = frames(np.random.default_rng(4), 1, 1)
    excluded = np.zeros(true.shape[2:], bool)
    excluded[5:9] = True
    clean = score(predicted, true, excluded=excluded)
    predicted[..., excluded] = np.nan
    predicted[(true > 0) & (true < 71)] = np.inf
    assert same(clean, score(predicted, true, excluded=excluded))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_forecast_that_is_not_finite_is_refused_with_its_place(bad: float, frames: Any, score: Any) -> None:
    predicted, true = frames(np.random.default_rng(5), 2, 3)
    true[1, 2, 0, 0], predicted[1, 2, 0, 0] = 0, bad
    with pytest.raises(TrainingError, match=r"lead 15 min of the window starting at minute 30.*earlier checkpoint"):
        score(predicted, true)


def test_the_result_does_not_depend_on_threads_or_batches_to_the_bit(frames: Any, score: Any) -> None:
    predicted, true = frames(np.random.default_rng(6), 5, 4, 64, 48)
    present = np.random.default_rng(7).random((5, 4)) < 0.8
    options = {"km_per_pixel": 1.0, "fss": True, "spectrum": True}
    whole = score(predicted, true, present=present, **options)
    threaded = score(predicted, true, present=present, threads=3, **options)
    parts = []
    for part in (slice(0, 1), slice(1, 4), slice(4, 5)):
        here = {"present": present[part], "start": whole.start[part], "episode": whole.episode[part]}
        parts.append(score(predicted[part], true[part], **here, **options))
    assert same(whole, threaded)
    assert same(whole, concatenate(parts))


def test_tensors_and_strided_arrays_give_the_same_bits(frames: Any, score: Any) -> None:
    predicted, true = frames(np.random.default_rng(8), 2, 3)
    expected = score(predicted, true)
    assert same(expected, score(torch.from_numpy(predicted).requires_grad_(), torch.from_numpy(true)))
    # the same numbers, last axis not contiguous
    flipped = np.ascontiguousarray(predicted[..., ::-1])[..., ::-1]
    assert same(expected, score(flipped, np.asfortranarray(true)))


def test_the_pass_for_devices_gives_the_same_integers_and_close_errors(frames: Any, score: Any) -> None:
    rng = np.random.default_rng(9)
    predicted, true = frames(rng, 2, 3)
    excluded, present = rng.random(true.shape[2:]) < 0.2, np.array([[True, True, False], [True, True, True]])
    scores = score(predicted, true, excluded=excluded, present=present)
    inputs = (torch.from_numpy(array) for array in (predicted, true, ~excluded, present))
    counts, errors = score_on_device(*inputs, Rule.of(THRESHOLDS_MMH))
    for i, name in enumerate(COUNTS):
        assert np.array_equal(counts[:, :, i], getattr(scores, name))
    for i, name in enumerate(ERRORS):
        assert errors[:, :, i] == pytest.approx(getattr(scores, name), rel=1e-12)


def test_parts_are_put_together_in_order(frames: Any, score: Any) -> None:
    predicted, true = frames(np.random.default_rng(10), 1, 2)
    late, early = score(predicted, true, start=[600], episode=[1]), score(predicted, true, start=[0], episode=[0])
    joined = concatenate([late, early])
    assert joined.start.tolist() == [600, 0]
    assert joined.episode.tolist() == [1, 0]
    assert joined.episodes == len(joined) == 2


def test_parts_of_different_kinds_are_refused(frames: Any, score: Any) -> None:
    predicted, true = frames(np.random.default_rng(11), 1, 2)
    one = score(predicted, true)
    with pytest.raises(ConfigError, match=r"Part 1 has `lead_minutes` \[6\.0, 12\.0\], part 0 \[5\.0, 10\.0\]"):
        concatenate([one, score(predicted, true, lead_minutes=[6, 12])])
    with pytest.raises(ConfigError, match="differ in fss_error, fss_pixels, fss_reference, fss_scale_km"):
        concatenate([one, score(predicted, true, fss=True, km_per_pixel=1.0)])
    with pytest.raises(ConfigError, match="Nothing was scored"):
        concatenate([])


def scorer(**changes: Any) -> Callable[[], Scorer]:
    settings = {"excluded": np.zeros((4, 5), bool), "lead_minutes": [6, 12], **changes}
    return lambda: Scorer(**settings)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (scorer(excluded=np.zeros((4, 5))), "`excluded` is a map"),
        (scorer(thresholds_mmh=(2.0, 0.5)), "must increase"),
        (scorer(thresholds_mmh=(0.0, 0.5)), "positive rain rates"),
        (scorer(thresholds_mmh=(9999.0,)), "no pixel can reach 9999 mm/h"),
        (scorer(thresholds_mmh=(0.01, 0.5)), r"0\.01 mm/h is below every echo; pixels begin at 0\.018 mm/h"),
        (scorer(fss=True), r"need `km_per_pixel` \(=None\)"),
        (scorer(threads=0), r"`threads` \(=0\)"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_once(make: Callable[[], Scorer], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        make()


@pytest.mark.parametrize(
    ("predicted", "true", "present", "text"),
    [
        (np.zeros((1, 2, 4, 5)), np.zeros((1, 2, 4, 5), np.uint8), np.ones((1, 2)), "of float64.*must be.*of float32"),
        (np.zeros((1, 2, 4, 4), "f4"), np.zeros((1, 2, 4, 5), np.uint8), np.ones((1, 2)), r"\(1, 2, 4, 4\)"),
        (np.zeros((1, 2, 4, 5), "f4"), np.zeros((1, 2, 4, 5), np.int64), np.ones((1, 2)), "`true`.*int64"),
        (np.zeros((1, 3, 4, 5), "f4"), np.zeros((1, 3, 4, 5), np.uint8), np.ones((1, 3)), "with 2 leads"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(predicted: Any, true: Any, present: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        scorer()().score(predicted, true, present=present, start=[0], episode=[0])


def test_scores_cannot_be_changed_behind_ones_back(frames: Any, score: Any) -> None:
    scores = score(*frames(np.random.default_rng(12), 1, 1))
    with pytest.raises(dataclasses.FrozenInstanceError):
        scores.tp = scores.fn
