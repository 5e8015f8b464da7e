"""`nowcastlab evaluate` as a user runs it. Every network and baseline: tests/end_to_end/test_benchmark.py."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from nowcastlab import engine
from nowcastlab.cli import main_group
from nowcastlab.errors import NowcastlabError, StoreError
from nowcastlab.skill import load_scores
from nowcastlab.training.checkpoints import Checkpoints

SMALL = ["--set", "max_steps=1", "--set", "data.valid_windows=1", "--set", "batch_size=1", "--set", "threads=1"]


@pytest.fixture(scope="module")
def run_folder(tiny_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "convgru"
    command("train", "--model", "convgru", "--store", tiny_store, "--out", folder, *SMALL)
    return folder


def command(*arguments: object) -> Result:
    result = CliRunner().invoke(main_group, [str(a) for a in arguments])
    assert result.exit_code == 0, f"{result.output}\n{result.exception!r}"
    return result


def refused(*arguments: object) -> str:
    result = CliRunner().invoke(main_group, [str(a) for a in arguments])
    assert result.exit_code != 0
    assert result.exception is None or isinstance(result.exception, NowcastlabError | SystemExit)
    return str(result.exception) if isinstance(result.exception, NowcastlabError) else result.output


def test_the_help_teaches(tiny_store: Path) -> None:
    text = command("evaluate", "--help").output
    assert "Score a trained network or a baseline" in text
    assert "nowcastlab evaluate work/run --setting online" in text


def test_scores_say_what_made_them(tiny_store: Path, tmp_path: Path) -> None:
    command("evaluate", "last-frame", "--store", tiny_store, "--out", tmp_path, "--pictures", 0, "--limit", 2)
    facts = json.loads((tmp_path / "scores-offline.json").read_text())
    assert facts["forecaster"] == "last-frame"
    assert facts["windows"] == 2
    assert facts["split"] == "test"


def test_scores_of_another_evaluation_are_not_overwritten_unasked(tiny_store: Path, tmp_path: Path) -> None:
    options = ("--store", tiny_store, "--out", tmp_path, "--pictures", 0)
    command("evaluate", "last-frame", *options)
    before = (tmp_path / "scores-offline.npz").read_bytes()
    said = refused("evaluate", "rover", *options, "--limit", 2)
    assert "not of this evaluation (they differ in forecaster, windows)" in said
    assert (tmp_path / "scores-offline.npz").read_bytes() == before
    command("evaluate", "rover", *options, "--limit", 2, "--again")
    assert len(load_scores(tmp_path / "scores-offline.npz")) == 2


def test_what_was_scored_is_not_scored_again(tiny_store: Path, tmp_path: Path) -> None:
    options = ("--store", tiny_store, "--out", tmp_path, "--pictures", 0)
    first = json.loads(command("evaluate", "last-frame", *options, "--json").stdout)
    changed = (tmp_path / "scores-offline.npz").stat().st_mtime_ns
    again = command("evaluate", "last-frame", *options, "--json")
    assert "Scored before" in again.stderr
    assert json.loads(again.stdout) == first
    assert (tmp_path / "scores-offline.npz").stat().st_mtime_ns == changed


def test_pictures_are_drawn_of_some_sequences(tiny_store: Path, tmp_path: Path) -> None:
    from PIL import Image

    command("evaluate", "last-frame", "--store", tiny_store, "--out", tmp_path, "--pictures", 1)
    assert {path.name for path in tmp_path.glob("*.png")} == {"curves-offline.png", "forecast-offline.png"}
    (animation,) = tmp_path.glob("*.gif")
    with Image.open(animation) as picture:
        assert picture.n_frames == 25


def test_pictures_that_were_not_drawn_with_the_scores_need_them_again(tiny_store: Path, tmp_path: Path) -> None:
    options = ("--store", tiny_store, "--out", tmp_path, "--limit", 2)
    command("evaluate", "last-frame", *options, "--pictures", 0)
    assert "Scored before" in command("evaluate", "last-frame", *options).output  # its 3 were not asked for by name
    assert "--pictures 5 needs --again" in refused("evaluate", "last-frame", *options, "--pictures", 5)
    command("evaluate", "last-frame", *options, "--pictures", 5, "--again")
    assert len(list(tmp_path.glob("*.gif"))) == 2  # there are no more windows
    assert "Scored before" in command("evaluate", "last-frame", *options, "--pictures", 5).output


def test_scores_outlive_a_picture_that_cannot_be_drawn(
    tiny_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nowcastlab.cli import evaluation

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    options = ("--store", tiny_store, "--out", tmp_path, "--limit", 2)
    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "draw", full)
        result = CliRunner().invoke(main_group, ["evaluate", "last-frame", *map(str, options)])
    assert isinstance(result.exception, OSError)
    assert "Scored before" in command("evaluate", "last-frame", *options).output
    assert len(load_scores(tmp_path / "scores-offline.npz")) == 2


def test_workers_are_refused_where_a_gpu_would_do_the_work_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    said = refused("evaluate", "last-frame", "--store", "x", "--workers", 4)
    assert "--workers 4 is for the CPU, and this is cuda: add --device cpu" in said
    for options in (("--workers", 4, "--device", "cpu"), ("--workers", 1)):
        assert "No store at x" in refused("evaluate", "last-frame", "--store", "x", *options)


def test_a_run_knows_its_own_store(run_folder: Path, tmp_path: Path) -> None:
    said = command("evaluate", run_folder, "--out", tmp_path, "--pictures", 0, "--limit", 1).output
    assert "tiny.zarr" in said
    assert f"nowcastlab evaluate {run_folder} --setting online" in said


def test_scores_by_scale_are_printed(tiny_store: Path, tmp_path: Path) -> None:
    said = command(
        "evaluate", "last-frame", "--store", tiny_store, "--out", tmp_path, "--pictures", 0, "--limit", 1, "--by-scale"
    ).output
    assert "FSS 5 km" in said


def test_spread_over_workers_the_file_holds_the_same_bits(run_folder: Path, tmp_path: Path, ray_address: str) -> None:
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    options = ("--pictures", 0, "--batch-size", 1)
    command("evaluate", run_folder, "--out", alone, *options)
    command("evaluate", run_folder, "--out", spread, *options, "--workers", 2)
    one, other = (load_scores(folder / "scores-offline.npz").arrays() for folder in (alone, spread))
    assert {name: array.tobytes() for name, array in one.items()} == {n: a.tobytes() for n, a in other.items()}


def test_no_more_are_at_work_than_were_asked_for(tmp_path: Path, ray_address: str) -> None:
    """On a cluster with more CPUs, as this one of 2 has for 1 worker."""

    def others(item: int) -> list[str]:
        mine = tmp_path / str(item)
        mine.touch()
        time.sleep(0.2)  # for another to come
        seen = [path.name for path in tmp_path.iterdir() if path != mine]
        mine.unlink()
        return seen

    found = dict(engine.map_unordered(others, range(4), label="wait", unit="item", at_once=1))
    assert found == {item: [] for item in range(4)}


def test_a_killed_online_run_goes_on_to_the_same_scores(tiny_store: Path, run_folder: Path, tmp_path: Path) -> None:
    """The train split is the longest here: 16 windows. It saves every 200, so the test saves more often."""
    script = (
        "import sys, nowcastlab.protocol.evaluate as e, nowcastlab.cli.evaluation as c, functools\n"
        "c.evaluate_online = functools.partial(e.evaluate_online, save_every=2)\n"
        "from nowcastlab.cli import main\n"
        "main()\n"
    )
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    options = ["--setting", "online", "--split", "train", "--pictures", "2", "--out"]
    command("evaluate", run_folder, *options, alone)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    arguments = [sys.executable, "-c", script, "evaluate", str(run_folder), *options, str(killed)]
    process = subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    checkpoints = Checkpoints(killed / "online-paper")
    while not checkpoints.steps("online"):
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (killed / "scores-online.npz").exists()

    command("evaluate", run_folder, *options, killed)

    one, other = (load_scores(folder / "scores-online.npz").arrays() for folder in (alone, killed))
    assert {name: array.tobytes() for name, array in one.items()} == {n: a.tobytes() for n, a in other.items()}
    assert not (killed / "online-paper").exists()
    assert len(list(killed.glob("*.gif"))) == 2


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nothing-here"], "No run folder nothing-here, and no baseline of that name"),
        (["last-frame"], "last-frame needs data: give a store with --store"),
        (["last-frame", "--store", "nowhere.zarr"], "No store at nowhere.zarr"),
        (["rover", "--store", "x", "--setting", "online"], "the benchmark scores it offline"),
        (["rover", "--store", "x", "--online-rate", "1e-5"], "--online-rate is for --setting online: offline, it"),
        (["rover", "--store", "x", "--preset", "release"], "--preset is for --setting online"),
        (["run", "--setting", "online", "--workers", "2"], "--workers is for --setting offline"),
        (["run", "--setting", "online", "--batch-size", "2"], "--batch-size is for --setting offline"),
        (["run", "--setting", "online", "--online-rate", "nan"], "nan is not a finite number"),
        (["last-frame"], "python -m data_pipeline synth work/demo.zarr --days 12 --size 120"),
        (["last-frame", "--store", "x", "--device", "cuda:7"], "CUDA devices"),
        (["last-frame", "--store", "x", "--device", "gpu"], "device (='gpu') must be auto, cpu, cuda"),
        (["last-frame", "--store", "x", "--device", "mps"], "device (='mps') must be auto, cpu, cuda"),
    ],
)
def test_a_mistake_is_answered_with_the_next_step(arguments: list[str], text: str) -> None:
    assert text in refused("evaluate", *arguments)


def test_a_split_without_windows_is_named_before_anything_is_done(broken: Path, tmp_path: Path) -> None:
    said = refused("evaluate", "last-frame", "--store", broken, "--split", "valid", "--out", tmp_path / "out")
    assert "no window of 25 frames in its valid split" in said
    assert not (tmp_path / "out").exists()


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    import datetime as dt

    from nowcastlab.store import StoreWriter

    path = tmp_path / "empty.zarr"
    with StoreWriter.create(
        path, dates=[dt.date(2015, 1, 1)], grid=(8, 8), interval_minutes=6, km_per_pixel=1, title="empty"
    ):
        pass
    return path


def test_a_damaged_scores_file_is_not_taken_for_scores(tiny_store: Path, tmp_path: Path) -> None:
    options = ("--store", tiny_store, "--out", tmp_path, "--pictures", 0, "--limit", 1)
    command("evaluate", "last-frame", *options)
    (tmp_path / "scores-offline.npz").write_bytes(b"no scores")
    result = CliRunner().invoke(main_group, ["evaluate", "last-frame", *map(str, options)])
    assert isinstance(result.exception, StoreError)
    command("evaluate", "last-frame", *options, "--again")


def test_a_run_on_moving_digits_gets_the_paper_s_test(tmp_path: Path) -> None:
    small = ["--set", "max_steps=1", "--set", "batch_size=1", "--set", "data.valid_sequences=1"]
    command("train", "--model", "conv-k3-d1", "--out", tmp_path, *small)
    out = json.loads(command("evaluate", tmp_path, "--limit", 3, "--json").stdout)
    with np.load(tmp_path / "scores-digits.npz") as file:
        assert file["mse"].shape == (3, 10)
        assert out["mse"] == pytest.approx(file["mse"].mean())
    for option in (
        ("--setting", "online"),
        ("--store", "rain.zarr"),
        ("--split", "valid"),
        ("--by-scale",),
        ("--workers", 2),
        ("--pictures", 1),
    ):
        said = refused("evaluate", tmp_path, "--limit", 3, *option)
        assert f"forecasts moving digits, and {option[0]} is for radar" in said
    assert "Scored before" in command("evaluate", tmp_path, "--limit", 3).output
    assert "is there and not of this evaluation" in refused("evaluate", tmp_path, "--limit", 2)
    assert json.loads(command("evaluate", tmp_path, "--limit", 2, "--json", "--again").stdout)["sequences"] == 2


def test_scores_of_digits_that_were_cut_short_are_not_taken_for_those_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the facts of an evaluation and its scores, the scores from before are gone, not passed off."""
    from nowcastlab.cli import evaluate_digits

    small = ["--set", "max_steps=1", "--set", "batch_size=1", "--set", "data.valid_sequences=1"]
    command("train", "--model", "conv-k3-d1", "--out", tmp_path, *small)
    command("evaluate", tmp_path, "--limit", 3)

    def killed(path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(evaluate_digits, "whole_file", killed)
        CliRunner().invoke(main_group, ["evaluate", str(tmp_path), "--limit", "2", "--again"])
    out = json.loads(command("evaluate", tmp_path, "--limit", 2, "--json").stdout)
    assert out["sequences"] == 2
    with np.load(tmp_path / "scores-digits.npz") as file:
        assert len(file["mse"]) == 2
