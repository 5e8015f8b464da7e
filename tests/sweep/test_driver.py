"""Sweeps on a real Ray and a real MLflow database, disturbed for real."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from mlflow import MlflowClient

from nowcastlab.config import mnist_config
from nowcastlab.errors import ConfigError
from nowcastlab.sweep import DIGITS, Arm, Sweep, run_sweep
from nowcastlab.tracking import connect
from nowcastlab.training import load_trained

STEPS = 12

# The same sweep, as a script of its own, for the tests that kill it.
SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_driver import small_sweep
from nowcastlab.sweep import run_sweep
result = run_sweep(small_sweep(), root=Path({root!r}), tracking_uri={uri!r})
sys.exit(0 if not result.failed and not result.unfinished else 4)
"""


def small_sweep(**changes: Any) -> Sweep:
    def arm(model: str, **settings: Any) -> Arm:
        config = mnist_config(
            model,
            digits="sklearn-digits",
            threads=1,
            max_steps=STEPS,
            validate_every=6,
            report_every=1,
            checkpoint_every=2,
            **{"data.size": 16, "data.valid_sequences": 4, "data.count": 1},
            **settings,
        )
        return Arm(name=model, config=config, settings=(DIGITS,))

    values: dict[str, Any] = {
        "name": "small",
        "question": "Is it robust?",
        "scale": "demo",
        "arms": [arm("conv-k3-d1"), arm("traj-l2")],
        "seeds": (1, 2),
        "test_sequences": 8,
    }
    return Sweep(**{**values, **changes})


def weights(root: Path) -> dict[str, torch.Tensor]:
    """Every weight of every trial."""
    return {
        f"{trial.key}/{name}": tensor
        for trial in small_sweep().trials
        for name, tensor in load_trained(root / "small-demo" / "trials" / trial.key, "last").model.state_dict().items()
    }


def scores(root: Path) -> dict[str, Any]:
    paths = sorted(root.glob("small-demo/trials/*/result.json"))
    return {path.parent.name: json.loads(path.read_text())["scores"] for path in paths}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, ray_address: str) -> Path:
    root = tmp_path_factory.mktemp("undisturbed")
    result = run_sweep(small_sweep(), root=root, tracking_uri=f"sqlite:///{root}/mlflow.db", say=lambda line: None)
    assert [trial.key for trial in result.finished] == ["conv-k3-d1-s1", "traj-l2-s1", "conv-k3-d1-s2", "traj-l2-s2"]
    return root


def assert_whole(root: Path, undisturbed: Path) -> None:
    """One finished run a trial, every step once, and weights and scores as if nothing had happened."""
    client = MlflowClient(f"sqlite:///{root}/mlflow.db")
    (experiment,) = [e for e in client.search_experiments() if e.name == "small"]
    runs = client.search_runs([experiment.experiment_id])
    names = Counter(run.info.run_name for run in runs)
    assert names == dict.fromkeys(["small (demo)", *scores(undisturbed)], 1)
    assert {run.info.status for run in runs} == {"FINISHED"}
    for run in runs:
        if run.data.tags["nowcastlab.kind"] == "trial":
            steps = [metric.step for metric in client.get_metric_history(run.info.run_id, "train/loss")]
            assert steps == list(range(1, STEPS + 1))
            assert "test/mse" in run.data.metrics
    assert scores(root) == scores(undisturbed)
    expected = weights(undisturbed)
    for name, tensor in weights(root).items():
        assert torch.equal(tensor, expected[name]), name


def start(root: Path, ray_address: str) -> subprocess.Popen[str]:
    script = SCRIPT.format(tests=str(Path(__file__).parent), root=str(root), uri=f"sqlite:///{root}/mlflow.db")
    environment = {**os.environ, "RAY_ADDRESS": ray_address}
    return subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def steps_done(root: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in root.glob("small-demo/trials/*/history.jsonl"))


def wait_for(process: subprocess.Popen[str], root: Path, steps: int) -> None:
    deadline = time.monotonic() + 120
    while process.poll() is None and steps_done(root) < steps and time.monotonic() < deadline:
        time.sleep(0.02)


def test_an_undisturbed_sweep_is_whole(undisturbed: Path) -> None:
    assert_whole(undisturbed, undisturbed)


def test_run_again_it_does_nothing_and_says_so(undisturbed: Path, tmp_path: Path) -> None:
    shutil.copytree(undisturbed, tmp_path / "copy", dirs_exist_ok=True)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "copy").rglob("result.json")}
    run_sweep(small_sweep(), root=tmp_path / "copy", tracking_uri=f"sqlite:///{tmp_path}/copy/mlflow.db")
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "copy").rglob("result.json")}
    assert not list((tmp_path / "copy" / "small-demo" / "tune").glob("run-2"))


def test_a_killed_driver_is_taken_up_by_the_same_command(tmp_path: Path, undisturbed: Path, ray_address: str) -> None:
    for steps in (5, 20, 33):  # of 48
        process = start(tmp_path, ray_address)
        wait_for(process, tmp_path, steps)
        assert process.poll() is None, process.communicate()[1][-2000:]
        process.kill()
        process.communicate()
    process = start(tmp_path, ray_address)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors[-2000:]
    assert_whole(tmp_path, undisturbed)


def test_ctrl_c_leaves_a_sweep_that_goes_on(tmp_path: Path, undisturbed: Path, ray_address: str) -> None:
    process = start(tmp_path, ray_address)
    wait_for(process, tmp_path, 8)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 4, errors[-2000:]
    client = connect(f"sqlite:///{tmp_path}/mlflow.db")
    (experiment,) = [e for e in client.search_experiments() if e.name == "small"]
    assert "RUNNING" not in {run.info.status for run in client.search_runs([experiment.experiment_id])}
    process = start(tmp_path, ray_address)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors[-2000:]
    assert_whole(tmp_path, undisturbed)


def test_a_sweep_edited_after_it_started_is_refused(tmp_path: Path, undisturbed: Path) -> None:
    shutil.copytree(undisturbed, tmp_path / "copy", dirs_exist_ok=True)
    with pytest.raises(ConfigError, match=r"changed after it was begun .*test_sequences was 8, now 9"):
        run_sweep(small_sweep(test_sequences=9), root=tmp_path / "copy", tracking_uri=f"sqlite:///{tmp_path}/m.db")
    with pytest.raises(ConfigError, match="trial conv-k3-d1-s3 is new"):
        run_sweep(small_sweep(seeds=(1, 2, 3)), root=tmp_path / "copy", tracking_uri=f"sqlite:///{tmp_path}/m.db")
