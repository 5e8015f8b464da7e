"""What MLflow holds of finished sweeps, for those who make tables of it. Needs no GPU and no store."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Run
from mlflow.exceptions import MlflowException

from nowcastlab.errors import TrackingError
from nowcastlab.protocol.examples import Examples, load_examples
from nowcastlab.skill import SequenceScores, load_scores
from nowcastlab.tracking.backend import reason, shown
from nowcastlab.tracking.mirror import TAG

PAGE = 500
EXAMPLES = "examples.npz"


@dataclass(frozen=True, kw_only=True)
class TrackedTrial:
    """A trial as MLflow has it."""

    run_id: str
    sweep: str
    arm: str
    seed: int
    scale: str
    status: str
    data_digest: str
    code: str
    params: dict[str, str]
    metrics: dict[str, float]
    tags: dict[str, str]

    @property
    def finished(self) -> bool:
        return self.status == "FINISHED"


def sweep_names(client: MlflowClient) -> list[str]:
    """The sweeps that a tracking store knows."""
    return sorted(e.name for e in client.search_experiments() if e.name != "Default")


def read_trials(client: MlflowClient, sweep: str, *, scale: str | None = None) -> list[TrackedTrial]:
    """Every trial of a sweep, by arm and seed; of one scale, where one is named."""
    experiment = client.get_experiment_by_name(sweep)
    if experiment is None:
        known = ", ".join(sweep_names(client)) or "none yet"
        raise TrackingError(f"No sweep {sweep!r} at {shown(client.tracking_uri)}. The sweeps there are: {known}.")
    wanted = f"tags.`{TAG}.kind` = 'trial'" + (f" and tags.scale = '{scale}'" if scale else "")
    runs: list[Run] = []
    token = None
    while True:
        page = client.search_runs([experiment.experiment_id], wanted, max_results=PAGE, page_token=token)
        runs += page
        token = page.token
        if not token:
            break
    return sorted((_trial(run) for run in runs), key=lambda trial: (trial.arm, trial.seed))


def read_scores(client: MlflowClient, trial: TrackedTrial, setting: str) -> SequenceScores:
    """The counts and errors per sequence that a trial left in its run."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = client.download_artifacts(trial.run_id, f"scores-{setting}.npz", folder)
        except (MlflowException, OSError) as error:
            raise TrackingError(
                f"Run {trial.run_id} ({trial.arm}, seed {trial.seed}) has no {setting} scores: {reason(error)}."
            ) from None
        return load_scores(Path(path))


def read_examples(client: MlflowClient, trial: TrackedTrial) -> Examples | None:
    """The forecasts a trial kept to be looked at; None if it kept none."""
    if all(file.path != EXAMPLES for file in client.list_artifacts(trial.run_id)):
        return None
    with tempfile.TemporaryDirectory() as folder:
        return load_examples(client.download_artifacts(trial.run_id, EXAMPLES, folder))


def _trial(run: Run) -> TrackedTrial:
    tags = run.data.tags
    return TrackedTrial(
        run_id=run.info.run_id,
        sweep=tags["sweep"],
        arm=tags["arm"],
        seed=int(tags["seed"]),
        scale=tags["scale"],
        status=run.info.status,
        data_digest=tags[f"{TAG}.data_digest"],
        code=tags[f"{TAG}.code"],
        params=dict(run.data.params),
        metrics=dict(run.data.metrics),
        tags=dict(tags),
    )
