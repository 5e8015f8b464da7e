"""What `nowcastlab bench sweep` runs and says; how fast is not for a test."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from nowcastlab.bench.sweep import (
    as_text,
    bare_workers,
    command,
    laptop,
    laptop_updates,
    overheads,
    run_bare,
    trivial,
)


def test_its_long_trials_are_of_laptop_scale_cut_short() -> None:
    sweep = laptop(2, 150)
    config = sweep.arms[0].config
    assert config is not None
    assert (config.scale, config.max_steps, len(sweep.trials)) == ("laptop", 150, 2)


def test_the_bare_way_runs_every_trial_to_its_end() -> None:
    with bare_workers(1) as pool:
        run_bare(trivial(2, "few"), pool)  # raises unless all finished


def test_what_a_sweep_costs_once_is_told_apart_from_what_trials_and_updates_add() -> None:
    """Two at a time: 5 s once, 0.5 s a trial and 2% of every update, put into made-up times and got out again."""
    trials, places, steps = 24, 2, 300
    bare = {"many": 12 * 1.0, "few": 4 * 1.0, "long": 10 + 300 * 0.2, "short": 10 + 100 * 0.2}
    swept = {
        "many": bare["many"] + 5 + 12 * 0.5,
        "few": bare["few"] + 5 + 4 * 0.5,
        "long": bare["long"] + 5 + 0.5 + 0.02 * 60,
        "short": bare["short"] + 5 + 0.5 + 0.02 * 20,
    }
    seconds = {f"bare, {n}": s for n, s in bare.items()} | {f"sweep, {n}": s for n, s in swept.items()}
    found = overheads(seconds, trials=trials, steps=steps, places=places)
    assert found["overhead_s_per_trial"] == pytest.approx(0.5)
    assert found["once_s"] == pytest.approx(5)
    assert found["overhead_percent_of_updates"] == pytest.approx(2)
    whole = 10 + laptop_updates() * 0.2
    assert found["laptop_trial_s"] == pytest.approx(whole)
    assert found["overhead_percent_of_sweep"] == pytest.approx(2 + 100 * (0.5 / whole + 5 / (15 * whole)))
    text = as_text({**found, "seconds": seconds, "driver_cpu_percent": 1.0})
    assert "0.50 s   (at most 1.5 s wanted), and 5.0 s once a sweep" in text
    assert "(at most 5 % wanted), of 30 trials" in text


def test_as_many_trials_as_the_few_are_refused_before_anything_is_timed() -> None:
    """The overhead of a trial is told from the difference between many and few: there must be one."""
    result = CliRunner().invoke(command, ["--trials", "4"])
    assert result.exit_code == 2
    assert "--trials 4: here, with" in result.output
