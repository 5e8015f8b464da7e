"""A sweep on a real Ray and a real MLflow database; and that what is said of all sweeps can be broken."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from faults import folder_of, small_sweep, uri_of, violations
from mlflow import MlflowClient

from nowcastlab.sweep import run_sweep
from nowcastlab.training.checkpoints import Checkpoints

KEY = "traj-l2-s2"


@pytest.fixture
def copy(undisturbed: Path, tmp_path: Path) -> Path:
    shutil.copytree(undisturbed, tmp_path / "copy")
    return tmp_path / "copy"


def test_an_undisturbed_sweep_is_whole(undisturbed: Path) -> None:
    assert not violations(undisturbed, undisturbed)


def test_run_again_it_does_nothing(copy: Path, undisturbed: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("result.json")}
    run_sweep(small_sweep(), root=copy, tracking_uri=uri_of(copy))
    assert before == {path: path.stat().st_mtime_ns for path in copy.rglob("result.json")}
    assert not list((copy / "small-demo" / "tune").glob("run-2"))
    assert not violations(copy, undisturbed)


def test_seeds_added_are_run_alone_and_said_and_on_record(copy: Path, tmp_path: Path) -> None:
    uri = uri_of(tmp_path)  # of its own: a copied database has its artifacts where the first one has them
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("result.json")}
    said: list[str] = []
    result = run_sweep(small_sweep(seeds=(1, 2, 3)), root=copy, tracking_uri=uri, say=said.append)
    assert len(result.finished) == 6
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert said[0] == "1 seed added to a sweep that had begun: 3 after 1,2."
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("small")
    runs = client.search_runs([experiment.experiment_id])
    (parent,) = [run for run in runs if run.data.tags["nowcastlab.kind"] == "sweep"]
    assert parent.data.tags["nowcastlab.seeds_added"] == "3 after 1,2"
    assert [run.info.status for run in runs] == ["FINISHED"] * 7


def run_of(client: MlflowClient, key: str) -> str:
    experiment = client.get_experiment_by_name("small")
    (run,) = client.search_runs([experiment.experiment_id], f"tags.`nowcastlab.key` = 'small/demo/{key}'")
    return run.info.run_id


def a_trial_without_an_end(root: Path) -> None:
    (folder_of(root, KEY) / "result.json").unlink()


def a_run_twice(root: Path) -> None:
    client = MlflowClient(uri_of(root))
    experiment = client.get_experiment_by_name("small")
    client.create_run(experiment.experiment_id, tags={"nowcastlab.key": f"small/demo/{KEY}"})


def a_run_left_running(root: Path) -> None:
    client = MlflowClient(uri_of(root))
    client.update_run(run_of(client, KEY), status="RUNNING")


def a_step_twice(root: Path) -> None:
    client = MlflowClient(uri_of(root))
    client.log_metric(run_of(client, KEY), "train/loss", 1.0, step=5)


def two_intervals_repeated(root: Path) -> None:
    path = folder_of(root, KEY) / "attempts.jsonl"
    path.write_text(path.read_text() + json.dumps({"steps_before": 8, "first_step": 6}) + "\n")


def a_weight_one_bit_off(root: Path) -> None:
    checkpoints = Checkpoints(folder_of(root, KEY))
    last = checkpoints.load("step", 12)
    name, weight = next(iter(last.state["model"].items()))
    last.state["model"][name] = torch.nextafter(weight, weight + 1)
    checkpoints.save("step", 12, last.state, last.facts)


def a_score_off(root: Path) -> None:
    path = folder_of(root, KEY) / "result.json"
    result = json.loads(path.read_text())
    result["scores"]["digits"]["mse"] += 1e-15
    path.write_text(json.dumps(result))


def a_table_off(root: Path) -> None:
    client = MlflowClient(uri_of(root))
    client.log_metric(run_of(client, KEY), "test/mse", 0.5, step=1)


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (a_trial_without_an_end, f"{KEY} should have finished"),
        (a_run_twice, f"{KEY} has 2 runs"),
        (a_run_left_running, f"{KEY} is RUNNING"),
        (a_step_twice, "has a step of train/loss twice"),
        (two_intervals_repeated, "went on at step 6 though 8 were done"),
        (a_weight_one_bit_off, f"of {KEY} differs"),
        (a_score_off, f"the scores of {KEY} differ"),
        (a_table_off, "the tables differ"),
    ],
)
def test_what_must_hold_can_be_seen_not_to(
    damage: Callable[[Path], None], text: str, copy: Path, undisturbed: Path
) -> None:
    damage(copy)
    assert text in "\n".join(violations(copy, undisturbed))
