"""Where a report's numbers come from: MLflow, or files of scores laid beside it. Both end in a Collection and a loader.

A file of scores is the `.npz` of `nowcastlab.skill.score_file`: counts (sequence, lead, threshold) and errors
(sequence, lead), with each sequence's start and episode. Whoever has the counts of a benchmark run can write one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from nowcastlab.errors import ConfigError, ReportError
from nowcastlab.metric_names import radar_metrics
from nowcastlab.report.collect import Collection, collect
from nowcastlab.report.paper import SEEDLESS
from nowcastlab.significance import EpisodeSums
from nowcastlab.skill import SequenceScores, load_scores, summarize
from nowcastlab.tracking import TrackedTrial, read_scores, read_trials
from nowcastlab.tracking.sweep_record import Client, SweepRecord, read_digits_errors, read_sweep_records

Load = Callable[[TrackedTrial, str], EpisodeSums]  # of a trial and a setting
FIXED = "fixed"  # in the place of a seed: there is none


def from_mlflow(client: Client, sweep: str, *, scale: str | None = None) -> tuple[Collection, Load]:
    """One sweep's runs, checked to belong together, and a way to their scores per sequence."""
    trials = read_trials(client, sweep, scale=scale)
    if not trials and scale is not None:
        others = sorted({trial.scale for trial in read_trials(client, sweep)})
        raise ReportError(
            f"{sweep} has no runs at {scale} scale; it has {' and '.join(others) or 'none at any'}. "
            "Run the sweep with that --scale, or ask for another."
        )
    records = {record.scale: record for record in read_sweep_records(client, sweep, scale=scale)}
    scales = {trial.scale for trial in trials}
    record: SweepRecord | None = records.get(scales.pop()) if len(scales) == 1 else None

    def load(trial: TrackedTrial, setting: str) -> EpisodeSums:
        if setting == "digits":
            return EpisodeSums.from_errors(read_digits_errors(client, trial))
        return EpisodeSums.from_scores(read_scores(client, trial, setting))

    return collect(trials, record), load


@dataclass(frozen=True, kw_only=True)
class ScoreFile:
    """`TrajGRU:1:online=scores.npz`: an arm, its seed (None for a method without) and how it was tested."""

    arm: str
    seed: int | None
    setting: str
    path: Path

    @classmethod
    def parse(cls, text: str) -> ScoreFile:
        """From what a user gives after --scores."""
        label, _, path = text.partition("=")
        arm, *rest = label.split(":")
        settings = [part for part in rest if part in ("offline", "online")]
        seeds = [part for part in rest if part not in settings]
        known = all(seed == FIXED or seed.isdecimal() for seed in seeds)
        if not arm or not path or len(settings) > 1 or len(seeds) > 1 or not known:
            raise ConfigError(
                f"{text!r}: a file of scores is given as ARM:SEED=FILE or ARM:SEED:online=FILE, as in "
                f"TrajGRU:1:online=scores.npz; or as ARM:{FIXED}=FILE, where nothing depends on a seed."
            )
        if not seeds and arm not in SEEDLESS:  # a network taken for a method without seeds would be believed too much
            raise ConfigError(
                f"{text!r}: of which seed? Give it as {arm}:1={path}; or, if nothing in {arm} depends on a seed, as "
                f"{arm}:{FIXED}={path}."
            )
        return cls(
            arm=arm,
            seed=int(seeds[0]) if seeds and seeds[0] != FIXED else None,
            setting=settings[0] if settings else "offline",
            path=Path(path),
        )


Loaded = dict[tuple[str, int], dict[str, tuple[ScoreFile, SequenceScores]]]  # by arm and seed, by setting


def from_files(files: Sequence[ScoreFile]) -> tuple[Collection, Load]:
    """The same from files. An arm's offline and online file of one seed make one trial."""
    both = {file.arm for file in files if file.seed is None} & {file.arm for file in files if file.seed is not None}
    if both:
        raise ReportError(f"{', '.join(sorted(both))}: some files have a seed and some have none. Give one to each.")
    loaded: Loaded = {}
    for file in sorted(files, key=lambda file: (file.arm, file.seed or 0, file.setting)):
        its = loaded.setdefault((file.arm, file.seed or 0), {})
        if file.setting in its:
            raise ReportError(
                f"{file.arm} has its {file.setting} scores twice: {its[file.setting][0].path} and {file.path}. "
                "Give each seed a number of its own, as in TrajGRU:2=FILE."
            )
        its[file.setting] = file, load_scores(file.path)
    _refuse_copies(loaded)
    trials = [_trial(arm, seed, by_setting) for (arm, seed), by_setting in loaded.items()]
    sums = {
        (arm, seed, setting): EpisodeSums.from_scores(scores)
        for (arm, seed), by_setting in loaded.items()
        for setting, (_, scores) in by_setting.items()
    }
    return collect(trials), lambda trial, setting: sums[trial.arm, trial.seed, setting]


def _refuse_copies(loaded: Loaded) -> None:
    """No two seeds of an arm come out the same to the last digit: one of them is the other's file."""
    seen: dict[tuple[str, str, str], ScoreFile] = {}
    for (arm, _), by_setting in loaded.items():
        for setting, (file, scores) in by_setting.items():
            first = seen.setdefault((arm, setting, _digest(scores.arrays().values())), file)
            if first is not file:
                raise ReportError(
                    f"{arm} has the same {setting} scores for seed {first.seed} and seed {file.seed}: {first.path} and "
                    f"{file.path}. Give each seed its own file."
                )


def _trial(arm: str, seed: int, files: dict[str, tuple[ScoreFile, SequenceScores]]) -> TrackedTrial:
    metrics: dict[str, float] = {}
    for setting, (_, scores) in files.items():
        metrics |= radar_metrics(setting, summarize(scores))
    seedless = all(file.seed is None for file, _ in files.values())
    tested = {_tested_on(scores) for _, scores in files.values()}
    if len(tested) > 1:
        raise ReportError(
            f"{arm} seed {seed}: its offline and online scores are of different sequences. Give files of one test set."
        )
    return TrackedTrial(
        run_id=", ".join(str(file.path) for file, _ in files.values()),
        sweep="files of scores",
        arm=arm,
        seed=seed,
        scale="files",
        status="FINISHED",
        data_digest=tested.pop(),
        code="not recorded",
        params={"parameters": "0"} if seedless else {},
        metrics=metrics,
        tags={},
    )


def _tested_on(scores: SequenceScores) -> str:
    """Of the sequences and the rain observed in them: runs with one digest were tested on the same frames."""
    return _digest((scores.start, scores.episode, scores.lead_minutes, scores.thresholds_mmh, scores.tp + scores.fn))


def _digest(arrays: Iterable[NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(str(array.shape).encode() + array.tobytes())
    return digest.hexdigest()
