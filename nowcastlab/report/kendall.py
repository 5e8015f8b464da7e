"""Kendall's tau between errors and skill over runs: the paper's table 5, its own numbers below.

A point is a run in one setting. The paper says "based on the evaluation results" and not over which; the rows of its
table 3 do not give its taus.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nowcastlab.errors import ReportError
from nowcastlab.metric_names import metric_name, score_name
from nowcastlab.report.collect import Collection
from nowcastlab.report.findings import Findings
from nowcastlab.report.paper import ERRATA, KENDALL
from nowcastlab.report.table import Column, Content, Entry, Row, Section, Table, provenance
from nowcastlab.significance import Tau, kendall, kendall_gain
from nowcastlab.units import THRESHOLDS_MMH

ERRORS = {"MSE": "mse", "MAE": "mae", "B-MSE": "bmse", "B-MAE": "bmae"}
SKILLS = tuple((name, rate) for name in ("csi", "hss") for rate in THRESHOLDS_MMH)


class Points:
    """Every run in every setting: its arm and its scores."""

    def __init__(self, collection: Collection) -> None:
        if collection.kind != "radar":
            raise ReportError("Moving digits have no skill scores. Give a radar sweep: --sweep hko7-benchmark.")
        its = [
            (arm, setting, trial)
            for arm, trials in collection.arms.items()
            for setting in collection.settings(arm)
            for trial in trials
        ]
        self.arms = [arm for arm, _, _ in its]
        self.run_ids = tuple(dict.fromkeys(trial.run_id for _, _, trial in its))
        self._metrics = [(setting, trial.metrics) for _, setting, trial in its]

    def __call__(self, score: str, threshold_mmh: float | None = None) -> NDArray[np.float64] | None:
        """None where a run lacks it: a threshold that was never observed."""
        values = [metrics.get(metric_name(setting, score, threshold_mmh)) for setting, metrics in self._metrics]
        return None if None in values else np.array(values, np.float64)

    @property
    def n(self) -> str:
        return f"{len(self.arms)} points ({len(self.run_ids)} runs, by setting) of {len(set(self.arms))} arms"


def kendall_table(findings: Findings) -> Table:
    """Table 5: each error with each skill score, these runs' above the paper's."""
    points = Points(findings.collection)
    columns = tuple(
        Column(title=f"{name.upper()} {rate:g}", metric=score_name(name, rate), decimals=2, group=name.upper(),
               short=f"r >= {rate:g}")
        for name, rate in SKILLS
    )  # fmt: skip
    ours = tuple(
        Row(title=title, cells=tuple(_entry(points, ERRORS[title], *skill) for skill in SKILLS)) for title in ERRORS
    )
    paper = tuple(
        Row(title=title, cells=tuple(Entry(text=f"{tau:.2f}", value=tau) for tau in KENDALL[title])) for title in ERRORS
    )
    return Table(
        title="Kendall's tau between errors and skill scores",
        name="kendall",
        corner="Errors",
        columns=columns,
        sections=(Section(title="These runs", rows=ours), Section(title="Shi et al. 2017", rows=paper)),
        second=False,
        marks=findings.standing.marks,
        notes=(
            *provenance(findings.collection)[:1],
            f"Over {points.n}. -1: a lower error always goes with a higher skill. An interval for each tau leaves out "
            "one arm at a time; --explain and --format json give it.",
            *ERRATA["kendall"],
        ),
    )


def tracking_gains(findings: Findings) -> dict[str, Tau]:
    """By how much B-MSE tracks the skill scores more closely than MSE, and B-MAE than MAE: mean gain in |tau|. A skill
    that is the same in every run, as CSI where nobody forecasts heavy rain, cannot be tracked and is left out."""
    points = Points(findings.collection)
    known = [values for name, rate in SKILLS if (values := points(name, rate)) is not None]
    skills = [values for values in known if np.ptp(values) > 0]
    gains = {}
    for balanced, plain in (("B-MSE", "MSE"), ("B-MAE", "MAE")):
        one, other = points(ERRORS[balanced]), points(ERRORS[plain])
        if one is None or other is None or not skills:
            raise ReportError(f"These runs have no {plain} or no skill scores, so their correlation is not known.")
        gains[f"{balanced} over {plain}"] = kendall_gain(one, other, np.stack(skills), points.arms)
    return gains


def _entry(points: Points, error: str, skill: str, threshold_mmh: float) -> Content:
    x, y = points(error), points(skill, threshold_mmh)
    if x is None or y is None:
        return None
    tau = kendall(x, y, points.arms)
    facts: dict[str, Any] = {"low": tau.low, "high": tau.high, "n": f"{tau.runs} points of {tau.arms} arms"}
    if not np.isfinite(tau.tau):
        return Entry(text="no data", facts={**facts, "why": "all runs have the same score"}, run_ids=points.run_ids)
    return Entry(text=f"{tau.tau:.2f}", value=tau.tau, facts=facts, run_ids=points.run_ids)
