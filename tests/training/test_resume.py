"""Killed, torn or moved, a run ends as if it had been left alone, to the bit; or says why it will not go on."""

from __future__ import annotations

import datetime as dt
import json
import multiprocessing
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from nowcastlab.config import TrainConfig, radar_config, with_changes
from nowcastlab.errors import ConfigError, StoreError, TrainingError
from nowcastlab.store import StoreWriter
from nowcastlab.training import CheckpointWarning, load_trained, progress_of, read_history, train
from nowcastlab.training.checkpoints import Checkpoints


def quietly(report: dict[str, Any]) -> None:
    pass


def states(folder: Path) -> dict[str, Any]:
    """Everything a run has at its end, flat: weights, optimiser, progress, the best weights."""
    checkpoints = Checkpoints(folder)
    flat: dict[str, Any] = {}

    def gather(name: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                gather(f"{name}/{key}", inner)
        else:
            flat[name] = value

    for kind in ("step", "best"):
        step = checkpoints.steps(kind)[0]
        gather(f"{kind}-{step}", checkpoints.load(kind, step).state)
    return flat


def assert_same_end(one: Path, other: Path) -> None:
    mine, theirs = states(one), states(other)
    assert mine.keys() == theirs.keys()
    for name, value in mine.items():
        same = torch.equal(value, theirs[name]) if isinstance(value, torch.Tensor) else value == theirs[name]
        assert same, name
    assert without_speed(read_history(one)) == without_speed(read_history(other))


def without_speed(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if k != "speed/frames_per_s"} for line in history]


def stopped_at(step: int) -> Callable[[], bool]:
    calls = iter(range(1, 1000))
    return lambda: next(calls) == step


@pytest.fixture(scope="module")
def alone(tiny_run: TrainConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `tiny_run`, left alone."""
    folder = tmp_path_factory.mktemp("alone")
    train(tiny_run, quietly, folder=folder)
    return folder


# --- kill -9


@pytest.mark.parametrize(("model", "most_kills"), [("conv2d", 6), ("trajgru", 3)])
def test_a_run_killed_at_random_moments_ends_with_the_same_weights(
    model: str, most_kills: int, tiny_store: Path, tmp_path: Path
) -> None:
    recurrent = {"overrides.filters": 2, "overrides.stem_filters": 2, "overrides.flow_filters": 2, "overrides.links": 2}
    changes = {"overrides.base_filters": 1} if model == "conv2d" else recurrent
    config = radar_config(
        model,
        store=str(tiny_store),
        threads=1,
        batch_size=2,
        max_steps=8 * most_kills,
        validate_every=4 * most_kills,
        report_every=1,
        checkpoint_every=3,
        **{"data.in_frames": 2, "data.leads": 2, "data.valid_windows": 4, **changes},
    )
    kills = run_and_kill(config, tmp_path / "killed", random.Random(7), most_kills)
    train(config, quietly, folder=tmp_path / "alone")
    assert kills == most_kills
    assert_same_end(tmp_path / "killed", tmp_path / "alone")


def run_and_kill(config: TrainConfig, folder: Path, moments: random.Random, most_kills: int) -> int:
    """Train in processes that are killed a few steps after they begin, then in one that is not; how many were."""
    # A server that has torch imported forks the processes, so that each starts in no time.
    server = multiprocessing.get_context("forkserver")
    # (torch's optimisers import torch._dynamo when the first is made: two seconds.)
    server.set_forkserver_preload(["torch._dynamo", "nowcastlab.training.loop", "nowcastlab.training.radar"])
    kills = 0
    while True:
        process = server.Process(target=train, args=(config, len), kwargs={"folder": folder})
        process.start()
        assert process.pid is not None
        goal = len(read_history(folder)) + moments.randint(1, 6)
        while process.is_alive() and kills < most_kills and len(read_history(folder)) < goal:
            time.sleep(0.002)
        time.sleep(moments.uniform(0, 0.03))  # into the middle of a step, or of a checkpoint
        if kills < most_kills and process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.join()
        if process.exitcode == 0:
            return kills
        assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("step", [5, 7])
def test_averages_under_way_and_patience_survive_a_stop(step: int, tiny_run: TrainConfig, tmp_path: Path) -> None:
    # A rate too low to move float32 weights: best at 2, not better at 4, 6 and 8, where patience ends. Odd steps lie
    # between two reports.
    still = with_changes(tiny_run, {"learning_rate": 1e-20, "patience": 3, "validate_every": 2})
    still = replace(still, model="convgru", overrides={"filters": 2, "stem_filters": 2, "strides": (4, 1, 1)})
    train(still, quietly, folder=tmp_path / "alone")
    train(still, quietly, folder=tmp_path / "stopped", stop=stopped_at(step))
    result = train(still, quietly, folder=tmp_path / "stopped")
    assert (result.resumed_from, result.best_step, result.step) == (step, 2, 8)
    assert_same_end(tmp_path / "stopped", tmp_path / "alone")


# --- damage


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def edit(path: Path) -> None:
    """Another number where one was: still readable, and so the worst."""
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"best_step": 4', b'"best_step": 0').replace(b"model", b"nodel"))


@pytest.mark.parametrize("harm", [truncate, flip, edit, Path.unlink])
@pytest.mark.parametrize("file", ["state.pt", "manifest.json"])
def test_a_damaged_newest_checkpoint_gives_way_to_the_one_before(
    harm: Callable[[Path], None], file: str, tiny_run: TrainConfig, alone: Path, tmp_path: Path
) -> None:
    train(tiny_run, quietly, folder=tmp_path, stop=stopped_at(7))
    harm(tmp_path / "checkpoints" / "step-00000007" / file)
    with pytest.warns(CheckpointWarning, match=r"step-00000007: .*: using step 6"):
        result = train(tiny_run, quietly, folder=tmp_path)
    assert result.resumed_from == 6
    assert_same_end(tmp_path, alone)


def test_a_damaged_checkpoint_does_not_take_the_place_of_a_sound_one(tiny_run: TrainConfig, tmp_path: Path) -> None:
    train(tiny_run, quietly, folder=tmp_path, stop=stopped_at(7))
    flip(tmp_path / "checkpoints" / "step-00000007" / "state.pt")
    with pytest.warns(CheckpointWarning):
        train(tiny_run, quietly, folder=tmp_path, stop=stopped_at(2))
    assert Checkpoints(tmp_path).steps() == [8, 6]


def test_a_damaged_best_sends_the_run_back_before_it(tiny_run: TrainConfig, alone: Path, tmp_path: Path) -> None:
    train(tiny_run, quietly, folder=tmp_path, stop=stopped_at(4))
    flip(tmp_path / "checkpoints" / "best-00000004" / "state.pt")
    with pytest.warns(CheckpointWarning, match=r"best-00000004: .*: using step 3"):
        train(tiny_run, quietly, folder=tmp_path)
    assert_same_end(tmp_path, alone)


def test_no_sound_checkpoint_at_all_is_said(tiny_run: TrainConfig, tmp_path: Path) -> None:
    train(tiny_run, quietly, folder=tmp_path)
    for state in tmp_path.glob("checkpoints/step-*/state.pt"):
        truncate(state)
    with pytest.raises(TrainingError, match=r"No checkpoint in .*step-00000012.*step-00000009.*Delete that folder"):
        train(tiny_run, quietly, folder=tmp_path)


def test_a_damaged_best_is_not_forecast_with(tiny_run: TrainConfig, tmp_path: Path) -> None:
    train(tiny_run, quietly, folder=tmp_path)
    flip(next(tmp_path.glob("checkpoints/best-*/state.pt")))
    with pytest.raises(TrainingError, match=r"best checkpoint in .* is damaged .*which='last'"):
        load_trained(tmp_path)
    assert load_trained(tmp_path, "last").step == 12


def test_what_a_kill_left_half_written_is_ignored_and_cleared(tiny_run: TrainConfig, tmp_path: Path) -> None:
    train(tiny_run, quietly, folder=tmp_path, stop=stopped_at(6))
    shutil.copytree(tmp_path / "checkpoints" / "step-00000006", tmp_path / "checkpoints" / ".writing-step-00000009")
    train(tiny_run, quietly, folder=tmp_path, stop=stopped_at(3))
    assert sorted(p.name for p in (tmp_path / "checkpoints").iterdir()) == [
        "best-00000008",
        "step-00000008",
        "step-00000009",
    ]


def test_a_foreign_pickle_in_a_checkpoint_is_not_run(tiny_run: TrainConfig, tmp_path: Path) -> None:
    """Even one with a fitting manifest: torch loads tensors and plain values, nothing else."""
    train(tiny_run, quietly, folder=tmp_path, stop=stopped_at(3))
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save("step", 3, {"progress": Path("/")}, checkpoints.load("step", 3).facts)
    with pytest.raises(Exception, match=r"[Ww]eights.only"):
        train(tiny_run, quietly, folder=tmp_path)


def test_a_torn_line_of_history_is_dropped_and_none_is_doubled(
    tiny_run: TrainConfig, alone: Path, tmp_path: Path
) -> None:
    train(tiny_run, quietly, folder=tmp_path, stop=stopped_at(6))
    shutil.rmtree(tmp_path / "checkpoints" / "step-00000006")  # so steps 5 and 6 are made again
    history = tmp_path / "history.jsonl"
    history.write_bytes(history.read_bytes()[:-10])
    train(tiny_run, quietly, folder=tmp_path)
    assert [json.loads(line)["step"] for line in history.read_text().splitlines()] == [2, 4, 6, 8, 10, 12]
    assert without_speed(read_history(tmp_path)) == without_speed(read_history(alone))


def test_steps_made_again_are_reported_with_the_same_values(tiny_run: TrainConfig, tmp_path: Path) -> None:
    first: list[dict[str, Any]] = []
    again: list[dict[str, Any]] = []
    train(tiny_run, first.append, folder=tmp_path, stop=stopped_at(8))
    shutil.rmtree(tmp_path / "checkpoints" / "step-00000008")
    train(tiny_run, again.append, folder=tmp_path)
    assert [r["step"] for r in again] == [8, 10, 12]  # from the checkpoint of step 6
    assert without_speed(again[:1]) == without_speed(first[-1:])
    lines = (tmp_path / "history.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [2, 4, 6, 8, 10, 12]  # told twice, kept once


def test_disk_use_is_bounded(tiny_run: TrainConfig, tmp_path: Path) -> None:
    most = 0

    def watch(report: dict[str, Any]) -> None:
        nonlocal most
        most = max(most, len(list((tmp_path / "checkpoints").glob("*"))))

    train(replace(tiny_run, checkpoint_every=1, report_every=1), watch, folder=tmp_path)
    assert most == 4  # two, and the best of each


def test_a_disk_without_room_is_said_and_harms_nothing(tiny_run: TrainConfig, tmp_path: Path) -> None:
    train(tiny_run, quietly, folder=tmp_path, stop=stopped_at(6))
    checkpoints = tmp_path / "checkpoints"
    # a file where the folder is to be written: the system refuses as it would without room
    (checkpoints / ".writing-best-00000008").write_text("")
    with pytest.raises(TrainingError, match=r"Cannot write the checkpoint of step 8 .*run the same again"):
        train(tiny_run, quietly, folder=tmp_path)
    progress = progress_of(tmp_path)
    assert progress is not None
    assert progress.step == 6


# --- what must not have changed


def test_a_changed_config_is_refused_with_what_changed(tiny_run: TrainConfig, tmp_path: Path) -> None:
    train(tiny_run, quietly, folder=tmp_path, stop=stopped_at(3))
    changed = with_changes(tiny_run, {"learning_rate": 0.5, "overrides.base_filters": 2})
    with pytest.raises(
        ConfigError, match=r"another config: overrides.base_filters was 1, now 2; learning_rate was [.0-9]+, now 0.5"
    ):
        train(changed, quietly, folder=tmp_path)


def test_a_store_that_changed_is_refused_with_both_digests(
    tiny_run: TrainConfig, tiny_store: Path, tmp_path: Path
) -> None:
    store = tmp_path / "mine.zarr"
    shutil.copytree(tiny_store, store)
    config = with_changes(tiny_run, {"data.store": str(store)})
    train(config, quietly, folder=tmp_path / "run", stop=stopped_at(3))
    with StoreWriter.open(store) as writer:
        writer.set_labels(splits={dt.date(2015, 6, 5): "train"})
    before = config.data.digest
    # the run as it was set up
    with pytest.raises(StoreError, match=rf"its digest is [0-9a-f]+, the run's {before}"):
        train(config, quietly, folder=tmp_path / "run")
    # the run as it would be set up now
    now = radar_config("conv2d", store=str(store)).data.digest
    with pytest.raises(StoreError, match=rf"it began on digest {before}, now it is {now}"):
        train(with_changes(config, {"data.digest": now}), quietly, folder=tmp_path / "run")


def test_a_store_that_moved_is_the_same_store(
    tiny_run: TrainConfig, tiny_store: Path, alone: Path, tmp_path: Path
) -> None:
    train(tiny_run, quietly, folder=tmp_path / "run", stop=stopped_at(5))
    shutil.copytree(tiny_store, tmp_path / "moved.zarr")
    moved = with_changes(tiny_run, {"data.store": str(tmp_path / "moved.zarr")})
    train(moved, quietly, folder=tmp_path / "run")
    assert_same_end(tmp_path / "run", alone)
    assert load_trained(tmp_path / "run").config == moved


def test_another_number_of_threads_is_allowed_and_said(tiny_run: TrainConfig, tmp_path: Path) -> None:
    train(tiny_run, quietly, folder=tmp_path)
    with pytest.warns(CheckpointWarning, match=r"threads was 1, now 2.* may differ in the last bits"):
        train(replace(tiny_run, threads=2), quietly, folder=tmp_path)


def test_two_processes_do_not_train_in_one_folder(tiny_run: TrainConfig, tmp_path: Path) -> None:
    def intrude(report: dict[str, Any]) -> None:
        with pytest.raises(TrainingError, match=r"Another process is training in"):
            train(tiny_run, quietly, folder=tmp_path)

    train(with_changes(tiny_run, {"max_steps": 4, "report_every": 4}), intrude, folder=tmp_path)
