"""The command a person types: says what it will do, goes on where it was, and answers mistakes with a next step."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nowcastlab.cli.train import command
from nowcastlab.config import TrainConfig
from nowcastlab.errors import ConfigError, NowcastlabError, StoreError
from nowcastlab.training import load_trained, read_history

SMALL = ["overrides.base_filters=1", "data.in_frames=2", "data.leads=2", "data.valid_windows=4", "threads=1"]


def options(store: Path, out: Path, *sets: str) -> list[str]:
    given = ["--model", "conv2d", "--store", str(store), "--out", str(out)]
    return given + [part for change in (*SMALL, *sets) for part in ("--set", change)]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, catch_exceptions=True)


def test_a_run_says_what_it_will_do_does_it_and_says_where_it_is(tiny_store: Path, tmp_path: Path) -> None:
    result = run(*options(tiny_store, tmp_path / "run", "max_steps=4"))
    assert result.exit_code == 0, result.output
    assert f"Train conv2d (29,037 parameters) on {tiny_store}" in result.output
    assert "changed   max_steps is 4, not" in result.output
    assert "Trained for 4 updates; the best validation" in result.output
    assert f"nowcastlab evaluate {tmp_path / 'run'}" in result.output
    assert load_trained(tmp_path / "run").step == 4
    assert [line["step"] for line in read_history(tmp_path / "run")] == [4]


def test_run_again_it_says_that_it_is_finished(tiny_store: Path, tmp_path: Path) -> None:
    arguments = options(tiny_store, tmp_path, "max_steps=2")
    run(*arguments)
    again = run(*arguments)
    assert again.exit_code == 0
    assert "Finished already, at step 2." in again.output


def test_a_plan_does_nothing(tiny_store: Path, tmp_path: Path) -> None:
    result = run(*options(tiny_store, tmp_path / "run", "max_steps=1500"), "--plan")
    assert result.exit_code == 0
    assert "at most 1,500 updates" in result.output
    assert not (tmp_path / "run").exists()


def test_a_script_gets_the_plan_too(tiny_store: Path, tmp_path: Path) -> None:
    result = run(*options(tiny_store, tmp_path / "run", "max_steps=4"), "--plan", "--json")
    plan = json.loads(result.stdout)
    assert plan["parameters"] == 29_037
    assert plan["folder"] == str(tmp_path / "run")
    assert TrainConfig.from_plain(plan["config"]).max_steps == 4


def test_a_script_gets_one_json_object(tiny_store: Path, tmp_path: Path) -> None:
    result = run(*options(tiny_store, tmp_path, "max_steps=2"), "--json")
    assert json.loads(result.stdout)["best_step"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "trajgru"], "trajgru is a radar network: give it a store with --store"),
        (["--model", "trajgru"], "python -m data_pipeline synth work/demo.zarr --days 12 --size 120"),
        (["--model", "traj-l5", "--set", "max_steps"], "--set max_steps: write KEY=VALUE"),
        (["--model", "traj-l5", "--set", "scale=paper"], "--set scale=paper: use --scale paper"),
        (["--model", "traj-l5", "--set", "data.store=x"], "use --store x"),
        (["--model", "traj-l5", "--loss", "plain"], "--loss plain is for radar"),
        (["--model", "trajgru", "--store", "x", "--digits", "mnist"], "give one of them"),
    ],
)
def test_a_slip_of_the_command_line_is_answered(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (["--set", "learning_rate=-1"], ConfigError, "learning_rate (=-1) must be a number above 0"),
        (["--set", "lerning_rate=1"], ConfigError, "Did you mean 'learning_rate'?"),
        (["--set", "batch_size=four"], ConfigError, "batch_size (='four') must be a whole number"),
        (["--store", "nowhere.zarr"], StoreError, "No store at nowhere.zarr"),
        (["--seed", "99999999999999999999999"], ConfigError, "seed (=99999999999999999999999) must be a whole number"),
        (["--model", "rover"], ConfigError, "rover has nothing to train. The networks are: convgru"),
        (["--model", "last-frame", "--scale", "laptop"], ConfigError, "last-frame has nothing to train"),
        (["--model", "convgro"], ConfigError, "No model 'convgro' for hko7. The models are: convgru"),
    ],
)
def test_a_setting_that_cannot_work_is_an_error_with_a_message(
    changes: list[str], error: type[NowcastlabError], message: str, tiny_store: Path, tmp_path: Path
) -> None:
    result = run(*options(tiny_store, tmp_path), *changes)
    assert isinstance(result.exception, error)
    assert message in str(result.exception)


def test_another_run_in_the_folder_is_refused(tiny_store: Path, tmp_path: Path) -> None:
    run(*options(tiny_store, tmp_path, "max_steps=2"))
    result = run(*options(tiny_store, tmp_path, "max_steps=2"), "--seed", "4")
    assert "seed was 0, now 4" in str(result.exception)
    assert "Finished" not in result.output


def test_ctrl_c_leaves_a_run_that_the_same_command_finishes(tiny_store: Path, tmp_path: Path) -> None:
    arguments = options(tiny_store, tmp_path, "max_steps=2000", "report_every=1", "checkpoint_every=2000")
    whole = [sys.executable, "-c", "from nowcastlab.cli import main; main()", "train", *arguments]
    process = subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    while process.poll() is None and not read_history(tmp_path):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Stopping after this step" in err
    assert "all of it saved. The same command goes on from there." in out
    assert "Traceback" not in err

    stopped_at = read_history(tmp_path)[-1]["step"]
    assert f"Going on from step {stopped_at:,} of 2,000." in run_until(arguments, stopped_at).output


def run_until(arguments: list[str], step: int) -> Result:
    """The same command in this process, stopped by a signal as soon as it has gone further."""
    import threading

    folder = Path(arguments[arguments.index("--out") + 1])

    def stop() -> None:
        while read_history(folder)[-1]["step"] <= step:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    watcher = threading.Thread(target=stop)
    watcher.start()
    result = run(*arguments)
    watcher.join()
    assert result.exit_code == 130
    return result


def environment() -> dict[str, Any]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}
