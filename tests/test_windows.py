"""The walk and the random windows, against the official frame lists and small cases drawn by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from nowcastlab.errors import ConfigError
from nowcastlab.windows import Window, episodes, training_starts, valid_starts, walk


def official(shared_data: Path, split: str) -> NDArray[np.int64]:
    # np.load warns about a header of Python 2, so the values are read as they lie
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.load(shared_data / "hko7" / f"hko7_rainy_{split}_minutes.npz", allow_pickle=False)["minutes"]


@pytest.mark.parametrize(("split", "windows", "new"), [("test", 6053, 56), ("train", 37114, 329)])
def test_the_official_frames_give_the_official_windows(shared_data: Path, split: str, windows: int, new: int) -> None:
    walked = walk(official(shared_data, split))
    assert (len(walked), sum(window.new_episode for window in walked)) == (windows, new)


def test_the_official_training_frames_give_the_official_starts(shared_data: Path) -> None:
    minutes = official(shared_data, "train")
    assert (len(minutes), len(valid_starts(minutes))) == (192_168, 184_851)


def test_official_test_windows_miss_the_frames_they_should(shared_data: Path) -> None:
    """156 windows hold a missing frame, 157 frames in all, 125 of them targets; in 10 the last input is missing."""
    minutes = official(shared_data, "test")
    starts = np.array([window.start for window in walk(minutes)])
    missing = ~np.isin(starts[:, None] + 6 * np.arange(25), minutes)
    assert missing.any(axis=1).sum() == 156
    assert missing.sum() == 157
    assert missing[:, 5:].sum() == 125
    assert missing[:, 4].sum() == 10


def test_an_unbroken_run_is_one_episode_that_ends_with_its_last_stamp() -> None:
    # 10 frames, windows of 4 at stride 2: starts 0, 2, 4, 6 fit; 8 runs two frames past the end, which is allowed
    assert walk(np.arange(10) * 6, length=4, stride=2) == [Window(i * 6, i == 0) for i in (0, 2, 4, 6, 8)]


def test_a_gap_of_two_is_bridged_and_one_of_three_begins_an_episode() -> None:
    frames = np.arange(12)
    bridged = walk(np.delete(frames, [4, 5]) * 6, length=4, stride=4)
    assert [window.new_episode for window in bridged] == [True, False, False]
    broken = walk(np.delete(frames, [4, 5, 6]) * 6, length=4, stride=4)
    # from 4 the window 4..7 misses three in a row: on to the next frame there is, 7; from 11 it would run past the end
    assert broken == [Window(0, True), Window(7 * 6, True)]


def test_a_window_may_start_where_there_is_no_frame() -> None:
    assert walk(np.delete(np.arange(12), [4]) * 6, length=4, stride=4)[1] == Window(24, False)


def test_valid_starts_agree_with_looking_at_each_window() -> None:
    rng = np.random.default_rng(5)
    minutes = np.flatnonzero(rng.random(400) < 0.6) * 6 + (rng.random() < 0.5)
    there = set(minutes.tolist())

    def longest_gap(start: int) -> int:
        run = worst = 0
        for i in range(8):
            run = 0 if start + 6 * i in there else run + 1
            worst = max(worst, run)
        return worst

    expected = [m for m in minutes.tolist() if longest_gap(m) <= 2]
    assert 0 < len(expected) < len(minutes)
    assert valid_starts(minutes, length=8).tolist() == expected


def test_order_and_repeats_of_the_stamps_do_not_matter() -> None:
    assert walk([12, 0, 6, 6], length=2, stride=1) == walk([0, 6, 12], length=2, stride=1)


def test_a_training_step_depends_on_seed_and_step_alone() -> None:
    starts = np.arange(1000)
    first = [training_starts(starts, seed=3, step=k, batch_size=4).tolist() for k in range(20)]
    again = [training_starts(starts, seed=3, step=k, batch_size=4).tolist() for k in reversed(range(20))]
    assert first == again[::-1]
    assert first != [training_starts(starts, seed=4, step=k, batch_size=4).tolist() for k in range(20)]
    assert len({start for step in first for start in step}) > 70  # 80 draws of 1000: hardly any twice


def test_training_windows_are_uniform_over_frames() -> None:
    drawn = np.concatenate([training_starts(np.arange(4), seed=0, step=k, batch_size=8) for k in range(2000)])
    share = np.bincount(drawn) / len(drawn)
    # 16,000 draws: a standard deviation of sqrt(.25 * .75 / 16000) = .0034
    assert np.abs(share - 0.25).max() < 4 * 0.0034


def test_episodes_are_numbered_from_zero() -> None:
    assert episodes([Window(0, True), Window(30, False), Window(90, True)]).tolist() == [0, 0, 1]


def test_no_frames_give_no_windows() -> None:
    assert walk([]) == []
    assert len(valid_starts([])) == 0


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: walk([0.5]), "row of integers"),
        (lambda: walk([0], stride=0), r"`stride` \(=0\) must be at least 1"),
        (lambda: training_starts(np.empty(0, np.int64), seed=0, step=0, batch_size=1), "No valid training window"),
    ],
)
def test_impossible_arguments_say_so(call: object, text: str) -> None:
    assert callable(call)
    with pytest.raises(ConfigError, match=text):
        call()
