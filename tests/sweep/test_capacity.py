"""Hours, cost and what runs short, worked out by hand beside the table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nowcastlab.sweep.capacity import Assumptions, TrialWork, loads, outlook, trial_seconds

# 3.6e15 FLOPs at 1 TFLOP/s is an hour
HOUR = TrialWork(
    key="a-s1",
    flops=3.6e15,
    updates=1000,
    frames=100_000,
    checkpoint_bytes=10_000_000,
    checkpoints=10,
    tracked_values=3600,
)
GIVEN = Assumptions(
    tflops=1.0,
    price_per_hour=2.0,
    head_price_per_hour=0.5,
    boot_minutes=0,
    idle_minutes=0,
    interruptions_per_hour=0,
    store_gb=0,
    store_gb_per_s=1.0,
    tracked_values_per_s=10.0,
)


@pytest.mark.parametrize(("gpus", "hours"), [(1, 4), (2, 2), (3, 2), (4, 1), (1000, 1)])
def test_equal_trials_go_in_rounds(gpus: int, hours: float) -> None:
    row = outlook([HOUR] * 4, gpus, GIVEN)
    assert row.hours == pytest.approx(hours)
    assert row.cost == pytest.approx(4 * 2.0 + hours * 0.5)  # four GPU hours, and the head as long as it takes


def test_more_gpus_than_trials_are_never_used() -> None:
    assert outlook([HOUR] * 4, 1000, GIVEN).used == 4


def test_a_long_trial_alone_decides_the_end() -> None:
    row = outlook([replace(HOUR, flops=10 * HOUR.flops), HOUR, HOUR], 3, GIVEN)
    assert row.hours == pytest.approx(10)
    assert row.bottleneck == "the longest trial"


def test_an_interruption_costs_half_a_checkpoints_distance_and_a_start() -> None:
    given = replace(GIVEN, interruptions_per_hour=1, boot_minutes=10)
    assert trial_seconds(HOUR, given) == pytest.approx(3600 + 360 / 2 + 600)


def test_machines_are_paid_while_they_start_and_idle() -> None:
    row = outlook([HOUR], 1, replace(GIVEN, boot_minutes=30, idle_minutes=15, head_price_per_hour=0))
    assert row.cost == pytest.approx(1.75 * 2.0)
    assert row.gpu_busy == pytest.approx(1 / 1.75)


def test_loads_grow_with_the_trials_at_once() -> None:
    storage, tracking = loads([HOUR] * 8, 5, GIVEN)
    assert storage == pytest.approx(5 * 100e6 / 3600 / 1e9)  # ten checkpoints of 10 MB an hour each
    assert tracking == pytest.approx(5 * 1 / 10)  # a value a second each, of ten


def test_what_runs_short_is_named() -> None:
    assert outlook([HOUR] * 100, 5, GIVEN).bottleneck == "GPU"
    assert outlook([HOUR] * 100, 9, GIVEN).bottleneck == "tracking"
    assert outlook([HOUR] * 100, 50, replace(GIVEN, store_gb=4000, tracked_values_per_s=1e6)).bottleneck == "storage"
