"""One run a trial and every value once, also where MLflow's answers are lost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run
from mlflow.exceptions import MlflowException

from nowcastlab.errors import TrackingError
from nowcastlab.tracking import Mirror, TrialRecord, connect
from nowcastlab.tracking.sweep_record import read_sweep_records

HISTORY = [{"step": step, "train/loss": 1 / step} for step in range(1, 6)]
RECORD = TrialRecord(key="s/demo/A-s1", name="A s1", params={"arm": "A"}, tags={"arm": "A"}, history=HISTORY)


class LostAnswers(MlflowClient):
    """A real client of a real store that carries out each kind of call once without saying so."""

    def __init__(self, uri: str) -> None:
        super().__init__(tracking_uri=uri)
        self.lost: set[str] = set()

    def _lose(self, call: str) -> None:
        if call not in self.lost:
            self.lost.add(call)
            raise MlflowException(f"{call}: the connection was closed before the answer came")

    def create_run(self, *args: Any, **kwargs: Any) -> Run:
        run = super().create_run(*args, **kwargs)
        self._lose("create_run")
        return run

    def log_batch(self, *args: Any, **kwargs: Any) -> Any:
        super().log_batch(*args, **kwargs)
        self._lose("log_batch of metrics" if kwargs.get("metrics") else "log_batch")

    def log_artifact(self, *args: Any, **kwargs: Any) -> None:
        super().log_artifact(*args, **kwargs)
        self._lose("log_artifact")

    def set_terminated(self, *args: Any, **kwargs: Any) -> None:
        super().set_terminated(*args, **kwargs)
        self._lose("set_terminated")


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One database: making its tables takes seconds. Each test has an experiment of its own."""
    uri = f"sqlite:///{tmp_path_factory.mktemp('tracking')}/runs.db"
    connect(uri)
    return uri


def the_run(uri: str, experiment: str) -> Run:
    client = MlflowClient(uri)
    (run,) = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
    return run


def steps(uri: str, run: Run) -> list[int]:
    return [value.step for value in MlflowClient(uri).get_metric_history(run.info.run_id, "train/loss")]


def test_a_lost_answer_makes_nothing_twice(uri: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    client = LostAnswers(uri)
    mirror = Mirror(client, "lost")
    whole = replace(RECORD, status="FINISHED", artifacts=[tmp_path / "config.json"])
    failures = 0
    while True:
        try:
            mirror.sync(whole)
            break
        except MlflowException:
            failures += 1
    assert failures == len(client.lost) == 5
    run = the_run(uri, "lost")
    assert run.info.status == "FINISHED"
    assert steps(uri, run) == [1, 2, 3, 4, 5]


def test_another_driver_goes_on_where_the_one_before_stopped(uri: str) -> None:
    Mirror(connect(uri), "resumed").sync(replace(RECORD, history=HISTORY[:3]))
    Mirror(connect(uri), "resumed").sync(replace(RECORD, status="FINISHED"))
    assert steps(uri, the_run(uri, "resumed")) == [1, 2, 3, 4, 5]


def test_a_failed_trial_that_is_taken_up_again_loses_its_error(uri: str) -> None:
    mirror = Mirror(connect(uri), "mended")
    mirror.sync(replace(RECORD, status="FAILED", error="no luck"))
    assert the_run(uri, "mended").data.tags["nowcastlab.error"] == "no luck"
    mirror.sync(replace(RECORD, status="FAILED", error="no luck, differently"))
    assert the_run(uri, "mended").data.tags["nowcastlab.error"] == "no luck, differently"
    mirror.sync(RECORD)
    assert the_run(uri, "mended").info.status == "RUNNING"
    mirror.sync(replace(RECORD, status="FINISHED"))
    assert the_run(uri, "mended").info.status == "FINISHED"
    assert "nowcastlab.error" not in the_run(uri, "mended").data.tags


def test_runs_made_by_two_drivers_at_once_become_one(uri: str) -> None:
    client = connect(uri)
    mirror = Mirror(client, "twice")
    for name in ("first", "second"):
        client.create_run(mirror.experiment_id, run_name=name, tags={"nowcastlab.key": RECORD.key})
    mirror.sync(RECORD)
    assert the_run(uri, "twice").info.run_name == "first"


def test_a_run_deleted_in_the_ui_is_made_again(uri: str) -> None:
    client = connect(uri)
    mirror = Mirror(client, "deleted")
    mirror.sync(RECORD)
    client.delete_run(the_run(uri, "deleted").info.run_id)
    with pytest.raises(MlflowException):
        mirror.sync(replace(RECORD, status="FINISHED"))
    mirror.sync(replace(RECORD, status="FINISHED"))
    assert steps(uri, the_run(uri, "deleted")) == [1, 2, 3, 4, 5]


def test_a_run_of_another_design_is_not_written_to(uri: str) -> None:
    mirror = Mirror(connect(uri), "foreign")
    mirror.sync(replace(RECORD, tags={"nowcastlab.identity": "a" * 64}))
    with pytest.raises(
        TrackingError, match=r"has a run of s/demo/A-s1 that was set up otherwise \(identity aaaaaaaaaaaa"
    ):
        mirror.open_sweep(key="s/demo", name="s", params={}, tags={}, identities={RECORD.key: "b" * 64})


def test_a_search_does_not_write_into_the_runs_of_another(uri: str) -> None:
    """Their trials have the same keys, t000 and so on, and are not known beforehand."""
    trial = replace(RECORD, key="s/demo/t000-s1", tags={"arm": "t000", "nowcastlab.folder": "/old/s-demo/t000-s1"})
    first = Mirror(connect(uri), "searched")
    first.open_sweep(key="s/demo", name="s", params={}, tags={}, token="first")
    first.sync(replace(trial, status="FINISHED"))
    again = Mirror(connect(uri), "searched")
    again.open_sweep(key="s/demo", name="s", params={}, tags={}, token="first")
    for token in ("second", None):
        other = Mirror(connect(uri), "searched")
        with pytest.raises(
            TrackingError, match=r"has a run of s/demo\S* that belongs to another sweep or search .*another name"
        ):
            other.open_sweep(key="s/demo", name="s", params={}, tags={}, token=token)
    other.open_sweep(key="s/laptop", name="s", params={}, tags={}, token="third")  # of another scale: not the same


class TooLate(MlflowClient):
    """A real client that saw an empty experiment, just before another driver's run was made there."""

    def __init__(self, uri: str) -> None:
        super().__init__(tracking_uri=uri)
        self.early = 2  # looks: around, and for the sweep's own run

    def search_runs(self, *args: Any, **kwargs: Any) -> Any:
        found = super().search_runs(*args, **kwargs)
        if self.early:
            self.early -= 1
            found.clear()
        return found


def test_of_two_sweeps_begun_at_once_in_two_folders_the_later_one_is_refused(uri: str) -> None:
    Mirror(connect(uri), "at-once").open_sweep(key="s/demo", name="s", params={}, tags={}, token="first")
    late = Mirror(TooLate(uri), "at-once")
    with pytest.raises(TrackingError, match="belongs to another sweep or search of that name"):
        late.open_sweep(key="s/demo", name="s", params={}, tags={}, token="second")
    assert the_run(uri, "at-once").data.tags["nowcastlab.study"] == "first"  # and what the other made is gone


def test_a_finished_trial_whose_folder_was_emptied_is_done_anew_in_a_run_of_its_own(uri: str) -> None:
    """Its old values have the same steps: none of the new ones would be logged beside them."""
    Mirror(connect(uri), "emptied").sync(replace(RECORD, status="FINISHED"))
    old = the_run(uri, "emptied").info.run_id
    mirror = Mirror(connect(uri), "emptied")
    anew = [{"step": 1, "train/loss": 7.0}]
    mirror.sync(replace(RECORD, history=anew))
    mirror.sync(replace(RECORD, history=anew, status="FINISHED"))
    run = the_run(uri, "emptied")
    assert run.info.run_id != old
    assert (run.info.status, run.data.metrics["train/loss"]) == ("FINISHED", 7.0)
    assert run.data.tags["nowcastlab.kind"] == "trial"


def test_a_sweep_opened_again_says_what_is_new_about_it(uri: str) -> None:
    for seeds in ({}, {"seeds_added": "3 after 1,2"}):
        Mirror(connect(uri), "grown").open_sweep(key="grown/demo", name="s", params={}, tags={"scale": "demo", **seeds})
    assert the_run(uri, "grown").data.tags["seeds_added"] == "3 after 1,2"


def test_what_a_sweep_will_compare_is_on_record_before_its_first_trial(uri: str, tmp_path: Path) -> None:
    asked = tmp_path / "sweep.json"
    asked.write_text(json.dumps({"comparisons": [["A", "B"]], "trials": {}}))
    client = connect(uri)
    Mirror(client, "asked").open_sweep(key="asked/demo", name="s", params={}, tags={"scale": "demo"}, artifacts=[asked])
    (record,) = read_sweep_records(client, "asked")
    assert (record.status, record.comparisons) == ("RUNNING", [("A", "B")])


def test_artifacts_that_cannot_be_written_are_told_apart_from_a_store_that_does_not_answer(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    mirror = Mirror(connect(uri), "asked")
    (tmp_path / "mlflow-artifacts").write_text("somebody's file, where the folder should be")
    asked = tmp_path / "sweep.json"
    asked.write_text("{}")
    with pytest.raises(TrackingError, match=r"mlflow.db answers, but artifacts cannot be written: .*Not a directory"):
        mirror.open_sweep(key="asked/demo", name="s", params={}, tags={}, artifacts=[asked])


def test_a_failed_trial_that_was_taken_up_again_shows_its_old_error_no_more(uri: str) -> None:
    mirror = Mirror(connect(uri), "taken-up")
    mirror.sync(replace(RECORD, status="FAILED", error="no memory"))
    assert the_run(uri, "taken-up").data.tags["nowcastlab.error"] == "no memory"
    mirror.sync(RECORD)
    run = the_run(uri, "taken-up")
    assert run.info.status == "RUNNING"
    assert "nowcastlab.error" not in run.data.tags
    assert mirror.status(RECORD.key) == ("RUNNING", None)


def test_an_old_error_goes_with_the_end_of_its_trial_though_a_driver_died_taking_it_up(uri: str) -> None:
    Mirror(connect(uri), "died").sync(replace(RECORD, status="FAILED", error="no memory"))
    MlflowClient(uri).update_run(the_run(uri, "died").info.run_id, status="RUNNING")  # as far as that driver got
    Mirror(connect(uri), "died").sync(replace(RECORD, status="FINISHED"))
    run = the_run(uri, "died")
    assert run.info.status == "FINISHED"
    assert "nowcastlab.error" not in run.data.tags
