"""A mirror lets go of what it knows of an ended run; taken up again, the run still gets every value once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from mlflow import MlflowClient

from nowcastlab.tracking import Mirror, TrialRecord, connect


def record(steps: int, status: str) -> TrialRecord:
    history = [{"step": step, "train/loss": 1.0 / step} for step in range(1, steps + 1)]
    return TrialRecord(
        key="s/demo/a-s1", name="a s1", params={"seed": 1}, tags={"arm": "a"}, history=history, status=status
    )


def test_a_failed_run_that_goes_on_has_every_step_once(tmp_path: Path) -> None:
    client = connect(f"sqlite:///{tmp_path}/mlflow.db")
    mirror = Mirror(client, "s")
    for steps, status in ((2, "RUNNING"), (3, "FAILED"), (4, "RUNNING"), (5, "FINISHED")):
        mirror.sync(record(steps, status))
    (run,) = client.search_runs([mirror.experiment_id])
    assert run.info.status == "FINISHED"
    assert [point.step for point in client.get_metric_history(run.info.run_id, "train/loss")] == [1, 2, 3, 4, 5]


def test_an_ended_run_takes_no_memory_for_its_steps(tmp_path: Path) -> None:
    mirror = Mirror(connect(f"sqlite:///{tmp_path}/mlflow.db"), "s")
    mirror.sync(record(500, "FINISHED"))
    assert mirror.status("s/demo/a-s1") == ("FINISHED", None)
    assert not mirror._runs["s/demo/a-s1"].logged


class Counting(MlflowClient):
    """A real client that notes what it is asked."""

    def __init__(self, uri: str) -> None:
        super().__init__(tracking_uri=uri)
        self.asked: list[str] = []

    def search_runs(self, *args: Any, **kwargs: Any) -> Any:
        self.asked.append("search_runs")
        return super().search_runs(*args, **kwargs)

    def get_metric_history(self, *args: Any, **kwargs: Any) -> Any:
        self.asked.append("get_metric_history")
        return super().get_metric_history(*args, **kwargs)


def test_a_sweep_opened_again_asks_nothing_about_its_ended_runs(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    done = [replace(record(3, "FINISHED"), key=f"s/demo/a-s{seed}") for seed in range(5)]
    first = Mirror(connect(uri), "s")
    for each in done:
        first.sync(each)
    client = Counting(uri)
    again = Mirror(client, "s")
    again.open_sweep(key="s/demo", name="s", params={}, tags={}, identities={each.key: "" for each in done})
    opened = len(client.asked)
    for each in done:
        assert again.status(each.key) == ("FINISHED", None)
        again.sync(each)
    assert len(client.asked) == opened
