"""What `nowcastlab bench sweep` runs and says; how fast is not for a test."""

from __future__ import annotations

from click.testing import CliRunner

from nowcastlab.bench.sweep import as_text, bare_workers, command, laptop, run_bare, trivial


def test_its_long_trials_are_of_laptop_scale_cut_short() -> None:
    sweep = laptop(2, 150)
    config = sweep.arms[0].config
    assert config is not None
    assert (config.scale, config.max_steps, len(sweep.trials)) == ("laptop", 150, 2)


def test_the_bare_way_runs_every_trial_to_its_end() -> None:
    with bare_workers(1) as pool:
        run_bare(trivial(2, "few"), pool)  # raises unless all finished


def test_both_figures_stand_beside_their_targets() -> None:
    text = as_text(
        {
            "overhead_s_per_trial": 0.42,
            "once_s": 6.0,
            "overhead_percent_at_length": 3.1,
            "length_s": 60.0,
            "length_updates": 150,
            "driver_cpu_percent": 1.0,
            "seconds": {"bare, long": 60.0},
        }
    )
    assert "0.42 s    (at most 1.5 s wanted), and 6.0 s once a sweep" in text
    assert "3.1 %    (at most 5 % wanted), with trials of 60 s (150 updates)" in text


def test_as_many_trials_as_the_few_are_refused_before_anything_is_timed() -> None:
    """The overhead of a trial is told from the difference between many and few: there must be one."""
    result = CliRunner().invoke(command, ["--trials", "4"])
    assert result.exit_code == 2
    assert "--trials 4: here, with" in result.output
