"""Eight sweeps started at once on a tracking database that is not there yet."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from faults import Driver
from mlflow import MlflowClient

from nowcastlab.store import open_store
from nowcastlab.sweep import Arm, Radar, Sweep, SweepFolder, run_trial

EIGHT = range(8)
TO_RUN = (
    3,
    6,
)  # these run their trial; the others' were run before, and are copied, so that all come to MLflow at once


def one_trial_sweep(store: Path, number: int) -> Sweep:
    return Sweep(
        name=f"sweep-{number}",
        question="?",
        scale="demo",
        arms=[Arm(name="Last-Frame", baseline="last-frame")],
        radar=Radar(store=str(store), digest=open_store(str(store)).digest, limit=2),
    )


def test_eight_sweeps_started_at_once_on_an_empty_database_all_succeed(
    tmp_path: Path, tiny_store: Path, ray_address: str
) -> None:
    sweeps = [one_trial_sweep(tiny_store, number) for number in EIGHT]
    for number, sweep in enumerate(sweeps):
        if number not in TO_RUN:
            run_trial(sweep.trials[0], SweepFolder(tmp_path, sweep).trial(sweep.trials[0]))
    uri = f"sqlite:///{tmp_path}/together/mlflow.db"
    asked = [{field.name: getattr(sweep, field.name) for field in fields(sweep)} for sweep in sweeps]
    drivers = [Driver(tmp_path, ray_address, uri=uri, sweep=each) for each in asked]
    for driver in drivers:
        driver.wait()

    client = MlflowClient(uri)
    names = {experiment.name: experiment.experiment_id for experiment in client.search_experiments()}
    assert names.keys() == {"Default", *(sweep.name for sweep in sweeps)}
    for sweep in sweeps:
        runs = client.search_runs([names[sweep.name]])
        assert sorted(run.data.tags["nowcastlab.kind"] for run in runs) == ["sweep", "trial"]
        assert {run.info.status for run in runs} == {"FINISHED"}
