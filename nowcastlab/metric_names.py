"""What a run's numbers are called, in its history and in MLflow: for those who write them and those who read them.

    train/loss, valid/score, valid/csi/r0.5     as a network learns, by update
    test/mse                                    the score of moving digits
    offline/bmse, online/csi/r0.5               of radar: an error; a skill, 0.5 mm/h and more counting as rain
    test/by_lead/mse, offline/by_lead/csi/r0.5  the same by lead: the step is the lead, in minutes for radar
    seconds                                     that a trial took, training and testing

Databases are full of these names: one that is changed here is not found in any run made before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

TRAIN_LOSS = "train/loss"
VALID = "valid"
VALID_SCORE = f"{VALID}/score"  # the one that decides, and is to fall
VALID_BEST_STEP = f"{VALID}/best_step"
SECONDS = "seconds"

# Of the scores that `nowcastlab.skill` knows, those of a radar run; the others are in its file of scores.
ERRORS = ("bmse", "bmae", "mse", "mae")
SKILL = ("csi", "hss", "pod", "far")


def score_name(score: str, threshold_mmh: float | None = None) -> str:
    """`bmse`, or with a threshold `csi/r0.5`."""
    return score if threshold_mmh is None else f"{score}/r{threshold_mmh:g}"


def metric_name(setting: str, score: str, threshold_mmh: float | None = None) -> str:
    """`offline/bmse`, `offline/csi/r0.5`."""
    return f"{setting}/{score_name(score, threshold_mmh)}"


def by_lead_name(setting: str, score: str, threshold_mmh: float | None = None) -> str:
    """`offline/by_lead/bmse`, `offline/by_lead/csi/r0.5`."""
    return f"{setting}/by_lead/{score_name(score, threshold_mmh)}"


def parse_metric(name: str) -> tuple[str, str, float | None]:
    """The setting, score and threshold that `metric_name` made a name of."""
    setting, _, score = name.partition("/")
    score, _, rate = score.partition("/r")
    return setting, score, float(rate) if rate else None


DIGITS_MSE, DIGITS_MSE_BY_LEAD = metric_name("test", "mse"), by_lead_name("test", "mse")
# One that every run tested in a setting has, whatever rain it saw; better lower.
MAIN_SCORE = {
    "digits": DIGITS_MSE,
    "offline": metric_name("offline", "bmse"),
    "online": metric_name("online", "bmse"),
}


def radar_metrics(setting: str, summary: Mapping[str, Any], *, skill: Iterable[str] = SKILL) -> dict[str, float]:
    """What `nowcastlab.skill.summarize` gives, by name. A threshold that never occurred has no score."""
    metrics: dict[str, float] = {metric_name(setting, score): summary[score] for score in ERRORS}
    for score in skill:
        for threshold, value in zip(summary["thresholds_mmh"], summary[score], strict=True):
            if value is not None:
                metrics[metric_name(setting, score, threshold)] = value
    return metrics
