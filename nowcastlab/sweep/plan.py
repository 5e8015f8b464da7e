"""What a sweep will cost on this machine, told before it is spent.

Each arm's training step is timed at its own batch size, on one thread, in CPU seconds: other work on the machine does
not count. A step that would take long or much memory, as at the paper's scale, is told from its counted operations and
the speed of a convolution here, and marked with a ~.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from nowcastlab.config import TrainConfig
from nowcastlab.models import Forecaster, build
from nowcastlab.models.flops import count_flops
from nowcastlab.protocol import HKO7
from nowcastlab.store import open_store
from nowcastlab.sweep.design import DIGITS, ONLINE, Arm, Radar, Sweep, Trial
from nowcastlab.training import build_model
from nowcastlab.training.machine import threads

REPEATS = 3
PATIENCE_S = 0.4  # with the steps of one arm, after the first
LARGEST_STEP = 3e10  # operations, a second or two of one core: larger steps are not tried
SURELY_SMALL = 1e12  # if every weight were used at every pixel: then the operations need not be counted first
BACKWARD = 3  # a forward and a backward pass are three times the operations of a forward pass


@dataclass(frozen=True, kw_only=True)
class ArmPlan:
    name: str
    parameters: int
    trials: int
    seconds: float  # of one trial, on one core
    measured: bool = True  # or told from counted operations


def plan_arms(sweep: Sweep, missing: list[Trial]) -> list[ArmPlan]:
    """Each arm with its size and the time a trial takes here: training, validation and tests."""
    with threads(1):
        return [_plan(arm, sum(trial.arm == arm.name for trial in missing), sweep) for arm in sweep.arms]


def wall_seconds(plans: Sequence[ArmPlan], at_once: float) -> float:
    """Until the last trial ends: seed by seed, each trial to the first place that is free."""
    places = [0.0] * max(1, int(at_once))
    for seed in range(max((plan.trials for plan in plans), default=0)):
        for plan in plans:
            if seed < plan.trials:
                heapq.heapreplace(places, places[0] + plan.seconds)
    return max(places)


def as_text(plans: list[ArmPlan], at_once: float | None) -> str:
    """A line an arm, and the whole: None at once is for trials that will run on something other than these cores."""
    width = max(len(plan.name) for plan in plans)
    lines = [f"  {'':<{width}}  {'parameters':>12}  {'trials':>6}  {'a trial':>8}"]
    for plan in plans:
        parameters = f"{plan.parameters:,}" if plan.parameters else "-"
        each = f"{'' if plan.measured else '~'}{duration(plan.seconds)}" if plan.trials else "-"
        lines.append(f"  {plan.name:<{width}}  {parameters:>12}  {plan.trials:>6}  {each:>8}")
    if at_once is None:
        lines.append("  on one core of this machine; `nowcastlab plan` estimates GPUs and clusters")
    else:
        total = wall_seconds(plans, at_once)
        lines.append(f"  about {duration(total)} here, {at_once:g} at a time, if nothing else runs")
    return "\n".join(lines)


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{math.ceil(seconds / 86_400)} days"


def _plan(arm: Arm, trials: int, sweep: Sweep) -> ArmPlan:
    if arm.config is None:
        assert sweep.radar is not None
        seconds = _baseline_seconds(arm, sweep.radar) if trials else 0.0
        return ArmPlan(name=arm.name, parameters=0, trials=trials, seconds=seconds)
    model = build_model(arm.config)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    if not trials:
        return ArmPlan(name=arm.name, parameters=parameters, trials=0, seconds=0.0)
    cost = _cost(model, arm.config)
    return ArmPlan(
        name=arm.name,
        parameters=parameters,
        trials=trials,
        seconds=_trial_seconds(arm, arm.config, cost, sweep),
        measured=cost.measured,
    )


@dataclass(frozen=True, kw_only=True)
class _Cost:
    update_s: float  # of a batch
    forecast_s: float  # of one sequence
    measured: bool


def _trial_seconds(arm: Arm, config: TrainConfig, cost: _Cost, sweep: Sweep) -> float:
    validations = -(-config.max_steps // config.validate_every)
    seconds = config.max_steps * cost.update_s + validations * _valid_sequences(config) * cost.forecast_s
    for setting in arm.settings:
        tested = sweep.test_sequences if setting == DIGITS else _windows(sweep.radar)
        seconds += tested * cost.forecast_s
        if setting == ONLINE:  # an update a window, of that window alone
            seconds += tested * cost.update_s / config.batch_size
    return seconds


def _valid_sequences(config: TrainConfig) -> int:
    data = config.data
    if data.kind == "digits":
        return data.valid_sequences  # type: ignore[union-attr]
    limit = data.valid_windows  # type: ignore[union-attr]
    if limit is not None:
        return limit
    return len(HKO7.sequences(open_store(data.store), "valid"))  # type: ignore[union-attr]


@lru_cache
def _windows(radar: Radar | None) -> int:
    assert radar is not None
    return len(HKO7.sequences(open_store(radar.store), radar.split).first(radar.limit))


def _cost(model: Forecaster, config: TrainConfig) -> _Cost:
    data, batch = config.data, config.batch_size
    weights = sum(parameter.numel() for parameter in model.parameters())
    if 2 * BACKWARD * weights * data.frames * data.height * data.width * batch > SURELY_SMALL:
        forward = count_flops(model, frames=data.in_frames, leads=data.leads, height=data.height, width=data.width)
        if BACKWARD * forward * batch > LARGEST_STEP:
            forecast_s = forward / _operations_per_s()
            return _Cost(update_s=BACKWARD * forecast_s * batch, forecast_s=forecast_s, measured=False)
    frames = torch.rand(batch, data.in_frames, data.height, data.width, generator=torch.Generator().manual_seed(0))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-9, fused=True)

    def update() -> None:
        optimiser.zero_grad()
        model(frames, data.leads).square().mean().backward()
        optimiser.step()

    model.train()
    update_s = _seconds(update)
    return _Cost(
        update_s=update_s, forecast_s=_seconds(lambda: model.predict(frames, leads=data.leads)) / batch, measured=True
    )


def _baseline_seconds(arm: Arm, radar: Radar) -> float:
    assert arm.baseline is not None
    model, grid = build(arm.baseline, "hko7"), open_store(radar.store).grid
    frames = torch.rand(1, HKO7.frames_in, *grid, generator=torch.Generator().manual_seed(0))
    valid = torch.ones(frames.shape, dtype=torch.bool)
    return _windows(radar) * _seconds(lambda: model.predict(frames, valid, leads=HKO7.leads))


def _seconds(work: Callable[[], object]) -> float:
    """CPU seconds of a call, the first one, which compiles what is compiled, left out."""
    work()
    taken: list[float] = []
    while len(taken) < REPEATS and sum(taken) < PATIENCE_S:
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)  # what else runs can only make it slower


@lru_cache
def _operations_per_s() -> float:
    """Of one core here, forward and backward through a convolution of the paper's middle size."""
    layer = torch.nn.Conv2d(64, 96, 3, padding=1)
    field = torch.rand(4, 64, 32, 32, requires_grad=True)
    operations = 3 * 2 * 64 * 96 * 9 * 4 * 32 * 32
    return operations / _seconds(lambda: layer(field).square().sum().backward())
