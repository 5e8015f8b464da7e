"""The command line that a sweep file gets from `sweep_command`."""

from __future__ import annotations

import sys

import pytest

from nowcastlab.cli.sweep import Build, parse_seeds, sweep_command
from nowcastlab.sweep import Sweep


def never_built(scale: str, seeds: tuple[int, ...]) -> Sweep:
    raise AssertionError("an option that cannot work is refused before the sweep is built")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--cpus-per-trial", "0"], "0.0 is not in the range x>0"),
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
