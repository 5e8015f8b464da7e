"""A real search: proposed, pruned, killed with kill -9 and taken up by the same command."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import ray
from mlflow import MlflowClient
from optuna.trial import TrialState

from nowcastlab.cli.search import as_text, how_it_ended, train_command
from nowcastlab.config import TrainConfig, mnist_config, radar_config
from nowcastlab.errors import ConfigError, StoreError, TrackingError, TrainingError
from nowcastlab.sweep.attempts import read_attempts
from nowcastlab.sweep.search import Choice, Real, Search, SearchFolder, Whole
from nowcastlab.sweep.search.driver import SearchResult, check_search, resumable, run_search
from nowcastlab.sweep.search.study import ask, found_in, identity_of, open_study

STEPS = 9

# The same search, as a script of its own, for the test that kills it.
SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_search import small_search
from nowcastlab.sweep.search.driver import run_search
run_search(small_search(), trials={trials}, root=Path({root!r}), tracking_uri={uri!r})
"""


def configured(values: Mapping[str, Any]) -> TrainConfig:
    return mnist_config(
        "traj-l2",
        digits="sklearn-digits",
        threads=1,
        learning_rate=values["learning_rate"],
        max_steps=STEPS,
        validate_every=1,
        report_every=1,
        checkpoint_every=1,
        **{"data.size": 16, "data.valid_sequences": 2, "data.count": 1, "overrides.links": values["links"]},
    )


def small_search(**changes: Any) -> Search:
    values: dict[str, Any] = {
        "name": "small-search",
        "question": "Which?",
        "scale": "demo",
        "space": {"learning_rate": Real(low=1e-4, high=1e-2), "links": Whole(low=1, high=3)},
        "config": configured,
        "first_rung": 1,
        "spread_trials": 3,
    }
    return Search(**{**values, **changes})


def search(root: Path, trials: int) -> SearchResult:
    return run_search(
        small_search(), trials=trials, root=root, tracking_uri=f"sqlite:///{root}/mlflow.db", say=lambda line: None
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, ray_address: str) -> tuple[Path, SearchResult]:
    root = tmp_path_factory.mktemp("search")
    return root, search(root, 8)


def assert_whole(root: Path, trials: int) -> None:
    """So many trials, each with one run that says how it ended, and every step once."""
    client = MlflowClient(f"sqlite:///{root}/mlflow.db")
    (experiment,) = [e for e in client.search_experiments() if e.name == "small-search"]
    runs = client.search_runs([experiment.experiment_id], "tags.`nowcastlab.kind` = 'trial'")
    found = found_in(open_study(SearchFolder(root, small_search())))
    assert [one.number for one in sorted(found, key=lambda one: one.number)] == list(range(trials))
    assert Counter(run.data.tags["arm"] for run in runs) == {f"t{one.number:03d}": 1 for one in found}
    outcomes = {f"t{one.number:03d}": one.outcome for one in found}
    for run in runs:
        assert run.info.status == "FINISHED"
        assert run.data.tags["outcome"] == outcomes[run.data.tags["arm"]]
        assert run.info.run_name.endswith("(pruned)") == (run.data.tags["outcome"] == "pruned")
        steps = [metric.step for metric in client.get_metric_history(run.info.run_id, "valid/score")]
        assert steps == list(range(1, len(steps) + 1))


def test_a_search_prunes_most_and_trains_the_best_to_the_end(finished: tuple[Path, SearchResult]) -> None:
    root, result = finished
    outcomes = Counter(one.outcome for one in result.found)
    assert outcomes["pruned"] >= 2
    assert outcomes["finished"] >= 1
    assert sum(outcomes.values()) == 8
    assert result.best is not None
    assert result.best.step == STEPS
    assert_whole(root, 8)


def test_run_again_it_tries_nothing_and_asked_for_more_only_those(finished: tuple[Path, SearchResult]) -> None:
    root, before = finished
    times = {path: path.stat().st_mtime_ns for path in root.rglob("result.json")}
    assert [one.number for one in search(root, 8).found] == [one.number for one in before.found]
    after = search(root, 9)
    assert len(after.found) == 9
    assert {path: path.stat().st_mtime_ns for path in times} == times  # the old ones were not touched


def test_its_text_names_the_best_and_how_to_train_it(finished: tuple[Path, SearchResult]) -> None:
    text = as_text(finished[1])
    best = finished[1].best
    assert best is not None
    assert f"Best: t{best.number:03d}" in text
    assert f"--set learning_rate={best.values['learning_rate']}" in text
    assert f"--set overrides.links={best.values['links']}" in text
    assert "runs: nowcastlab ui --sweep small-search" in text


@pytest.mark.parametrize("scale", ["demo", "laptop"])
def test_the_command_it_names_means_the_same_config(scale: str) -> None:
    changed: dict[str, Any] = {"learning_rate": 0.00123, "data.size": 16, "overrides.links": 3, "max_steps": 9}
    config = mnist_config("traj-l5", scale=scale, digits="sklearn-digits", **changed)
    program, verb, *words = shlex.split(train_command(config))
    assert (program, verb) == ("nowcastlab", "train")
    said: dict[str, str] = {}
    changes: dict[str, Any] = {}
    for option, value in zip(words[::2], words[1::2], strict=True):
        if option == "--set":
            name, _, text = value.partition("=")
            changes[name] = json.loads(text)
        else:
            said[option.removeprefix("--")] = value
    rebuilt = mnist_config(**said | {"seed": int(said["seed"])}, **changes)
    assert rebuilt.identity == replace(config, seed=config.seed + 1).identity


@pytest.mark.slow
def test_killed_with_kill_9_the_same_command_goes_on(tmp_path: Path, ray_address: str) -> None:
    trials = 6
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    script = SCRIPT.format(tests=str(Path(__file__).parent), root=str(tmp_path), uri=uri, trials=trials)

    def start() -> subprocess.Popen[str]:
        environment = {**os.environ, "RAY_ADDRESS": ray_address}
        return subprocess.Popen([sys.executable, "-c", script], env=environment, stderr=subprocess.PIPE, text=True)

    def steps_done() -> int:
        return sum(len(path.read_text().splitlines()) for path in tmp_path.glob("*/trials/*/history.jsonl"))

    process, deadline = start(), time.monotonic() + 240
    while process.poll() is None and steps_done() < 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert process.poll() is None, process.communicate()[1][-2000:]
    process.kill()
    process.communicate()
    points = {t.number: t.params for t in open_study(SearchFolder(tmp_path, small_search())).get_trials()}
    # what a kill in the middle of a write leaves: half a line, and the lock
    (journal,) = tmp_path.glob("*/study.journal")
    with journal.open("ab") as file:
        file.write(b'{"op_code":5,"worker_id":"ab')
    (journal.parent / "study.journal.lock").symlink_to(journal)

    process = start()
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors[-2000:]
    assert_whole(tmp_path, trials)
    after = {t.number: t.params for t in open_study(SearchFolder(tmp_path, small_search())).get_trials()}
    assert {number: after[number] for number in points} == points  # taken up, not tried anew


def test_a_search_changed_after_it_was_begun_is_refused(finished: tuple[Path, SearchResult]) -> None:
    root, _ = finished
    changed = small_search(space={"learning_rate": Real(low=1e-4, high=1e-1), "links": Whole(low=1, high=3)})
    with pytest.raises(ConfigError, match=r"changed after it was begun .*space"):
        run_search(changed, trials=9, root=root, tracking_uri=f"sqlite:///{root}/mlflow.db")


def test_a_search_begun_anew_does_not_write_into_the_runs_of_the_one_before(
    finished: tuple[Path, SearchResult], tmp_path: Path
) -> None:
    """Another folder, the same name and database: t000 would be two trials in one run."""
    root, _ = finished
    with pytest.raises(TrackingError, match=rf"belongs to another sweep or search of that name \({root}"):
        run_search(small_search(), trials=1, root=tmp_path, tracking_uri=f"sqlite:///{root}/mlflow.db")
    assert not (tmp_path / "small-search-demo" / "trials").exists()


def test_a_study_is_known_again_and_told_from_another_of_the_same_search(tmp_path: Path) -> None:
    folders = [SearchFolder(tmp_path / name, small_search()) for name in ("a", "b")]
    for folder in folders:
        folder.path.mkdir(parents=True)
    first, again, other = (identity_of(open_study(folder)) for folder in (folders[0], *folders))
    assert first == again != other
    assert first is not None
    folders[0].journal.unlink()  # whatever else is there, this is the study
    assert identity_of(open_study(folders[0])) != first


def failed_search(root: Path) -> SearchFolder:
    """One trial, whose worker died: it left no result."""
    folder = SearchFolder(root, small_search())
    with folder.claim():
        study = open_study(folder)
        asked = ask(study, folder.search)
        asked.set_user_attr("error", "its worker died 4 times")
        study.tell(asked, state=TrialState.FAIL)
    return folder


def test_a_failed_trial_stays_failed_and_keeps_its_error_when_the_command_is_run_again(tmp_path: Path) -> None:
    failed_search(tmp_path)
    for _ in range(2):
        result = search(tmp_path, 1)
        client = MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
        runs = client.search_runs([client.get_experiment_by_name("small-search").experiment_id])
        assert [run.info.status for run in runs] == ["FAILED", "FAILED"]  # the trial, and the search
        (trial,) = [run for run in runs if run.data.tags["nowcastlab.kind"] == "trial"]
        assert trial.data.tags["outcome"] == "failed"
        assert trial.data.tags["nowcastlab.error"] == "its worker died 4 times"
    code, why = how_it_ended(result)
    assert code == 4
    assert (
        "Every trial failed, the first with its worker died 4 times. Mend that and ask for more, as --trials 2" in why
    )


def test_a_point_that_no_machine_can_do_fails_alone_and_is_not_taken_up_again(tmp_path: Path, ray_address: str) -> None:
    """As one that is too wide for the GPU: each attempt at it raises, and says nothing about the others."""
    trial = SearchFolder(tmp_path, small_search()).path / "trials" / "t001-s1"
    (trial / ".trial.lock").mkdir(parents=True)  # which no worker can then take
    for _ in range(2):
        result = search(tmp_path, 3)
        outcomes = {one.number: one.outcome for one in result.found}
        assert outcomes.pop(1) == "failed"
        assert outcomes.keys() == {0, 2}
        assert "failed" not in outcomes.values()
        (failed,) = [one for one in result.found if one.number == 1]
        assert failed.error.startswith("given up after 4 attempts: IsADirectoryError")
        client = MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
        runs = client.search_runs([client.get_experiment_by_name("small-search").experiment_id])
        assert {run.data.tags.get("arm"): run.info.status for run in runs} == {
            None: "FINISHED",
            "t000": "FINISHED",
            "t001": "FAILED",
            "t002": "FINISHED",
        }


def test_what_a_machine_did_once_is_tried_again(tmp_path: Path, ray_address: str) -> None:
    trial = SearchFolder(tmp_path, small_search()).path / "trials" / "t000-s1"
    in_the_way = trial / "attempts.jsonl"
    in_the_way.mkdir(parents=True)

    def clear_up() -> None:
        while not (trial / "clock.json").exists():  # which an attempt writes at its end, also when it failed
            time.sleep(0.01)
        in_the_way.rmdir()

    clearing = threading.Thread(target=clear_up, daemon=True)
    clearing.start()
    assert [one.outcome for one in search(tmp_path, 1).found] == ["finished"]
    assert not clearing.is_alive()
    assert len(read_attempts(trial)) == 1  # that got as far as a report


def test_a_full_disk_ends_a_search_which_goes_on_when_there_is_room(tmp_path: Path, ray_address: str) -> None:
    attempts = SearchFolder(tmp_path, small_search()).path / "trials" / "t000-s1" / "attempts.jsonl"
    attempts.parent.mkdir(parents=True)
    attempts.symlink_to("/dev/full")
    text = r"Trial t000-s1 cannot go on: .*No space left on device.* Make room; the same command goes on"
    with pytest.raises(TrainingError, match=text):
        search(tmp_path, 2)
    attempts.unlink()
    assert len(search(tmp_path, 2).found) == 2
    assert_whole(tmp_path, 2)


def test_a_search_of_which_some_trials_failed_ended_well(finished: tuple[Path, SearchResult]) -> None:
    _, result = finished
    some = replace(result, found=[*result.found, replace(result.found[0], outcome="failed")])
    assert how_it_ended(some) == (0, "")
    assert how_it_ended(replace(some, interrupted=True))[0] == 130


def test_data_that_changed_are_seen_before_the_first_trial(tiny_store: Path, tmp_path: Path) -> None:
    store = tmp_path / "radar.zarr"
    shutil.copytree(tiny_store, store)

    def on_radar(values: Mapping[str, Any]) -> TrainConfig:
        rate = values["learning_rate"]
        return replace(on_store, learning_rate=rate)

    on_store = radar_config("convgru", store=str(store), max_steps=9, validate_every=1, **{"data.valid_windows": 1})
    radar = small_search(space={"learning_rate": Real(low=1e-4, high=1e-2)}, config=on_radar)
    folder = SearchFolder(tmp_path, radar)
    folder.path.mkdir()
    check_search(folder, 1)
    shutil.rmtree(store)
    with pytest.raises(StoreError, match=r"A trial at .*No store at .*radar.zarr"):
        check_search(folder, 1)


def test_a_disk_that_fills_under_the_driver_is_told_in_a_line(tmp_path: Path) -> None:
    text = r"The search in .*small-search-demo cannot go on: .*No space left on device.*the same command goes on"
    with pytest.raises(TrainingError, match=text), resumable(SearchFolder(tmp_path, small_search())):
        raise OSError(28, "No space left on device")


def test_so_is_what_ray_does_to_it(tmp_path: Path) -> None:
    with (
        pytest.raises(TrainingError, match=r"cannot go on: .*the same command goes on"),
        resumable(SearchFolder(tmp_path, small_search())),
    ):
        raise ray.exceptions.LocalRayletDiedError


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"search's folder .*file/small-search-demo cannot be used: Not a directory"):
        run_search(small_search(), trials=1, root=tmp_path / "file", tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")


def test_a_damaged_record_says_what_may_be_done(tmp_path: Path) -> None:
    folder = SearchFolder(tmp_path, small_search())
    with folder.claim():
        pass
    (folder.path / "search.json").write_text("{")
    text = r"search.json is damaged .*Delete it if the search was not changed"
    with pytest.raises(ConfigError, match=text), folder.claim():
        pass


def test_a_trial_that_no_machine_can_hold_is_refused(
    tmp_path: Path, ray_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray would wait for such a machine, and the search with it, for ever and in silence."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    with pytest.raises(ConfigError, match=r"asks for 1 CPUs and 1 GPUs, and no machine here has them"):
        run_search(small_search(), trials=1, root=tmp_path, tracking_uri=uri, gpus_per_trial=1)
    assert not (tmp_path / "small-search-demo" / "trials").exists()


def test_the_first_points_are_spread_and_depend_on_the_seed_alone() -> None:
    space = {"learning_rate": Real(low=1e-4, high=1e-2), "links": Choice(values=(1, 2, 3, 4))}
    points = [small_search(space=space).spread_point(i) for i in range(8)]
    assert points == [small_search(space=space).spread_point(i) for i in range(8)]
    assert points != [small_search(space=space, seed=2).spread_point(i) for i in range(8)]
    assert {point["links"] for point in points} == {1, 2, 3, 4}
    below = sum(point["learning_rate"] < 1e-3 for point in points)  # half of a logarithmic range
    assert 3 <= below <= 5


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"space": {}}, "has nothing to look for"),
        ({"space": {"learning_rate": Real(low=0, high=1)}}, "a logarithmic range begins above 0"),
        ({"space": {"learning_rate": Whole(low=3, high=3)}}, "goes from 3 to 3: low must be lower"),
        ({"space": {"learning_rate": Choice(values=())}}, "has no values to choose from"),
        ({"scale": "paper"}, "a trial is set up at demo scale, and would be called paper"),
        ({"reduction": 1}, r"reduction \(=1\) must be at least 2"),
        ({"first_rung": 10}, r"first_rung \(=10\) must be .* at most max_steps \(=9\)"),
    ],
)
def test_a_search_that_cannot_be_is_refused_when_it_is_made(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        small_search(**changes)
