"""What a sweep will cost on this machine, told before it is spent."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import torch

from nowcastlab.sweep.design import Arm, Sweep, Trial
from nowcastlab.training import build_model

BACKWARD = 3.0  # a training step takes about three times its forward pass


@dataclass(frozen=True, kw_only=True)
class ArmPlan:
    name: str
    parameters: int
    trials: int
    seconds: float  # of one trial, on one core


def plan_arms(sweep: Sweep, missing: list[Trial]) -> list[ArmPlan]:
    """Each arm with its size and the time a trial takes here, from one forward pass on one thread.

    Indicative: it leaves out validation and testing, and a machine that is busy.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [_plan(arm, sum(trial.arm == arm.name for trial in missing)) for arm in sweep.arms]
    finally:
        torch.set_num_threads(threads)


def wall_seconds(plans: list[ArmPlan], at_once: float) -> float:
    """Until the last trial ends, with so many at once."""
    work = sum(plan.seconds * plan.trials for plan in plans)
    longest = max((plan.seconds for plan in plans if plan.trials), default=0.0)
    return max(work / at_once, longest)


def as_text(plans: list[ArmPlan], at_once: float) -> str:
    width = max(len(plan.name) for plan in plans)
    lines = [f"  {'':<{width}}  {'parameters':>12}  {'trials':>6}  {'a trial':>8}"]
    for plan in plans:
        lines.append(
            f"  {plan.name:<{width}}  {plan.parameters or '-':>12,}  {plan.trials:>6}  {duration(plan.seconds):>8}"
            if plan.parameters
            else f"  {plan.name:<{width}}  {'-':>12}  {plan.trials:>6}  {'-':>8}"
        )
    total = wall_seconds(plans, at_once)
    lines.append(f"  about {duration(total)} here, {at_once:g} at a time, testing not counted")
    return "\n".join(lines)


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{math.ceil(seconds / 86_400)} days"


def _plan(arm: Arm, trials: int) -> ArmPlan:
    if arm.config is None:
        return ArmPlan(name=arm.name, parameters=0, trials=trials, seconds=0.0)
    config = arm.config
    model = build_model(config).eval()
    frames = torch.zeros(1, config.data.in_frames, config.data.height, config.data.width)
    with torch.inference_mode():
        model(frames, config.data.leads)  # compiles what is compiled
        began = time.perf_counter()
        model(frames, config.data.leads)
        forward = time.perf_counter() - began
    seconds = forward * BACKWARD * config.batch_size * config.max_steps
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return ArmPlan(name=arm.name, parameters=parameters, trials=trials, seconds=seconds)
