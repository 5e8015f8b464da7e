"""What each arm cost and what it got for it, and which arms no other one beats in both."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nowcastlab.metric_names import MAIN_SCORE, SECONDS
from nowcastlab.report.collect import Cell, Collection


@dataclass(frozen=True, kw_only=True)
class CostRow:
    arm: str
    setting: str
    hours: Cell | None  # of one trial, training and testing; None where it was not recorded
    parameters: int | None
    flops: int | None  # of one forecast; None for a method without a network, or where the config is not at hand
    score: Cell  # mean squared error of digits, B-MSE of radar: lower is better
    metric: str
    front: tuple[str, ...]  # of "hours", "parameters" and "flops": against which no arm is both cheaper and better


def cost_rows(collection: Collection) -> tuple[CostRow, ...]:
    """Every arm in every setting, in the collection's order. The front is drawn within a setting."""
    flops = {arm: arm_flops(collection, arm) for arm in collection.arms}
    rows = []
    for setting, metric in MAIN_SCORE.items():
        its = [
            _row(collection, arm, setting, metric, flops[arm])
            for arm in collection.arms
            if setting in collection.settings(arm)
        ]
        rows += [_marked(row, its) for row in its]
    return tuple(rows)


def arm_flops(collection: Collection, arm: str) -> int | None:
    """Of one forecast, counted from the arm's own config as the sweep recorded it."""
    record = collection.record
    plain = next((t for t in record.trials.values() if t["arm"] == arm), None) if record else None
    if plain is None or not plain.get("config"):
        return None
    from nowcastlab.config import TrainConfig
    from nowcastlab.models.flops import count_flops
    from nowcastlab.training import build_model

    config = TrainConfig.from_plain(plain["config"])
    data = config.data
    return count_flops(
        build_model(config), frames=data.in_frames, leads=data.leads, height=data.height, width=data.width
    )


def _row(collection: Collection, arm: str, setting: str, metric: str, flops: int | None) -> CostRow:
    seconds = collection.cell(arm, SECONDS)
    hours = seconds and Cell(
        values=tuple(value / 3600 for value in seconds.values), seeds=seconds.seeds, run_ids=seconds.run_ids
    )
    score = collection.cell(arm, metric)
    assert score is not None
    parameters = collection.arms[arm][0].params.get("parameters")
    return CostRow(
        arm=arm,
        setting=setting,
        hours=hours,
        parameters=int(parameters) if parameters is not None else None,
        flops=flops,
        score=score,
        metric=metric,
        front=(),
    )


def _marked(row: CostRow, rows: list[CostRow]) -> CostRow:
    front = tuple(kind for kind in ("hours", "parameters", "flops") if _on_front(row, rows, kind))
    return replace(row, front=front)


def _on_front(row: CostRow, rows: list[CostRow], kind: str) -> bool:
    """Nobody is at least as good and at least as cheap, and better in one of them."""
    mine = cost_of(row, kind)
    if mine is None:
        return False
    for other in rows:
        theirs = cost_of(other, kind)
        if theirs is None or theirs > mine or other.score.mean > row.score.mean:
            continue
        if theirs < mine or other.score.mean < row.score.mean:
            return False
    return True


def cost_of(row: CostRow, kind: str) -> float | None:
    if kind == "hours":
        return row.hours.mean if row.hours else None
    return row.parameters if kind == "parameters" else row.flops
