"""The copy in MLflow of what trials left on disk, and of what they could not leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from faults import small_sweep
from mlflow import MlflowClient
from mlflow.entities import Run
from mlflow.exceptions import MlflowException

from nowcastlab.errors import TrackingError
from nowcastlab.sweep import SweepFolder
from nowcastlab.sweep.clerk import Clerk
from nowcastlab.tracking import Mirror, connect


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = f"sqlite:///{tmp_path_factory.mktemp('clerk')}/runs.db"
    connect(uri)
    return uri


class Refusing(MlflowClient):
    """A real client of a real store that does not take the runs of some arms; or of nothing, while it is away."""

    def __init__(self, uri: str, *arms: str) -> None:
        super().__init__(tracking_uri=uri)
        self._arms = arms
        self.away = 0  # so many calls more
        self.full = 0  # so many times more it takes nothing, and answers

    def create_run(self, *args: Any, **kwargs: Any) -> Run:
        if kwargs["tags"].get("arm") in self._arms:
            raise MlflowException("no such run is wanted here")
        return super().create_run(*args, **kwargs)

    def set_terminated(self, *args: Any, **kwargs: Any) -> None:
        self._answer()
        if self.full:
            self.full -= 1
            raise MlflowException("the artifact store is away")
        super().set_terminated(*args, **kwargs)

    def get_experiment(self, *args: Any, **kwargs: Any) -> Any:
        self._answer()
        return super().get_experiment(*args, **kwargs)

    def _answer(self) -> None:
        if self.away:
            self.away -= 1
            raise MlflowException("API request to http://ana:s3cret@there:5000/api failed")


def opened(client: MlflowClient, experiment: str) -> Mirror:
    mirror = Mirror(client, experiment)
    mirror.open_sweep(key="small/demo", name="small", params={}, tags={"scale": "demo"})
    return mirror


def runs(uri: str, mirror: Mirror) -> dict[str, Run]:
    found = MlflowClient(uri).search_runs([mirror.experiment_id], "tags.`nowcastlab.kind` = 'trial'")
    return {run.data.tags["arm"]: run for run in found}


def test_a_trial_that_left_no_result_has_failed_in_every_word(uri: str, tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path, small_sweep())
    mirror = opened(connect(uri), "failed")
    clerk = Clerk("small", folder, mirror, "v")
    clerk.failed(folder.sweep.trials[0], "its worker died each time")
    clerk.finish(unfinished="KILLED", status="FAILED")
    run = runs(uri, mirror)["conv-k3-d1"]
    assert run.info.status == "FAILED"
    assert run.data.tags["outcome"] == "failed"
    assert run.data.tags["nowcastlab.error"] == "its worker died each time"


def test_a_trial_that_was_interrupted_is_unfinished(uri: str, tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path, small_sweep())
    mirror = opened(connect(uri), "interrupted")
    clerk = Clerk("small", folder, mirror, "v")
    clerk.watch(folder.sweep.trials[0])
    clerk.finish(unfinished="KILLED", status="KILLED")
    run = runs(uri, mirror)["conv-k3-d1"]
    assert (run.info.status, run.data.tags["outcome"]) == ("KILLED", "unfinished")


def test_trials_that_are_refused_do_not_keep_the_others_out(uri: str, tmp_path: Path) -> None:
    models = ("conv-k3-d1", "conv-k5-d1", "traj-l2", "traj-l5")
    folder = SweepFolder(tmp_path, small_sweep(models=models, seeds=(1,)))
    mirror = opened(Refusing(uri, "conv-k3-d1", "conv-k5-d1"), "refused")
    clerk = Clerk("small", folder, mirror, "v", refusals_s=0, say=lambda line: None)
    for trial in folder.sweep.trials:
        clerk.watch(trial)
    with pytest.raises(TrackingError, match=r"conv-k3-d1-s1 and 1 more.*no such run is wanted here"):
        clerk.finish(unfinished="KILLED", status="KILLED")
    assert sorted(runs(uri, mirror)) == ["traj-l2", "traj-l5"]


def test_a_store_that_answers_and_takes_nothing_for_a_moment_is_waited_for(uri: str, tmp_path: Path) -> None:
    client = Refusing(uri)
    clerk = Clerk("small", SweepFolder(tmp_path, small_sweep()), opened(client, "moment"), "v", say=lambda line: None)
    client.full = 3  # the sweep's end, two seconds between
    clerk.finish(unfinished="KILLED", status="FINISHED")
    assert client.full == 0


def test_it_says_once_that_it_waits_for_what_and_that_ctrl_c_is_safe(uri: str, tmp_path: Path) -> None:
    said: list[str] = []
    client = Refusing(uri)
    clerk = Clerk("small", SweepFolder(tmp_path, small_sweep()), opened(client, "away"), "v", say=said.append)
    client.away = 4  # the end of the sweep, and whether it answers, twice each
    clerk.finish(unfinished="KILLED", status="FINISHED")
    (line,) = said
    assert "to take the end of small (API request to http://ana:***@there:5000/api failed), for 10 minutes" in line
    assert "Ctrl-C is safe: the same command copies what is missing" in line


def test_it_says_nothing_where_nothing_is_waited_for(uri: str, tmp_path: Path) -> None:
    said: list[str] = []
    folder = SweepFolder(tmp_path, small_sweep())
    Clerk("small", folder, opened(connect(uri), "there"), "v", say=said.append).finish(
        unfinished="KILLED", status="FINISHED"
    )
    assert not said


def test_what_it_complains_of_shows_no_password(uri: str, tmp_path: Path) -> None:
    client = Refusing(uri)
    mirror = opened(client, "secret")
    mirror.uri = "http://ana:s3cret@there:5000"
    client.away = 1000
    folder = SweepFolder(tmp_path, small_sweep())
    with pytest.raises(TrackingError, match="has not answered") as caught:
        Clerk("small", folder, mirror, "v", patience_s=0.1, say=lambda line: None).finish(
            unfinished="KILLED", status="FINISHED"
        )
    assert "s3cret" not in str(caught.value)
