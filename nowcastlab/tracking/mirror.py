"""A sweep's runs in MLflow: one parent, one child a trial, whatever crashed in between.

A run is found by its trial's key, or made. Values are compared with what the run has, per name and step, so nothing is
logged twice and nothing left out: after a crash, after a server was away, and when the same sweep is run again.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run
from mlflow.exceptions import MlflowException

from nowcastlab.errors import TrackingError
from nowcastlab.tracking.backend import artifact_root

TAG = "nowcastlab"
BATCH = 900  # MLflow takes at most 1000 values a call
LONGEST_VALUE = 5000  # and parameters of 6000 characters


@dataclass(frozen=True, kw_only=True)
class TrialRecord:
    """What a trial's folder says at one moment, in MLflow's terms."""

    key: str  # sweep, arm and seed: names the run for good
    name: str  # what the run is called in the UI
    params: Mapping[str, Any]
    tags: Mapping[str, str]
    history: Sequence[Mapping[str, Any]] = ()  # {"step": 100, "train/loss": ...}
    curves: Mapping[str, Mapping[int, float]] = field(default_factory=dict)  # by lead: {"test/csi/r0.5": {6: ...}}
    artifacts: Sequence[Path] = ()  # logged when the trial ends
    status: str = "RUNNING"  # FINISHED, FAILED
    error: str | None = None


class Mirror:
    def __init__(self, client: MlflowClient, experiment: str) -> None:
        self._client = client
        self.uri = client.tracking_uri
        self.experiment_id = self._find_experiment(experiment)
        self._runs: dict[str, _MirroredRun] = {}
        self.parent_id: str | None = None

    def open_sweep(self, *, key: str, name: str, params: Mapping[str, Any], tags: Mapping[str, str]) -> str:
        """The parent run of a sweep."""
        self.parent_id = self._run(key, name, {**tags, f"{TAG}.kind": "sweep"}, parent=None).run_id
        self._log_params(self.parent_id, params)
        self._client.update_run(self.parent_id, status="RUNNING")
        return self.parent_id

    def close_sweep(self, *, status: str, artifacts: Sequence[Path] = ()) -> None:
        assert self.parent_id is not None
        for path in artifacts:
            self._client.log_artifact(self.parent_id, str(path))
        self._client.set_terminated(self.parent_id, status=status)

    def sync(self, record: TrialRecord) -> None:
        """Bring the trial's run up to what its folder says. Raises MlflowException where MLflow does not answer."""
        run = self._run(record.key, record.name, {**record.tags, f"{TAG}.kind": "trial"}, parent=self.parent_id)
        if run.status == record.status and run.status != "RUNNING":
            return
        if run.status != "RUNNING":
            self._client.update_run(run.run_id, status="RUNNING")  # a failed trial that was taken up again
            run.status = "RUNNING"
        self._log_params(run.run_id, record.params)
        values = [(name, step, value) for step, name, value in _values(record)]
        fresh = [(name, step, value) for name, step, value in values if step not in run.logged[name]]
        now = int(time.time() * 1000)
        for first in range(0, len(fresh), BATCH):
            part = fresh[first : first + BATCH]
            self._client.log_batch(run.run_id, metrics=[Metric(n, float(v), now, s) for n, s, v in part])
            for name, step, _ in part:
                run.logged[name].add(step)
        if record.status == "RUNNING":
            return
        for path in record.artifacts:
            self._client.log_artifact(run.run_id, str(path))
        if record.error is not None:
            self._client.set_tag(run.run_id, f"{TAG}.error", record.error[:LONGEST_VALUE])
        self._client.set_terminated(run.run_id, status=record.status)
        run.status = record.status

    def link(self) -> str:
        """Where a person finds the sweep in the UI of a server at this address."""
        base = self.uri.rstrip("/") if self.uri.startswith("http") else "http://127.0.0.1:5000"
        return f"{base}/#/experiments/{self.experiment_id}"

    def _find_experiment(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        if found is None:
            try:
                return self._client.create_experiment(name, artifact_location=artifact_root(self.uri))
            except MlflowException:  # another sweep was quicker
                found = self._client.get_experiment_by_name(name)
        if found is None or found.lifecycle_stage != "active":
            raise TrackingError(
                f"The MLflow experiment {name!r} was deleted. Restore it with `mlflow experiments restore`."
            )
        return found.experiment_id

    def _run(self, key: str, name: str, tags: Mapping[str, str], *, parent: str | None) -> _MirroredRun:
        if key not in self._runs:
            found = self._client.search_runs(
                [self.experiment_id], filter_string=f"tags.`{TAG}.key` = '{key}'", max_results=2
            )
            if len(found) > 1:
                raise TrackingError(f"MLflow has {len(found)} runs for {key}. Delete all but one of them in the UI.")
            run = found[0] if found else self._create(key, name, tags, parent)
            self._runs[key] = _MirroredRun(run_id=run.info.run_id, status=run.info.status)
            for metric in run.data.metrics:
                history = self._client.get_metric_history(run.info.run_id, metric)
                self._runs[key].logged[metric] = {value.step for value in history}
        return self._runs[key]

    def _create(self, key: str, name: str, tags: Mapping[str, str], parent: str | None) -> Run:
        every = {**tags, f"{TAG}.key": key, **({"mlflow.parentRunId": parent} if parent else {})}
        return self._client.create_run(self.experiment_id, run_name=name, tags=every)

    def _log_params(self, run_id: str, params: Mapping[str, Any]) -> None:
        there = self._client.get_run(run_id).data.params
        fresh = [Param(k, str(v)[:LONGEST_VALUE]) for k, v in params.items() if k not in there]
        for first in range(0, len(fresh), 100):
            self._client.log_batch(run_id, params=fresh[first : first + 100])


@dataclass(kw_only=True)
class _MirroredRun:
    run_id: str
    status: str
    logged: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))


def _values(record: TrialRecord) -> list[tuple[int, str, float]]:
    values = [
        (int(entry["step"]), name, value) for entry in record.history for name, value in entry.items() if name != "step"
    ]
    values += [(step, name, value) for name, curve in record.curves.items() for step, value in curve.items()]
    return values
