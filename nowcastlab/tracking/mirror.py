"""A sweep's runs in MLflow: one parent, one child a trial, whatever crashed in between.

A run is found by its trial's key, or made. Values are compared with what the run has, per name and step, so nothing is
logged twice and nothing left out: after a crash, after a server was away, and when the same sweep is run again. Where a
call fails nobody knows whether it was carried out; so what is known of that run is forgotten, and read anew.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException

from nowcastlab.errors import TrackingError
from nowcastlab.tracking.backend import answering, artifact_root, reason, shown
from nowcastlab.tracking.server import experiment_link

TAG = "nowcastlab"
KIND = {"mlflow.experimentKind": "custom_model_development"}  # else the UI asks whether it is about language models
ERROR = f"{TAG}.error"
TOKEN = f"{TAG}.study"  # called so when only searches had one
RUN_NAME = "mlflow.runName"
BATCH = 900  # MLflow takes at most 1000 values a call
PAGE = 500  # runs
LONGEST_VALUE = 5000  # and parameters of 6000 characters
LONGEST_DIGEST = 36  # of a dataset; the whole of it is a tag


@dataclass(frozen=True, kw_only=True)
class Data:
    """What a trial was tested on: a column of its own in the UI."""

    name: str
    digest: str
    source: str  # path, URL, or how it was made


@dataclass(frozen=True, kw_only=True)
class TrialRecord:
    """What a trial's folder says at one moment, in MLflow's terms."""

    key: str  # sweep, arm and seed: names the run for good
    name: str  # what the run is called in the UI
    params: Mapping[str, Any]
    tags: Mapping[str, str]
    history: Sequence[Mapping[str, Any]] = ()  # {"step": 100, "train/loss": ...}
    curves: Mapping[str, Mapping[int, float]] = field(default_factory=dict)  # by lead: {"test/csi/r0.5": {6: ...}}
    # logged when the trial ends, as are tags that changed since it began
    artifacts: Sequence[Path] = ()
    pictures: Sequence[Path] = ()
    data: Data | None = None
    status: str = "RUNNING"  # FINISHED, FAILED
    error: str | None = None


class Mirror:
    def __init__(self, client: MlflowClient, experiment: str) -> None:
        self._client = client
        self.uri = client.tracking_uri
        self.experiment = experiment
        with answering(self.uri):
            self.experiment_id = self._find_experiment(experiment)
        self._runs: dict[str, _MirroredRun] = {}
        self._token: dict[str, str] = {}  # a tag of every run of a sweep or a search
        self.parent_id: str | None = None

    def open_sweep(
        self,
        *,
        key: str,
        name: str,
        params: Mapping[str, Any],
        tags: Mapping[str, str],
        identities: Mapping[str, str] | None = None,
        token: str | None = None,
        artifacts: Sequence[Path] = (),
    ) -> str:
        """The parent run of a sweep, with what it is asked to do (`artifacts`) on record before its first trial.

        The runs that are there already must be its own: have its `token`, which its folder keeps, since a sweep begun
        anew elsewhere has the same keys; and these `identities`, by trial key (not of a search, whose trials are not
        known beforehand).
        """
        self._token = {TOKEN: token} if token else {}
        with answering(self.uri):
            self._look_around(key, identities or {})
            run = self._run(key, name, {**tags, f"{TAG}.kind": "sweep"}, parent=None)
            self.parent_id = run.run_id
            self._log_params(run, params)
            self._log_tags(run, tags)  # also of a run that was there: seeds may have been added since
        self._log_artifacts(run.run_id, artifacts)
        with answering(self.uri):
            self._client.update_run(run.run_id, status="RUNNING")
        return self.parent_id

    def _log_artifacts(self, run_id: str, artifacts: Sequence[Path]) -> None:
        """They may lie elsewhere than the store that answers, behind a client with errors of its own."""
        for path in artifacts:
            try:
                self._client.log_artifact(run_id, str(path))
            except Exception as error:
                raise TrackingError(
                    f"{shown(self.uri)} answers, but artifacts cannot be written: {reason(error)}. Mend that and run "
                    "the same command again."
                ) from None

    def close_sweep(self, *, status: str) -> None:
        """May be called again where it raised."""
        assert self.parent_id is not None
        self._client.set_terminated(self.parent_id, status=status)

    def answers(self) -> bool:
        """Whether the store can be read just now."""
        try:
            self._client.get_experiment(self.experiment_id)
        except Exception:  # whatever a client far away raises
            return False
        return True

    def sync(self, record: TrialRecord) -> None:
        """Bring the trial's run up to what its folder says. Raises what MLflow raises; the next call makes it good."""
        try:
            self._sync(record)
        except Exception:
            self._runs.pop(record.key, None)
            raise

    def _sync(self, record: TrialRecord) -> None:
        tags = {**record.tags, f"{TAG}.kind": "trial"}
        run = self._run(record.key, record.name, tags, parent=self.parent_id)
        if (run.status, run.error) == (record.status, record.error) and run.status != "RUNNING":
            return
        if run.status == "FINISHED":
            # the trial's folder was emptied: what it does anew must not stand beside values of before
            self._client.delete_run(run.run_id)  # MLflow keeps it, as deleted
        elif run.status != "RUNNING":
            self._client.update_run(run.run_id, status="RUNNING")  # a failed trial that was taken up again
            if run.error is not None:
                self._client.delete_tag(run.run_id, ERROR)
        if run.status != "RUNNING":
            del self._runs[record.key]  # what it holds was let go when it ended, and is read anew
            run = self._run(record.key, record.name, tags, parent=self.parent_id)
        self._log_params(run, record.params)
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
        for path in record.pictures:
            self._client.log_artifact(run.run_id, str(path), "pictures")
        self._log_tags(run, record.tags)
        if run.tags.get(RUN_NAME) != record.name:
            self._client.update_run(run.run_id, name=record.name)
        if record.data is not None:
            self._client.log_inputs(run.run_id, datasets=[_dataset(record.data)])
        if record.error is not None:
            self._client.set_tag(run.run_id, ERROR, record.error[:LONGEST_VALUE])
        elif run.error is not None:  # of a driver that died as it took the trial up again
            self._client.delete_tag(run.run_id, ERROR)
        run.error = record.error
        self._client.set_terminated(run.run_id, status=record.status)  # last: what is ended is whole
        run.status = record.status
        run.let_go()

    def status(self, key: str) -> tuple[str, str | None] | None:
        """How a run stands, and its error, as far as this mirror knows: cheap, and None before its first sync."""
        run = self._runs.get(key)
        return (run.status, run.error) if run else None

    def link(self) -> str:
        """Where a person finds the sweep: its page on a server; for a database, the command that serves it."""
        if self.uri.startswith("http"):
            return experiment_link(self.uri, self.experiment_id)
        return f"nowcastlab ui --sweep {self.experiment}"

    def _find_experiment(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        if found is None:
            try:
                return self._client.create_experiment(name, artifact_location=artifact_root(self.uri), tags=KIND)
            except MlflowException:  # another sweep was quicker
                found = self._client.get_experiment_by_name(name)
        if found is None or found.lifecycle_stage != "active":
            raise TrackingError(
                f"The MLflow experiment {name!r} was deleted. Restore it with `mlflow experiments restore` (to start "
                "over, delete its runs then, and not the experiment), or give the sweep another name."
            )
        return found.experiment_id

    def _look_around(self, parent: str, identities: Mapping[str, str]) -> None:
        """What is there already, all at once: of a sweep of a thousand trials, one by one, that takes minutes.

        Two designs of one name would be mixed up in one table, and what two folders hold of one name in one run: they
        are refused. Runs that have ended are whole: they are remembered, and nothing more need be asked about them.
        """
        found: dict[str, list[Run]] = defaultdict(list)
        token = None
        while True:
            page = self._client.search_runs([self.experiment_id], max_results=PAGE, page_token=token)
            for run in page:
                key = run.data.tags.get(f"{TAG}.key", "")
                if f"{key}/".startswith(f"{parent}/"):
                    self._refuse_foreign(run)
                identity = identities.get(key)
                there = run.data.tags.get(f"{TAG}.identity", identity)
                if identity is not None and there is not None and there != identity:
                    raise TrackingError(
                        f"{shown(self.uri)} has a run of {key} that was set up otherwise (identity {there[:12]}, this "
                        f"one's {identity[:12]}). Give the sweep another name, or delete that run in the UI."
                    )
                if identity is not None:
                    found[key].append(run)
            token = page.token
            if not token:
                break
        for key, runs in found.items():
            if len(runs) == 1 and runs[0].info.status in ("FINISHED", "FAILED"):
                self._runs[key] = _mirrored(runs[0])
                self._runs[key].let_go()

    def _refuse_foreign(self, run: Run) -> None:
        tags = run.data.tags
        if tags.get(TOKEN) != self._token.get(TOKEN):
            where = tags.get(f"{TAG}.folder", "in another folder")
            raise TrackingError(
                f"{shown(self.uri)} has a run of {tags[f'{TAG}.key']} that belongs to another sweep or search of that "
                f"name ({where}). To go on with that one, put its folder back, or name it (--folder). To keep both, "
                "give this one another name, or another database (MLFLOW_TRACKING_URI). To start over, delete those "
                f"runs in the UI first (`nowcastlab ui --sweep {self.experiment}`)."
            )

    def _find(self, key: str) -> list[Run]:
        """The runs of a key, the oldest first."""
        found = self._client.search_runs([self.experiment_id], filter_string=f"tags.`{TAG}.key` = '{key}'")
        return sorted(found, key=lambda run: (run.info.start_time, run.info.run_id))

    def _run(self, key: str, name: str, tags: Mapping[str, str], *, parent: str | None) -> _MirroredRun:
        if key not in self._runs:
            if not self._find(key):
                self._create(key, name, tags, parent)
            # looked for again even when it was just made: another driver may have made one in the same moment
            run, *others = self._find(key)
            for other in others:
                self._client.delete_run(other.info.run_id)  # MLflow keeps it, as deleted
            self._refuse_foreign(run)  # one from another folder, perhaps, and was quicker
            mirrored = _mirrored(run)
            for metric in run.data.metrics:
                history = self._client.get_metric_history(run.info.run_id, metric)
                mirrored.logged[metric] = {value.step for value in history}
            self._runs[key] = mirrored  # not before all of it is known
        return self._runs[key]

    def _create(self, key: str, name: str, tags: Mapping[str, str], parent: str | None) -> Run:
        every = {**tags, **self._token, f"{TAG}.key": key, **({"mlflow.parentRunId": parent} if parent else {})}
        return self._client.create_run(self.experiment_id, run_name=name, tags=every)

    def _log_params(self, run: _MirroredRun, params: Mapping[str, Any]) -> None:
        fresh = [Param(k, str(v)[:LONGEST_VALUE]) for k, v in params.items() if k not in run.params]
        for first in range(0, len(fresh), 100):
            self._client.log_batch(run.run_id, params=fresh[first : first + 100])
        run.params |= set(params)

    def _log_tags(self, run: _MirroredRun, tags: Mapping[str, str]) -> None:
        changed = [RunTag(k, v[:LONGEST_VALUE]) for k, v in tags.items() if run.tags.get(k) != v]
        for first in range(0, len(changed), 100):
            self._client.log_batch(run.run_id, tags=changed[first : first + 100])


@dataclass(kw_only=True)
class _MirroredRun:
    run_id: str
    status: str
    error: str | None
    params: set[str]
    tags: dict[str, str]
    logged: dict[str, set[int]]

    def let_go(self) -> None:
        """Of what only a run under way needs: a sweep of thousands would keep every step of every trial in memory."""
        self.params.clear()
        self.tags.clear()
        self.logged.clear()


def _mirrored(run: Run) -> _MirroredRun:
    """But for the steps it holds, each metric of which is a question of its own."""
    return _MirroredRun(
        run_id=run.info.run_id,
        status=run.info.status,
        error=run.data.tags.get(ERROR),
        params=set(run.data.params),
        tags=dict(run.data.tags),
        logged=defaultdict(set),
    )


def _values(record: TrialRecord) -> list[tuple[int, str, float]]:
    values = [
        (int(entry["step"]), name, value) for entry in record.history for name, value in entry.items() if name != "step"
    ]
    values += [(step, name, value) for name, curve in record.curves.items() for step, value in curve.items()]
    return values


def _dataset(data: Data) -> DatasetInput:
    dataset = Dataset(name=data.name, digest=data.digest[:LONGEST_DIGEST], source_type="nowcastlab", source=data.source)
    return DatasetInput(dataset=dataset, tags=[InputTag("mlflow.data.context", "test")])
