"""The command line that a sweep file gets from `sweep_command`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from nowcastlab.cli.sweep import Build, exit_code, parse_seeds, sweep_command
from nowcastlab.config import mnist_config
from nowcastlab.sweep import DIGITS, Arm, Sweep, SweepFolder, SweepResult


def never_built(scale: str, seeds: tuple[int, ...]) -> Sweep:
    raise AssertionError("an option that cannot work is refused before the sweep is built")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--cpus-per-trial", "0"], "0.0 is not in the range x>0"),
        (["--gpus-per-trial", "nan"], "nan is not a finite number"),
        (["--gpus-per-trial", "-1"], "-1.0 is not in the range x>=0"),
        (["--seeds", "1,two"], "--seeds takes whole numbers with commas between, not '1,two'"),
        (["--scale", "huge"], "'huge' is not one of"),
    ],
)
def test_what_cannot_work_is_said(
    arguments: list[str], text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["sweep.py", *arguments])
    with pytest.raises(SystemExit) as ended:
        sweep_command(never_built, "Which?")
    assert ended.value.code == 2
    assert text in capsys.readouterr().err


def never_built_with_store(scale: str, seeds: tuple[int, ...], store: str) -> Sweep:
    raise AssertionError(f"built with {store}")


def may_take_store(scale: str, seeds: tuple[int, ...], store: str = "the default") -> Sweep:
    raise AssertionError(f"built with {store}")


def test_a_store_that_the_sweep_cannot_do_without_must_be_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["sweep.py"])
    with pytest.raises(SystemExit) as ended:
        sweep_command(never_built_with_store, "Which?")
    assert ended.value.code == 2
    assert "Missing option '--store'" in capsys.readouterr().err
    with pytest.raises(AssertionError, match="built with the default"):
        sweep_command(may_take_store, "Which?")


@pytest.mark.parametrize("build", [never_built_with_store, may_take_store])
def test_the_store_that_is_named_is_the_one_it_is_built_with(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["sweep.py", "--store", "mine.zarr"])
    with pytest.raises(AssertionError, match=r"built with mine\.zarr"):
        sweep_command(build, "Which?")


def test_seeds_keep_their_order() -> None:
    assert parse_seeds("3,1, 2") == (3, 1, 2)


def tiny(scale: str, seeds: tuple[int, ...]) -> Sweep:
    config = mnist_config("traj-l2", digits="sklearn-digits", max_steps=1, **{"data.size": 16, "data.count": 1})
    arm = Arm(name="A", config=config, settings=(DIGITS,))
    return Sweep(name="tiny", question="Which?", scale=scale, arms=[arm], seeds=seeds, test_sequences=1)


@pytest.mark.parametrize(
    ("below", "text"),
    [
        ("", "Directory '.*file' is a file"),
        ("sub", "sweep's folder .*file/sub/tiny-demo cannot be used: Not a directory"),
    ],
)
def test_a_folder_that_is_a_file_is_named(
    below: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(sys, "argv", ["sweep.py", "--folder", str(tmp_path / "file" / below), "--plan"])
    with pytest.raises(SystemExit) as ended:
        sweep_command(tiny, "Which?")
    assert ended.value.code == 2
    assert re.search(text, capsys.readouterr().err)


def test_ctrl_c_ends_with_130_whether_or_not_trials_had_failed(tmp_path: Path) -> None:
    sweep = tiny("demo", (1, 2, 3))

    def ended(finished: int, failed: int) -> int:
        done, bad = sweep.trials[:finished], sweep.trials[finished : finished + failed]
        why = {trial.key: "no luck" for trial in bad}
        left = sweep.trials[finished + failed :]
        return exit_code(
            SweepResult(folder=SweepFolder(tmp_path, sweep), finished=done, failed=why, unfinished=left, link="")
        )

    assert (ended(3, 0), ended(2, 1), ended(2, 0), ended(1, 1)) == (0, 4, 130, 130)


@pytest.mark.parametrize(
    ("options", "address", "whole"),
    [
        ([], None, r"about \d+ s here, \d+ at a time, if nothing else runs"),
        (
            ["--gpus-per-trial", "0.5"],
            None,
            "on one core of this machine; `nowcastlab plan` estimates GPUs and clusters",
        ),
        ([], "auto", "on one core of this machine; `nowcastlab plan` estimates GPUs and clusters"),
    ],
)
def test_a_plan_says_how_long_only_for_the_cores_it_was_timed_on(
    options: list[str],
    address: str | None,
    whole: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if address:
        monkeypatch.setenv("RAY_ADDRESS", address)
    monkeypatch.setattr(sys, "argv", ["sweep.py", "--folder", str(tmp_path), "--plan", *options])
    sweep_command(tiny, "Which?")
    assert re.fullmatch(f"  {whole}", capsys.readouterr().out.splitlines()[-1])
