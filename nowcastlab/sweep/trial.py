"""One trial, start to end, in a folder of its own: train, test, and say so. Knows neither Ray nor MLflow.

    config.json, history.jsonl, checkpoints/    training's
    scores-offline.npz, scores-online.npz       per sequence, lead and threshold; or scores-digits.npz
    online/                                     checkpoints of an online run under way
    examples.npz                                a few forecasts to look at
    environment.txt                             where it ran, and with which versions of what
    attempts.jsonl, clock.json                  who took it up, where they went on; how long all of them worked
    result.json                                 written last: the trial is finished, or failed and why

Called again it goes on with what is missing. The result is the same to the bit, whatever happened on the way (on a GPU
for all but TrajGRU, whose gradient torch adds up there in no fixed order).
"""

from __future__ import annotations

import errno
import hashlib
import json
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nowcastlab.config import DigitsData
from nowcastlab.errors import NowcastlabError
from nowcastlab.models import Forecaster, build
from nowcastlab.protocol import (
    Examples,
    FineTuning,
    digit_examples,
    digits_test,
    evaluate_digits,
    evaluate_offline,
    evaluate_online,
    radar_examples,
    save_examples,
)
from nowcastlab.protocol.examples import KEPT
from nowcastlab.skill import SequenceScores, load_scores, save_scores, summarize
from nowcastlab.store.local_copy import open_anew, open_once
from nowcastlab.sweep.attempts import Report, attempt
from nowcastlab.sweep.design import DIGITS, ONLINE, Trial
from nowcastlab.sweep.environment import environment_facts, environment_text
from nowcastlab.sweep.stopwatch import Stopwatch
from nowcastlab.training import build_model, load_trained, train
from nowcastlab.training.checkpoints import STATE, Checkpoints
from nowcastlab.training.machine import computing, pick_device
from nowcastlab.whole_files import whole_file, write_atomically

RESULT = "result.json"
EXAMPLES = "examples.npz"
ENVIRONMENT = "environment.txt"
FINISHED, FAILED = "finished", "failed"
PRUNED = "pruned"  # of a search: told to stop, because others did better


def run_trial(
    trial: Trial, folder: Path, report: Report = lambda metrics: None, stop: Callable[[], bool] = lambda: False
) -> dict[str, Any]:
    """Do what is missing of a trial. One that goes wrong on its own has a result too: failed, and why; the next sweep
    tries it anew. What is the machine's doing (no space, no memory, a file that cannot be read) is raised: the trial
    may be taken up again, here or elsewhere. `stop` is asked after every update; a trial that it stops is pruned, and
    not tested.
    """
    done = read_result(folder)
    if done is not None and done["identity"] == trial.identity and done["status"] in (FINISHED, PRUNED):
        return done
    with attempt(folder, report) as report, Stopwatch(folder) as stopwatch:
        facts: dict[str, str] = {}
        try:
            facts = environment_facts(trial.config.device if trial.config else "cpu")
            outcome = _outcome(trial, folder, report, stop)
        except Exception as error:
            open_anew()
            if _is_the_machines(error):
                raise
            outcome = {"status": FAILED, "error": told(error), "expected": isinstance(error, NowcastlabError)}
        whose = {"identity": trial.identity, "key": trial.key}
        result = {**whose, **outcome, "seconds": stopwatch.seconds, "environment": facts}
        if facts:
            write_atomically(folder / ENVIRONMENT, environment_text(facts).encode())
        write_atomically(folder / RESULT, json.dumps(result, indent=1).encode())
    return result


def _outcome(trial: Trial, folder: Path, report: Report, stop: Callable[[], bool]) -> dict[str, Any]:
    if trial.config is not None:
        trained = train(trial.config, report, folder=folder, stop=stop)
        if not trained.finished:
            return {"status": PRUNED, "step": trained.step, "parameters": _parameters(trial)}
    scores = {setting: _tested(trial, setting, folder) for setting in trial.settings}
    if trial.settings and not (folder / EXAMPLES).exists():
        save_examples(folder / EXAMPLES, _examples(trial, folder))
    return {"status": FINISHED, "parameters": _parameters(trial), "scores": scores, "weights": _weights(folder)}


def no_space(error: BaseException) -> bool:
    """Whether it comes down to a full disk, which trying again will not mend."""
    return any(isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT) for cause in _causes(error))


def _is_the_machines(error: Exception) -> bool:
    """Whether the same trial may well succeed at another time or place."""
    return any(isinstance(cause, OSError | MemoryError | torch.OutOfMemoryError) for cause in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from: a checkpoint that cannot be written is a TrainingError, from an OSError."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def told(error: Exception) -> str:
    """An error in a line; of one that nobody expected, where it came from too."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, NowcastlabError):
        return text
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{text} (in {place.name}, {place.filename}:{place.lineno})"


def read_result(folder: Path) -> dict[str, Any] | None:
    """None for a trial that has not come to its end."""
    path = folder / RESULT
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def scores_path(folder: Path, setting: str) -> Path:
    return folder / f"scores-{setting}.npz"


def _tested(trial: Trial, setting: str, folder: Path) -> dict[str, Any]:
    """The scores of one setting, from its file where that is there already."""
    path = scores_path(folder, setting)
    if setting == DIGITS:
        errors = _digits_errors(trial, folder, path)
        return {"mse": float(errors.mean()), "mse_per_lead": errors.mean(0).tolist(), "sequences": len(errors)}
    scores = load_scores(path) if path.exists() else _benchmark(trial, setting, folder)
    save_scores(path, scores)
    return summarize(scores)


def _benchmark(trial: Trial, setting: str, folder: Path) -> SequenceScores:
    assert trial.radar is not None
    store = open_once(trial.radar.store, trial.radar.digest)
    options: dict[str, Any] = {"split": trial.radar.split, "limit": trial.radar.limit}
    if trial.config is None:
        assert trial.baseline is not None
        return evaluate_offline(build(trial.baseline, "hko7"), store, **options)
    with computing(trial.config) as device:
        model = load_trained(folder, device=device).model
        if setting != ONLINE:
            return evaluate_offline(model, store, device=device, **options)
        tuning = FineTuning(loss=trial.config.loss, loss_scale=trial.config.loss_scale)
        facts = {"trial": trial.identity}
        return evaluate_online(
            model, store, settings=tuning, device=device, folder=folder / ONLINE, facts=facts, **options
        )


def _digits_errors(trial: Trial, folder: Path, path: Path) -> Any:
    if path.exists():
        with np.load(path, allow_pickle=False) as file:
            return file["mse"]
    config = trial.config
    assert config is not None
    assert isinstance(config.data, DigitsData)
    with computing(config) as device:
        model: Forecaster = load_trained(folder, device=device).model
        test = digits_test(config.data, official=trial.official_test, count=trial.test_sequences)
        errors = evaluate_digits(
            model, test, frames_in=config.data.in_frames, leads=config.data.leads, device=pick_device(config.device)
        )
    with whole_file(path) as file:
        np.savez_compressed(file, mse=errors)
    return errors


def _examples(trial: Trial, folder: Path) -> Examples:
    """Windows or sequences that are the same for every arm, forecast as the trial's test was (offline)."""
    if trial.config is None:
        assert trial.baseline is not None
        return _radar_examples(trial, build(trial.baseline, "hko7"), "cpu")
    with computing(trial.config) as device:
        model = load_trained(folder, device=device).model
        data = trial.config.data
        if not isinstance(data, DigitsData):
            return _radar_examples(trial, model, device)
        test = digits_test(data, official=trial.official_test, count=min(KEPT, trial.test_sequences))
        return digit_examples(model, test, frames_in=data.in_frames, leads=data.leads, device=device)


def _radar_examples(trial: Trial, model: Forecaster, device: Any) -> Examples:
    assert trial.radar is not None
    store = open_once(trial.radar.store, trial.radar.digest)
    return radar_examples(model, store, split=trial.radar.split, limit=trial.radar.limit, device=device)


def _weights(folder: Path) -> dict[str, dict[str, str]]:
    """The best and the last weights by reference: where in the trial's folder, and the file's hash."""
    checkpoints = Checkpoints(folder)
    found = {}
    for name, kind in (("best", "best"), ("last", "step")):
        for step in checkpoints.steps(kind)[:1]:
            path = checkpoints.path(kind, step) / STATE
            sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
            found[name] = {"path": str(path.relative_to(folder)), "sha256": sha256}
    return found


def _parameters(trial: Trial) -> int:
    return sum(weight.numel() for weight in build_model(trial.config).parameters()) if trial.config else 0
