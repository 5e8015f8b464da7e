"""What MLflow holds of a trial, in a real database."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run
from PIL import Image

from nowcastlab import __version__
from nowcastlab.config import mnist_config, radar_config
from nowcastlab.report.collect import Cell
from nowcastlab.report.source import ScoreFile, from_files, from_mlflow
from nowcastlab.report.table import Row
from nowcastlab.report.tables import hko7_table, mnist_table
from nowcastlab.skill import load_scores, summarize
from nowcastlab.store import open_store
from nowcastlab.sweep import DIGITS, OFFLINE, Arm, Radar, Sweep, Trial, run_trial
from nowcastlab.sweep.record import draw_pictures, record_of
from nowcastlab.tracking import Mirror, connect, read_examples, read_scores, read_trials

STEPS = {"max_steps": 2, "validate_every": 1, "report_every": 1, "threads": 1}


def trials(store: Path) -> list[Trial]:
    """A TrajGRU on digits, a baseline and a network on radar."""
    digits = mnist_config(
        "traj-l2", digits="sklearn-digits", **STEPS, **{"data.size": 16, "data.count": 1, "data.valid_sequences": 2}
    )
    network = radar_config("convgru", store=str(store), **STEPS, **{"data.valid_windows": 2})
    radar = Radar(store=str(store), digest=open_store(str(store)).digest)
    one = Sweep(
        name="on-digits",
        question="?",
        scale="demo",
        arms=[Arm(name="Traj-L2", config=digits, settings=(DIGITS,))],
        seeds=(1,),
        test_sequences=4,
    )
    two = Sweep(
        name="on-radar",
        question="?",
        scale="demo",
        arms=[
            Arm(name="Last-Frame", baseline="last-frame"),
            Arm(name="ConvGRU", config=network, settings=(OFFLINE,)),
        ],
        seeds=(1,),
        radar=radar,
    )
    return [*one.trials, *two.trials]


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory, tiny_store: Path) -> tuple[MlflowClient, dict[str, Run], Path]:
    """A client, the run of each trial by its name, and the folder above the trials'."""
    root = tmp_path_factory.mktemp("tracked")
    client = connect(f"sqlite:///{root}/mlflow.db")
    for trial in trials(tiny_store):
        folder = root / trial.key
        assert run_trial(trial, folder)["status"] == "finished"
        record = record_of(trial, folder, code_version="of a driver", unfinished="RUNNING")
        Mirror(client, trial.sweep).sync(record)
    experiments = [e.experiment_id for e in client.search_experiments()]
    return client, {run.info.run_name: run for run in client.search_runs(experiments)}, root


def curve(client: MlflowClient, run: Run, name: str) -> dict[int, float]:
    return {metric.step: metric.value for metric in client.get_metric_history(run.info.run_id, name)}


Tracked = tuple[MlflowClient, dict[str, Run], Path]


def test_runs_are_called_by_arm_and_seed(tracked: Tracked) -> None:
    assert sorted(tracked[1]) == ["ConvGRU s1", "Last-Frame s0", "Traj-L2 s1"]


def test_tags_and_params_are_what_people_group_by(tracked: Tracked) -> None:
    run = tracked[1]["Traj-L2 s1"]
    expected = {"arm": "Traj-L2", "seed": "1", "scale": "demo", "model": "traj-l2", "settings": "digits"}
    assert expected.items() <= run.data.tags.items()
    assert run.data.tags["outcome"] == "finished"
    assert run.data.tags["device"].startswith("c")
    params = {"arm": "Traj-L2", "batch_size": "4", "data.size": "16", "model.filters": "8, 12, 12"}
    assert params.items() <= run.data.params.items()
    assert int(run.data.params["parameters"]) > 1000


def test_its_code_is_that_of_the_worker_which_trained_it_whoever_copies_it(
    tracked: Tracked, tiny_store: Path, tmp_path: Path
) -> None:
    run = tracked[1]["Traj-L2 s1"]
    assert run.data.tags["nowcastlab.code"] == __version__  # as the tests have it: no repository
    trial = trials(tiny_store)[0]
    shutil.copytree(tracked[2] / trial.key, tmp_path / trial.key)
    path = tmp_path / trial.key / "result.json"
    result = json.loads(path.read_text())
    result["environment"]["code"] = "a" * 40 + "+changed"
    path.write_text(json.dumps(result))
    tags = record_of(trial, tmp_path / trial.key, code_version="b" * 40, unfinished="RUNNING").tags
    assert (tags["nowcastlab.code"], tags["mlflow.source.git.commit"]) == ("a" * 40 + "+changed", "a" * 40)
    path.unlink()  # under way: it has not said
    tags = record_of(trial, tmp_path / trial.key, code_version="b" * 40, unfinished="RUNNING").tags
    assert tags["nowcastlab.code"] == "b" * 40


def test_learning_is_a_curve_by_update(tracked: Tracked) -> None:
    client, runs, _ = tracked
    assert sorted(curve(client, runs["Traj-L2 s1"], "train/loss")) == [1, 2]


def test_scores_of_digits_come_as_one_value_and_by_lead(tracked: Tracked) -> None:
    client, runs, _ = tracked
    by_lead = curve(client, runs["Traj-L2 s1"], "test/by_lead/mse")
    assert sorted(by_lead) == list(range(1, 11))
    # ten leads of equal weight
    assert runs["Traj-L2 s1"].data.metrics["test/mse"] == pytest.approx(sum(by_lead.values()) / 10)


def test_scores_of_radar_come_as_one_value_and_by_lead_in_minutes(tracked: Tracked) -> None:
    client, runs, _ = tracked
    run = runs["ConvGRU s1"]
    for name in ("bmse", "csi/r0.5"):
        by_lead = curve(client, run, f"offline/by_lead/{name}")
        assert sorted(by_lead) == list(range(6, 126, 6))
        assert run.data.metrics[f"offline/{name}"] == pytest.approx(sum(by_lead.values()) / 20)


def test_a_report_finds_the_scores_by_the_names_they_were_written_with(tracked: Tracked) -> None:
    client, _, root = tracked
    (row,) = mnist_table(from_mlflow(client, "on-digits")[0]).sections[0].rows
    result = json.loads((root / "Traj-L2-s1" / "result.json").read_text())
    assert means(row)[1:] == [result["scores"]["digits"]["mse"]]  # after the number of parameters
    (section,) = hko7_table(from_mlflow(client, "on-radar")[0]).sections
    for row, folder in zip(section.rows, ("Last-Frame-s0", "ConvGRU-s1"), strict=True):
        scores = summarize(load_scores(root / folder / "scores-offline.npz"))
        assert means(row) == [*scores["csi"], *scores["hss"], scores["bmse"], scores["bmae"]]


def means(row: Row) -> list[float | None]:
    return [cell.mean if isinstance(cell, Cell) else None for cell in row.cells]


def test_what_a_report_makes_of_a_file_of_scores_is_what_its_run_has(tracked: Tracked) -> None:
    _, runs, root = tracked
    file = ScoreFile(arm="A", seed=1, setting=OFFLINE, path=root / "ConvGRU-s1" / "scores-offline.npz")
    (trial,) = from_files([file])[0].arms["A"]
    final = {name: value for name, value in runs["ConvGRU s1"].data.metrics.items() if name.startswith("offline/")}
    assert trial.metrics == {name: value for name, value in final.items() if "/by_lead/" not in name}


def test_what_reports_are_made_of_can_be_read_back(tracked: Tracked) -> None:
    client = tracked[0]
    (digits,) = read_trials(client, "on-digits")
    shown = read_examples(client, digits)
    assert shown is not None
    assert shown.links is not None
    for trial in read_trials(client, "on-radar"):
        assert len(read_scores(client, trial, OFFLINE)) > 0
        assert read_examples(client, trial) is not None


def test_a_run_holds_its_config_environment_and_pictures(tracked: Tracked, tmp_path: Path) -> None:
    client, runs, _ = tracked
    run_id = runs["Traj-L2 s1"].info.run_id
    there = {file.path for file in client.list_artifacts(run_id)}
    assert there >= {"config.json", "environment.txt", "examples.npz", "history.jsonl", "scores-digits.npz", "pictures"}
    pictures = [file.path for file in client.list_artifacts(run_id, "pictures")]
    assert pictures == ["pictures/forecast.png", "pictures/links.png"]
    picture = Image.open(client.download_artifacts(run_id, "pictures/forecast.png", str(tmp_path)))
    assert len(picture.getcolors(100_000) or []) > 3  # something is on it
    assert [file.path for file in client.list_artifacts(runs["Last-Frame s0"].info.run_id, "pictures")] == [
        "pictures/forecast.png"
    ]


def test_weights_are_told_by_place_and_hash(tracked: Tracked) -> None:
    _, runs, root = tracked
    tags = runs["ConvGRU s1"].data.tags
    assert Path(tags["weights.best"]).is_file()
    assert Path(tags["weights.best"]).is_relative_to(root.resolve())
    manifest = json.loads(Path(tags["weights.best"]).with_name("manifest.json").read_text())["manifest"]
    assert tags["weights.best.sha256"] == manifest["sha256"]
    assert "weights.best" not in runs["Last-Frame s0"].data.tags


def test_the_data_are_named_with_their_digest(tracked: Tracked, tiny_store: Path) -> None:
    run = tracked[1]["ConvGRU s1"]
    (data,) = run.inputs.dataset_inputs
    digest = open_store(str(tiny_store)).digest
    assert (data.dataset.name, data.dataset.digest) == ("tiny.zarr", digest[:36])
    assert run.data.tags["nowcastlab.data_digest"] == digest


def test_a_picture_that_cannot_be_drawn_costs_the_run_nothing(tmp_path: Path) -> None:
    (tmp_path / "examples.npz").write_bytes(b"not examples")
    trouble: dict[str, Any] = {}
    assert draw_pictures(tmp_path, trouble) == []
    assert "not drawn: StoreError" in trouble["nowcastlab.pictures"]
