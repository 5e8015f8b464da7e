"""From MLflow's runs to the values of a table, refusing what must not stand in one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nowcastlab.errors import ReportError
from nowcastlab.tracking import TrackedTrial


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A mean over seeds, and where it came from."""

    values: tuple[float, ...]  # one a seed
    seeds: tuple[int, ...]
    run_ids: tuple[str, ...]

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def std(self) -> float | None:
        """Over seeds, with n - 1 in the denominator; None for one value."""
        return float(np.std(self.values, ddof=1)) if self.n > 1 else None


@dataclass(frozen=True, kw_only=True)
class Collection:
    """The trials of one sweep at one scale, on one data set, by one version of the code."""

    sweep: str
    scale: str
    data_digest: str
    code: str
    arms: dict[str, tuple[TrackedTrial, ...]]  # by seed

    def cell(self, arm: str, metric: str) -> Cell | None:
        """None where the arm has no such score: a setting it was not tested in, a threshold that never occurred."""
        trials = [trial for trial in self.arms[arm] if metric in trial.metrics]
        if not trials:
            return None
        if len(trials) < len(self.arms[arm]):
            lacking = [str(trial.seed) for trial in self.arms[arm] if metric not in trial.metrics]
            raise ReportError(f"{arm} has no {metric} for seed {', '.join(lacking)}: a mean would hide it.")
        return Cell(
            values=tuple(trial.metrics[metric] for trial in trials),
            seeds=tuple(trial.seed for trial in trials),
            run_ids=tuple(trial.run_id for trial in trials),
        )


def collect(trials: Sequence[TrackedTrial]) -> Collection:
    """One table's worth of trials, or a ReportError with the list of what does not go together."""
    if not trials:
        raise ReportError("No runs to report on. Run a sweep first, as `python sweeps/links_vs_kernel.py`.")
    for what, name in (
        ("sweeps", "sweep"),
        ("scales", "scale"),
        ("data sets", "data_digest"),
        ("versions of the code", "code"),
    ):
        found: dict[str, list[str]] = defaultdict(list)
        for trial in trials:
            found[getattr(trial, name)].append(f"{trial.arm} seed {trial.seed}")
        if len(found) > 1:
            listed = "; ".join(f"{value[:16]}: {', '.join(who[:4])}" for value, who in found.items())
            raise ReportError(f"These runs are of {len(found)} {what}, and one table must not mix them: {listed}.")
    by_arm: dict[str, list[TrackedTrial]] = defaultdict(list)
    for trial in trials:
        by_arm[trial.arm].append(trial)
    for arm, its in by_arm.items():
        seeds = [trial.seed for trial in its]
        if len(set(seeds)) < len(seeds):
            raise ReportError(f"{arm} has a seed twice ({seeds}). Delete one of the runs in MLflow.")
    unfinished = [f"{trial.arm} seed {trial.seed} ({trial.status})" for trial in trials if not trial.finished]
    if unfinished:
        raise ReportError(
            f"{len(unfinished)} of {len(trials)} trials have not finished: {', '.join(unfinished[:6])}. "
            "Run the sweep's command again; it does what is missing."
        )
    first = trials[0]
    return Collection(
        sweep=first.sweep,
        scale=first.scale,
        data_digest=first.data_digest,
        code=first.code,
        arms={arm: tuple(sorted(its, key=lambda trial: trial.seed)) for arm, its in by_arm.items()},
    )
