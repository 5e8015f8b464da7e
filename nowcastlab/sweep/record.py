"""A trial's folder in MLflow's terms: what its run is called, filtered and grouped by, and what it holds.

    train/loss, offline/csi/r0.5, ...   its numbers, as nowcastlab.metric_names has them: curves by update, from
                                        history.jsonl; final scores, one value each; the same scores by lead
    examples.npz, scores-*.npz          what reports are made of
    pictures/forecast.png, links.png    what a person looks at
    environment.txt, config.json        what it ran with

Weights stay where they are: the tags `weights.best` and `weights.last` say where, and the hash to know them by.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nowcastlab import __version__
from nowcastlab.metric_names import DIGITS_MSE, DIGITS_MSE_BY_LEAD, ERRORS, SECONDS, by_lead_name, radar_metrics
from nowcastlab.protocol import load_examples
from nowcastlab.skill import load_scores, summarize
from nowcastlab.sweep.design import DIGITS, Trial
from nowcastlab.sweep.environment import CHANGED
from nowcastlab.sweep.facts import protocol_of
from nowcastlab.sweep.trial import ENVIRONMENT, EXAMPLES, FAILED, FINISHED, PRUNED, read_result, scores_path
from nowcastlab.tracking import Data, TrialRecord
from nowcastlab.training import read_history
from nowcastlab.whole_files import whole_file

SKILL_BY_LEAD = ("csi", "hss")


def key_of(trial: Trial) -> str:
    """Names a trial's run for good."""
    return f"{trial.sweep}/{trial.scale}/{trial.key}"


def result_of(folder: Path, failed: str | None = None) -> dict[str, Any]:
    """How a trial ended, empty for one that has not. `failed`: why, where it could not write that down itself."""
    return read_result(folder) or ({} if failed is None else {"status": FAILED, "error": failed})


def status_of(result: Mapping[str, Any], *, unfinished: str) -> str:
    """MLflow's word for how a trial stands."""
    if not result:
        return unfinished
    return "FAILED" if result["status"] == FAILED else "FINISHED"


def record_of(
    trial: Trial, folder: Path, *, code_version: str, unfinished: str, failed: str | None = None
) -> TrialRecord:
    """What a trial's folder says at this moment; `failed` as in `result_of`. `code_version` is the driver's, for a
    trial that does not say yet with which it ran."""
    result = result_of(folder, failed)
    done = result if result.get("status") == FINISHED else None
    trouble: dict[str, str] = {}
    files = [folder / name for name in ("config.json", "history.jsonl", EXAMPLES, ENVIRONMENT)]
    files += [scores_path(folder, setting) for setting in trial.settings]
    return TrialRecord(
        key=key_of(trial),
        name=f"{trial.arm} s{trial.seed}{' (pruned)' if result.get('status') == PRUNED else ''}",
        params=_params(trial, result),
        history=read_history(folder),
        curves=_curves(folder, done) if done else {},
        artifacts=[path for path in files if path.is_file()],
        pictures=draw_pictures(folder, trouble) if done else [],
        data=_data(trial),
        tags={**_tags(trial, folder, code_version, result), **trouble},  # after the pictures, whose trouble they tell
        status=status_of(result, unfinished=unfinished),
        error=result.get("error"),
    )


def draw_pictures(folder: Path, trouble: dict[str, str]) -> list[Path]:
    """The pictures of a finished trial, drawn once and kept in its folder. What goes wrong is told in `trouble`."""
    from nowcastlab.figures.examples import examples_picture, links_picture

    source, forecast, links = folder / EXAMPLES, folder / "pictures" / "forecast.png", folder / "pictures" / "links.png"
    if source.is_file() and not forecast.is_file():
        try:
            forecast.parent.mkdir(exist_ok=True)
            examples = load_examples(source)
            if examples.links is not None:
                links_picture(examples).save(links)
            with whole_file(forecast) as file:  # last: where it is, both are
                examples_picture(examples).save(file, format="PNG")
        except Exception as error:
            # whatever it is, a picture is never worth a run without its scores
            trouble["nowcastlab.pictures"] = f"not drawn: {type(error).__name__}: {error}"
    return [path for path in (forecast, links) if path.is_file()]


def _params(trial: Trial, result: dict[str, Any]) -> dict[str, Any]:
    config: dict[str, Any] = trial.config.to_plain() if trial.config else {"model": trial.baseline}
    data, overrides = config.pop("data", {}), config.pop("overrides", {})
    return {
        "arm": trial.arm,
        "seed": trial.seed,
        **({"parameters": result["parameters"]} if "parameters" in result else {}),
        **{name: value for name, value in config.items() if name not in ("seed", "device", "version")},
        **{f"model.{name}": _short(value) for name, value in overrides.items()},
        **{f"data.{name}": value for name, value in data.items() if name != "store"},
    }


def _short(value: Any) -> Any:
    """(8, 12, 12) reads better in a column than [8, 12, 12] does, and the same on every layer as one number."""
    if isinstance(value, list):
        return value[0] if len(set(map(str, value))) == 1 else ", ".join(map(str, value))
    return value


def _tags(trial: Trial, folder: Path, code_version: str, result: dict[str, Any]) -> dict[str, str]:
    facts = result.get("environment", {})
    code = facts.get("code", code_version)
    tags = {
        "sweep": trial.sweep,
        "arm": trial.arm,
        "seed": str(trial.seed),
        "scale": trial.scale,
        "model": trial.config.model if trial.config else trial.baseline or "",
        "settings": "+".join(trial.settings),
        "outcome": result.get("status", "unfinished"),
        **{name: facts[name] for name in ("device", "torch") if name in facts},
        "nowcastlab.identity": trial.identity,
        "nowcastlab.data_digest": _digest(trial),
        "nowcastlab.protocol": protocol_of(trial),
        "nowcastlab.code": code,
        "nowcastlab.version": __version__,
        **{f"nowcastlab.{name}": facts[name] for name in ("python", "machine", "platform") if name in facts},
        "nowcastlab.folder": str(folder.resolve()),
        # the UI's own columns
        "mlflow.source.name": Path(sys.argv[0]).name or "nowcastlab",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": code.removesuffix(CHANGED),
    }
    for which, weights in result.get("weights", {}).items():
        tags[f"weights.{which}"] = str((folder / weights["path"]).resolve())
        tags[f"weights.{which}.sha256"] = weights["sha256"]
    return tags


def _curves(folder: Path, result: dict[str, Any]) -> dict[str, dict[int, float]]:
    curves: dict[str, dict[int, float]] = {SECONDS: {0: result["seconds"]}}
    for setting, scores in result["scores"].items():
        if setting == DIGITS:
            curves[DIGITS_MSE] = {0: scores["mse"]}
            curves[DIGITS_MSE_BY_LEAD] = {i + 1: value for i, value in enumerate(scores["mse_per_lead"])}
        else:
            curves |= _radar_curves(setting, summarize(load_scores(scores_path(folder, setting)), by_lead=True))
    return curves


def _radar_curves(setting: str, scores: dict[str, Any]) -> dict[str, dict[int, float]]:
    """A lead at which a threshold never occurred has no score."""
    by_lead = {by_lead_name(setting, score): scores["per_lead"][score] for score in ERRORS}
    for score in SKILL_BY_LEAD:
        for j, threshold in enumerate(scores["thresholds_mmh"]):
            by_lead[by_lead_name(setting, score, threshold)] = [row[j] for row in scores["per_lead"][score]]
    curves = {name: {0: value} for name, value in radar_metrics(setting, scores).items()}
    leads = [round(minutes) for minutes in scores["lead_minutes"]]
    for name, values in by_lead.items():
        curve = {lead: value for lead, value in zip(leads, values, strict=True) if value is not None}
        if curve:
            curves[name] = curve
    return curves


def _data(trial: Trial) -> Data:
    if trial.radar is not None:
        return Data(name=Path(trial.radar.store).name, digest=trial.radar.digest, source=trial.radar.store)
    assert trial.config is not None
    data = trial.config.to_plain()["data"]
    if data["kind"] == "radar":
        return Data(name=Path(data["store"]).name, digest=data["digest"], source=data["store"])
    return Data(name=f"moving {data['digits']}", digest=data["digest"], source=json.dumps(data))


def _digest(trial: Trial) -> str:
    if trial.radar is not None:
        return trial.radar.digest
    assert trial.config is not None
    return trial.config.data.digest
