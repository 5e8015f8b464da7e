"""The hours of a trial that was killed and taken up again."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from nowcastlab.sweep.stopwatch import FILE_NAME, Stopwatch, seconds_before


def killed(folder: Path, *, before_s: float, began: float, last_wrote: float) -> None:
    """What an attempt leaves that began and wrote its last checkpoint at these times, and then died."""
    (folder / FILE_NAME).write_text(json.dumps({"before_s": before_s, "began": began}))
    os.utime(folder / FILE_NAME, (began, began))
    checkpoint = folder / "checkpoints" / "state.pt"
    checkpoint.parent.mkdir(exist_ok=True)
    checkpoint.write_bytes(b"weights")
    os.utime(checkpoint, (last_wrote, last_wrote))


def test_a_trial_left_alone_took_its_own_time(tmp_path: Path) -> None:
    assert 0 <= Stopwatch(tmp_path).seconds < 60


def test_a_killed_attempt_counts_to_the_last_thing_it_wrote_and_the_night_after_it_does_not(tmp_path: Path) -> None:
    night = 8 * 3600
    died = time.time() - night
    killed(tmp_path, before_s=100, began=died - 900, last_wrote=died)
    # 100 s of the attempts before it, 900 s of its own, and a moment of this one
    assert 1000 <= Stopwatch(tmp_path).seconds < 1060


def test_an_attempt_that_wrote_nothing_adds_nothing(tmp_path: Path) -> None:
    killed(tmp_path, before_s=100, began=1000, last_wrote=400)
    assert seconds_before(tmp_path) == 100


def test_many_attempts_add_up(tmp_path: Path) -> None:
    for i in range(3):
        before = seconds_before(tmp_path)
        killed(tmp_path, before_s=before, began=10_000 * i, last_wrote=10_000 * i + 50)
    assert seconds_before(tmp_path) == 150


def test_a_clock_cut_by_a_crash_starts_anew(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b'{"before_s": 1')
    assert seconds_before(tmp_path) == pytest.approx(0)
