"""The plan: what is counted, and that nothing large is tried to find out."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from nowcastlab.config import mnist_config, radar_config
from nowcastlab.store import open_store
from nowcastlab.sweep import DIGITS, OFFLINE, ONLINE, Arm, Radar, Sweep
from nowcastlab.sweep.plan import ArmPlan, _Cost, _trial_seconds, as_text, plan_arms, wall_seconds

TINY = {"data.size": 16, "data.count": 1, "data.valid_sequences": 6}


def digits_sweep(scale: str = "demo", **changes: object) -> Sweep:
    config = mnist_config("traj-l2", digits="sklearn-digits", scale=scale, max_steps=10, validate_every=4, **changes)
    arm = Arm(name="Traj-L2", config=config, settings=(DIGITS,))
    return Sweep(name="s", question="?", scale=scale, arms=[arm], test_sequences=20)


def test_a_trial_is_its_updates_its_validations_and_its_tests() -> None:
    sweep = digits_sweep(**TINY)
    (arm,) = sweep.arms
    assert arm.config is not None
    cost = _Cost(update_s=1.0, forecast_s=0.1, measured=True)
    # 10 updates; validations at 4, 8 and 10, of 6 sequences; 20 test sequences
    assert _trial_seconds(arm, arm.config, cost, sweep) == pytest.approx(10 + 3 * 6 * 0.1 + 20 * 0.1)


def test_online_adds_an_update_of_one_window_for_each(tiny_store: Path) -> None:
    config = radar_config("convgru", store=str(tiny_store), max_steps=10, validate_every=10, batch_size=2)
    radar = Radar(store=str(tiny_store), digest=open_store(str(tiny_store)).digest, limit=4)
    sweep = Sweep(
        name="s",
        question="?",
        scale="demo",
        arms=[Arm(name="a", config=config), Arm(name="b", config=config, settings=(OFFLINE, ONLINE))],
        radar=radar,
    )
    cost = _Cost(update_s=1.0, forecast_s=0.1, measured=True)
    offline, both = (_trial_seconds(arm, config, cost, sweep) for arm in sweep.arms)
    assert both - offline == pytest.approx(4 * (0.1 + 1.0 / 2))


def test_trials_take_the_first_place_that_is_free() -> None:
    plans = [
        ArmPlan(name="long", parameters=1, trials=2, seconds=10.0),
        ArmPlan(name="short", parameters=1, trials=2, seconds=1.0),
    ]
    # long 0-10 | short 0-1, long 1-11; short 10-11
    assert wall_seconds(plans, at_once=2) == 11.0
    assert wall_seconds(plans, at_once=1) == 22.0


def test_small_arms_are_timed_and_what_is_finished_is_not() -> None:
    sweep = digits_sweep(**TINY)
    (timed,) = plan_arms(sweep, sweep.trials)
    assert timed.measured
    assert timed.seconds > 0
    (done,) = plan_arms(sweep, [])
    assert (done.trials, done.seconds) == (0, 0.0)
    assert done.parameters == timed.parameters


def test_the_papers_networks_are_told_from_counted_operations() -> None:
    sweep = digits_sweep("paper")
    (plan,) = plan_arms(sweep, sweep.trials)
    assert not plan.measured
    assert "~" in as_text([plan], at_once=2)


def test_baselines_have_their_test_time(tiny_store: Path) -> None:
    radar = Radar(store=str(tiny_store), digest=open_store(str(tiny_store)).digest)
    sweep = Sweep(name="s", question="?", scale="demo", arms=[Arm(name="ROVER", baseline="rover")], radar=radar)
    (plan,) = plan_arms(sweep, sweep.trials)
    assert (plan.parameters, plan.trials) == (0, 1)
    assert plan.seconds > 0


def test_planning_leaves_the_number_of_threads_as_it_was() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        sweep = digits_sweep(**TINY)
        plan_arms(sweep, [])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
