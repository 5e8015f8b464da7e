"""Workers and drivers killed with kill -9, and Ctrl-C."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

from faults import Driver, folder_of, small_sweep, steps_done, uri_of, violations

from nowcastlab.sweep.attempts import read_attempts
from nowcastlab.tracking import connect


def test_a_killed_worker_is_replaced(tmp_path: Path, undisturbed: Path, ray_address: str) -> None:
    driver = Driver(tmp_path, ray_address)
    driver.wait_until(lambda: steps_done(tmp_path) >= 5)
    attempts = [line for trial in small_sweep().trials for line in read_attempts(folder_of(tmp_path, trial.key))]
    os.kill(attempts[-1]["pid"], signal.SIGKILL)
    driver.wait()
    again = [line for trial in small_sweep().trials for line in read_attempts(folder_of(tmp_path, trial.key))]
    assert len(again) > len(small_sweep().trials)  # the kill met a trial, and it was taken up again
    assert not violations(tmp_path, undisturbed)


def test_a_driver_killed_at_ten_moments_is_taken_up_by_the_same_command(
    tmp_path: Path, undisturbed: Path, ray_address: str
) -> None:
    """A driver that was quicker than its killer has finished its sweep, as it must; the next kills are of another."""
    rng = random.Random(20170612)
    kills, sweeps = 0, [tmp_path / "sweep-1"]
    while kills < 10:
        root = sweeps[-1]
        driver = Driver(root, ray_address)
        if rng.random() < 0.3:  # while it starts: meeting MLflow, Ray, the folders of the driver before
            killed = driver.kill_when(lambda: True, pause=rng.uniform(0, 3))
        else:
            further, pause = steps_done(root) + rng.randint(1, 5), rng.uniform(0, 0.2)
            killed = driver.kill_when(lambda root=root, steps=further: steps_done(root) >= steps, pause=pause)
        kills += killed
        if not killed:
            driver.wait()
            sweeps.append(tmp_path / f"sweep-{len(sweeps) + 1}")
    Driver(sweeps[-1], ray_address).wait()
    for root in sweeps:
        assert not violations(root, undisturbed)


def test_ctrl_c_leaves_a_sweep_that_goes_on_and_says_so(tmp_path: Path, undisturbed: Path, ray_address: str) -> None:
    driver = Driver(tmp_path, ray_address)
    driver.wait_until(lambda: steps_done(tmp_path) >= 8)
    driver.interrupt()
    assert "trials to go; the same command goes on" in driver.wait(130)
    client = connect(uri_of(tmp_path))
    experiment = client.get_experiment_by_name("small")
    assert "RUNNING" not in {run.info.status for run in client.search_runs([experiment.experiment_id])}
    Driver(tmp_path, ray_address).wait()
    assert not violations(tmp_path, undisturbed)
