"""What a sweep was asked to do, and what its trials on moving digits scored, as MLflow holds them."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from mlflow import MlflowClient
from mlflow.entities import Run
from mlflow.exceptions import MlflowException
from numpy.typing import NDArray

from nowcastlab.errors import TrackingError
from nowcastlab.tracking.backend import reason
from nowcastlab.tracking.mirror import TAG
from nowcastlab.tracking.reading import TrackedTrial

Client = MlflowClient  # for those who hand one on without knowing MLflow
SWEEP, STORE = "sweep.json", "store.json"


@dataclass(frozen=True, kw_only=True)
class SweepRecord:
    """The parent run of a sweep at one scale. `plain` is `Sweep.to_plain()`, on record since before its first trial;
    `store` what its radar store is, empty for moving digits and for sweeps that did not record it."""

    run_id: str
    status: str
    scale: str
    plain: Mapping[str, Any] = field(default_factory=dict)
    store: Mapping[str, Any] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        return self.status == "FINISHED"

    @property
    def comparisons(self) -> list[tuple[str, str]]:
        """Named before the first trial; the first arm of a pair is expected to be better."""
        return [(a, b) for a, b in self.plain.get("comparisons", [])]

    @property
    def seeds(self) -> list[list[int]]:
        """Those it was begun with, then what was added each time; empty for sweeps that did not record it."""
        return self.plain.get("seeds", [])

    @property
    def trials(self) -> Mapping[str, Mapping[str, Any]]:
        """Every trial asked for, by its key (arm and seed)."""
        return self.plain.get("trials", {})


def read_sweep_records(client: MlflowClient, sweep: str, *, scale: str | None = None) -> list[SweepRecord]:
    """One for each scale at which a sweep was begun; of one scale, where one is named."""
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")  # a bar for each file of a kilobyte
    experiment = client.get_experiment_by_name(sweep)
    if experiment is None:
        return []
    wanted = f"tags.`{TAG}.kind` = 'sweep'" + (f" and tags.scale = '{scale}'" if scale else "")
    runs: Sequence[Run] = client.search_runs([experiment.experiment_id], wanted)
    return sorted((_record(client, run) for run in runs), key=lambda record: (record.scale, record.run_id))


def read_digits_errors(client: MlflowClient, trial: TrackedTrial) -> NDArray[np.float64]:
    """The squared errors (sequence, lead) that a trial on moving digits left in its run."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = client.download_artifacts(trial.run_id, "scores-digits.npz", folder)
            with np.load(path, allow_pickle=False) as file:
                return np.asarray(file["mse"], np.float64)
        except (MlflowException, OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise TrackingError(
                f"Run {trial.run_id} ({trial.arm}, seed {trial.seed}) has no digits scores: {reason(error)}."
            ) from None


def _record(client: MlflowClient, run: Run) -> SweepRecord:
    names = {item.path for item in client.list_artifacts(run.info.run_id)}
    plain, store = (_json(client, run, name) if name in names else {} for name in (SWEEP, STORE))
    return SweepRecord(
        run_id=run.info.run_id, status=run.info.status, scale=run.data.tags["scale"], plain=plain, store=store
    )


def _json(client: MlflowClient, run: Run, name: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        try:
            return dict(json.loads(Path(client.download_artifacts(run.info.run_id, name, folder)).read_bytes()))
        except (MlflowException, OSError, ValueError) as error:
            raise TrackingError(f"Run {run.info.run_id}: its {name} cannot be read: {reason(error)}.") from None
