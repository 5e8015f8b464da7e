"""From MLflow's runs to the values of a table, refusing what must not stand in one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nowcastlab.errors import ReportError
from nowcastlab.metric_names import DIGITS_MSE, MAIN_SCORE
from nowcastlab.tracking import TrackedTrial
from nowcastlab.tracking.sweep_record import SweepRecord

SHOWN = 8  # trials named in a message
SETTINGS = ("offline", "online", "digits")
SCALES = "scales"  # the one mixture that an option takes apart
VERSIONS = "versions of the code"
PROTOCOL = "nowcastlab.protocol"  # the tag in which a run says how it was tested


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
    """The trials of one sweep at one scale, on one data set, tested one way, by one version of the code."""

    sweep: str
    scale: str
    data_digest: str
    code: str
    arms: dict[str, tuple[TrackedTrial, ...]]  # by seed
    record: SweepRecord | None = None

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

    @property
    def kind(self) -> str:
        """radar or digits."""
        return "digits" if any(DIGITS_MSE in t.metrics for trials in self.arms.values() for t in trials) else "radar"

    @property
    def digits(self) -> str | None:
        """Which handwriting the moving digits are made of."""
        return next((trials[0].params.get("data.digits") for trials in self.arms.values()), None)

    @property
    def official_digits(self) -> bool:
        """Whether the moving digits they were tested on are the authors' own, by the words of the runs' protocol."""
        return all(" official test sequences " in t.tags.get(PROTOCOL, "") for its in self.arms.values() for t in its)

    @property
    def synthetic(self) -> bool | None:
        """Whether the radar store is made up; None where that was not recorded. Digits are what the paper's are."""
        if self.kind == "digits":
            return False
        store = self.record.store if self.record else {}
        return bool(store["synthetic"]) if "synthetic" in store else None

    @property
    def comparisons(self) -> list[tuple[str, str]]:
        """The pairs the sweep named before it ran, of arms that are here."""
        named = self.record.comparisons if self.record else []
        return [pair for pair in named if all(arm in self.arms for arm in pair)]

    def settings(self, arm: str) -> tuple[str, ...]:
        """How an arm was tested."""
        metrics = self.arms[arm][0].metrics
        return tuple(setting for setting in SETTINGS if MAIN_SCORE[setting] in metrics)

    def deterministic(self, arm: str) -> bool:
        """A baseline: it has nothing that a seed could change."""
        return int(self.arms[arm][0].params.get("parameters", 1)) == 0


def collect(trials: Sequence[TrackedTrial], record: SweepRecord | None = None) -> Collection:
    """One table's worth of trials, or a ReportError with the list of what does not go together.

    With the sweep's `record`, trials that were asked for and never begun are noticed too.
    """
    if not trials:
        raise ReportError("No runs to report on. Run a sweep first, as `python sweeps/links_vs_kernel.py`.")
    for what, value in _MUST_AGREE.items():
        _refuse_mixture(trials, what, value)
    by_arm: dict[str, list[TrackedTrial]] = defaultdict(list)
    for trial in sorted(trials, key=lambda trial: (trial.arm, trial.seed, trial.run_id)):
        by_arm[trial.arm].append(trial)
    for arm, its in by_arm.items():
        seeds = [trial.seed for trial in its]
        if len(set(seeds)) < len(seeds):
            runs = ", ".join(f"seed {trial.seed} run {trial.run_id}" for trial in its)
            raise ReportError(f"{arm} has a seed twice ({seeds}): {runs}. Delete one of the runs in MLflow.")
    _refuse_unfinished(trials, record)
    first = trials[0]
    return Collection(
        sweep=first.sweep,
        scale=first.scale,
        data_digest=first.data_digest,
        code=first.code,
        arms={arm: tuple(its) for arm, its in by_arm.items()},
        record=record,
    )


_MUST_AGREE: dict[str, Callable[[TrackedTrial], str]] = {
    "sweeps": lambda trial: trial.sweep,
    SCALES: lambda trial: trial.scale,
    "data sets": lambda trial: trial.data_digest,
    "sets of digits": lambda trial: f"{trial.params.get('data.digits', '')} {trial.params.get('data.preset', '')}",
    "protocols": lambda trial: trial.tags.get(PROTOCOL, ""),
    VERSIONS: lambda trial: trial.code,
}


def _refuse_mixture(trials: Sequence[TrackedTrial], what: str, value: Callable[[TrackedTrial], str]) -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for trial in trials:
        found[value(trial)].append(f"{trial.arm} seed {trial.seed}")
    if len(found) > 1:
        listed = "; ".join(f"{_short(value)}: {_some(who)}" for value, who in sorted(found.items()))
        choice = ""
        if what == SCALES:
            choice = f" Choose one: {' or '.join(f'--scale {scale}' for scale in sorted(found))}."
        if what == VERSIONS:
            choice = (
                " Have all of one version: delete the folders of the others' trials, and run the sweep's command with "
                "that version checked out; it does what is missing."
            )
        raise ReportError(f"These runs are of {len(found)} {what}, and one table must not mix them: {listed}.{choice}")


def _refuse_unfinished(trials: Sequence[TrackedTrial], record: SweepRecord | None) -> None:
    unfinished = [f"{trial.arm} seed {trial.seed} ({trial.status})" for trial in trials if not trial.finished]
    unfinished += [f"{trial.arm} seed {trial.seed} (pruned)" for trial in trials if _pruned(trial)]
    asked = record.trials if record else {}
    begun = {f"{trial.arm}-s{trial.seed}" for trial in trials}
    unfinished += [
        f"{plain['arm']} seed {plain['seed']} (not begun)" for key, plain in asked.items() if key not in begun
    ]
    if unfinished:
        total = len(begun | asked.keys())
        raise ReportError(
            f"{len(unfinished)} of {total} trials have not finished: {_some(sorted(unfinished))}. "
            "Run the sweep's command again; it does what is missing."
        )
    if record and not record.finished:
        raise ReportError(
            f"The sweep itself has not finished ({record.status}), so trials may be missing. "
            "Run the sweep's command again; it does what is missing."
        )


def _pruned(trial: TrackedTrial) -> bool:
    """Stopped early by a search: MLflow calls that finished."""
    return trial.finished and trial.tags.get("outcome") == "pruned"


def _short(value: str) -> str:
    """A digest by its beginning, and whether what it is of was changed; words as they are."""
    digest, plus, changed = value.partition("+")
    return (digest[:16] + plus + changed if len(value) >= 40 and " " not in value else value.strip()) or "not recorded"


def _some(names: Sequence[str]) -> str:
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
