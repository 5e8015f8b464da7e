"""Ctrl-C ends a sweep, though Ray Tune takes it for itself; and what counts as getting further before that."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from faults import small_sweep
from ray.tune.tune import _setup_signal_catching

from nowcastlab.sweep import SweepFolder, Trial, driver
from nowcastlab.sweep.clerk import Clerk
from nowcastlab.sweep.interruption import ended_by_ctrl_c
from nowcastlab.training.checkpoints import Checkpoints


def interrupted_fit() -> None:
    """What Tune does of its own: it takes the signal, and returns."""
    told = _setup_signal_catching()
    os.kill(os.getpid(), signal.SIGINT)
    assert told.wait(10)


def test_a_ctrl_c_that_tune_took_is_known() -> None:
    before = signal.getsignal(signal.SIGINT)
    assert ended_by_ctrl_c(interrupted_fit)
    assert signal.getsignal(signal.SIGINT) == before


def test_after_tune_has_ended_by_itself_ctrl_c_is_ours_again() -> None:
    assert not ended_by_ctrl_c(_setup_signal_catching)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


class NoClerk(Clerk):
    def __init__(self) -> None:
        pass


@pytest.mark.parametrize(("interrupted", "rounds"), [(True, 1), (False, 2)])
def test_a_trial_that_got_further_is_taken_up_again_but_not_after_ctrl_c(
    interrupted: bool, rounds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits: list[list[str]] = []

    def fit(folder: SweepFolder, todo: dict[str, Trial], watch: Any, *rest: Any) -> bool:
        fits.append(list(todo))
        if len(fits) == 1:
            trial = folder.trial(todo["traj-l2-s1"])
            trial.mkdir(parents=True)
            (trial / "history.jsonl").write_text('{"step": 7}\n')
            watch.given_up["traj-l2-s1"] = "its machines went away"
        return interrupted

    monkeypatch.setattr(driver, "_fit", fit)
    monkeypatch.setattr(driver.engine, "connect", lambda cpus: None)
    monkeypatch.setattr(driver, "check_cluster", lambda *asked: None)
    failed: dict[str, str] = {}
    folder = SweepFolder(tmp_path, small_sweep(seeds=(1,)))
    driver._run_trials(folder, NoClerk(), failed, 1, 0, None, driver.run_trial, print)
    assert fits[1:] == [["traj-l2-s1"]] * (rounds - 1)
    assert not failed


def test_windows_that_an_online_run_has_saved_are_progress(tmp_path: Path) -> None:
    before = driver._progress(tmp_path)
    Checkpoints(tmp_path / "online").save("online", 200, {}, {})
    saved = driver._progress(tmp_path)
    Checkpoints(tmp_path / "online").save("online", 400, {}, {})
    assert before < saved < driver._progress(tmp_path)
