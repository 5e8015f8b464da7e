"""Who took a trial up, and that it is one at a time."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from nowcastlab.sweep import attempts
from nowcastlab.sweep.attempts import attempt, read_attempts


def take_up(folder: Path, step: int) -> None:
    with attempt(folder, lambda metrics: None) as report:
        report({"step": step})
        report({"step": step + 1})


def test_an_attempt_says_where_it_went_on(tmp_path: Path) -> None:
    take_up(tmp_path, 1)
    (tmp_path / "history.jsonl").write_text('{"step": 1}\n{"step": 2}\n{"step": 3}\n')
    take_up(tmp_path, 3)
    assert [(line["steps_before"], line["first_step"]) for line in read_attempts(tmp_path)] == [(0, 1), (3, 3)]


def test_a_line_cut_by_a_crash_costs_no_other(tmp_path: Path) -> None:
    take_up(tmp_path, 1)
    path = tmp_path / "attempts.jsonl"
    path.write_bytes(path.read_bytes() + b'{"began": 17')
    take_up(tmp_path, 5)
    assert [line["first_step"] for line in read_attempts(tmp_path)] == [1, 5]


def test_a_worker_that_does_not_let_go_is_not_the_trials_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An OSError, so the trial is not failed but tried again."""
    monkeypatch.setattr(attempts, "WAIT_S", 0.3)
    with open(tmp_path / attempts.LOCK, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="Another worker is still at this trial"):
            take_up(tmp_path, 1)
