"""What stands in for a trial leaves a trial's folder, and the bench's rows are the samples they say they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nowcastlab.bench.scale import BINS, WRITTEN, Replay, _bins, _sweep, command
from nowcastlab.sweep import SweepFolder
from nowcastlab.training import read_history


def test_a_replayed_trial_counts_as_finished_and_has_every_report(tmp_path: Path) -> None:
    sweep = _sweep(10, 4)
    folder = SweepFolder(tmp_path, sweep)
    trial = sweep.trials[3]
    said: list[dict[str, Any]] = []
    replay = Replay([{"train/loss": 0.5, "seconds": 0.0}, {"train/loss": 0.4, "seconds": 0.0}], reports=4, speed_up=1)
    replay(trial, folder.trial(trial), said.append)
    history = read_history(folder.trial(trial))
    assert [(entry["step"], entry["train/loss"]) for entry in history] == [(1, 0.5), (2, 0.4), (3, 0.5), (4, 0.4)]
    assert all(WRITTEN in entry for entry in history)
    assert said == history
    assert len(folder.missing()) == len(sweep.trials) - 1


def test_trials_that_do_not_go_into_the_arms_are_refused() -> None:
    result = CliRunner().invoke(command, ["--trials", "15"])
    assert result.exit_code == 2
    assert "--trials 15: the sweep has 10 arms, so give a multiple of 10" in result.output


def test_rows_hold_the_memory_and_delay_of_their_own_time() -> None:
    ended = [float(second) for second in range(1, 17)]  # a trial a second
    samples = [(second - 0.5, 100.0 + second) for second in range(1, 17)]
    delays = [(second - 0.5, second / 10) for second in range(1, 17)]
    rows = _bins(0.0, 16.0, ended, samples, delays)
    assert len(rows) == BINS
    assert rows[0]["trials"] == 2
    assert rows[-1]["trials"] == 16
    assert rows[0]["driver_mb"] == 102.0
    assert rows[-1]["driver_mb"] == 116.0
    assert rows[-1]["delay_s"] == pytest.approx(1.55)  # between 1.5 and 1.6
    assert rows[3]["trials_per_s"] == pytest.approx(1.0)
