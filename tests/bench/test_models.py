"""`nowcastlab bench models`: what it measures, on networks small enough for a test, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from click.testing import CliRunner

from nowcastlab.bench.models import PAPER_TRAINING, Case, command, measure, peak_gib
from nowcastlab.bench.timing import Timing
from nowcastlab.config import RadarData
from nowcastlab.config.presets import _mnist_recipe, _radar_recipe
from nowcastlab.errors import ConfigError


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--checkpointing"], "--checkpointing is measured in memory: add --memory"),
        (["--dataset", "hko7", "--small"], "--small is of moving digits, and --dataset is hko7"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(options: list[str], text: str) -> None:
    result = CliRunner().invoke(command, options)
    assert result.exit_code == 2
    assert text in result.output


@pytest.mark.parametrize("options", [[], ["--no-small"]])
def test_radar_is_measured_without_small_networks_unasked(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []
    monkeypatch.setattr(
        "nowcastlab.bench.models.report_memory", lambda cases, **_: measured.extend(case.title for case in cases)
    )
    result = CliRunner().invoke(command, ["--dataset", "hko7", "--batch", "1", "--memory", *options])
    assert result.exit_code == 0, result.output
    assert measured == ["trajgru, batch 1", "convgru, batch 1"]


def clocked(monkeypatch: pytest.MonkeyPatch, **seconds: tuple[float, float]) -> list[str]:
    """Every contender is run once, and found to have taken these wall and CPU seconds in each of two rounds."""
    run: list[str] = []

    def interleave(contenders: dict[str, Callable[[], object]], *, rounds: int) -> dict[str, Timing]:
        timings = {}
        for name, work in contenders.items():
            work()
            run.append(name)
            wall, cpu = seconds[name.partition(" ")[0]]
            timings[name] = Timing(wall_s=[wall] * rounds, cpu_s=[cpu] * rounds)
        return timings

    monkeypatch.setattr("nowcastlab.bench.timing.interleave", interleave)
    return run


def test_a_recurrent_network_is_measured_beside_the_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    run = clocked(monkeypatch, ours=(0.5, 0.4), reference=(0.7, 0.8), products=(0.2, 0.1))
    cost = measure(Case(name="traj-l13", scale="demo", batch=2), rounds=2, with_reference=True)
    assert run == ["ours", "products (MKL)", "products (oneDNN)", "reference"]
    assert cost.ratio_to_reference == pytest.approx(0.4 / 0.8)
    assert cost.step_ms == pytest.approx(500)
    assert cost.frames_per_second == pytest.approx(2 * 20 / 0.5)
    assert cost.share_of_product_rate == pytest.approx(cost.step_gflops / 0.4 / (3 * 2 * 1.536**3 / 0.1))
    assert cost.paper_hours is None  # it is not the paper's size


def test_a_cnn_is_measured_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    run = clocked(monkeypatch, ours=(0.5, 0.4), products=(0.2, 0.1))
    cost = measure(Case(name="conv2d", scale="demo"), rounds=2, with_reference=True)
    assert run == ["ours", "products (MKL)", "products (oneDNN)"]
    assert cost.ratio_to_reference is None
    assert cost.step_gflops > 0


def test_steps_are_taken_in_turn_and_timed() -> None:
    cost = measure(Case(name="traj-l13", scale="demo"), rounds=1, with_reference=True)
    assert cost.ratio_to_reference is not None
    assert cost.frames_per_second == pytest.approx(20 / (cost.step_ms / 1e3))


def test_hours_are_of_the_papers_own_batch_and_updates() -> None:
    radar = RadarData(store="hko7.zarr", digest="d", height=480, width=480, interval_minutes=6)
    for cnn in (False, True):
        recipes = {"mnist": _mnist_recipe(cnn, "paper"), "hko7": _radar_recipe(cnn, "paper", "b-mse+b-mae", radar)}
        for dataset, recipe in recipes.items():
            assert PAPER_TRAINING[dataset, cnn] == (recipe["batch_size"], recipe["max_steps"])


def test_memory_is_that_of_a_process_which_takes_a_step() -> None:
    demo, laptop = (
        peak_gib(Case(name="traj-l13", scale=scale), threads=1, reference=False) for scale in ("demo", "laptop")
    )
    assert 0.1 < demo < laptop < 3


def test_a_step_takes_no_more_memory_than_the_plain_one() -> None:
    case = Case(name="traj-l13", width=32, batch=4)
    ours, plain = (peak_gib(case, threads=1, reference=reference) for reference in (False, True))
    assert ours < plain


def test_a_baseline_has_no_step_to_measure() -> None:
    with pytest.raises(ConfigError, match="rover has nothing to train"):
        measure(Case(name="rover"), rounds=1, with_reference=False)
