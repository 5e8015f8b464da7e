"""`nowcastlab bench models`: what it measures, on networks small enough for a test, and what it refuses."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from nowcastlab.bench.models import PAPER_TRAINING, Case, command, cost_of, measure, peak_gib
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


def test_a_recurrent_network_is_measured_beside_the_plain_one_and_a_cnn_alone() -> None:
    recurrent = measure(Case(name="traj-l13", scale="demo"), rounds=1, with_reference=True)
    assert recurrent.ratio_to_reference is not None
    assert recurrent.frames_per_second == pytest.approx(20 / (recurrent.step_ms / 1e3))
    cnn = measure(Case(name="conv2d", scale="demo"), rounds=1, with_reference=True)
    assert cnn.ratio_to_reference is None
    assert cnn.step_gflops > 0


def test_a_cost_is_the_median_of_rounds_each_compared_within_itself() -> None:
    timings = {
        "ours": Timing(wall_s=[0.5, 0.7, 5.0], cpu_s=[0.4, 0.5, 4.0]),
        "reference": Timing(wall_s=[1.0, 1.0, 7.0], cpu_s=[0.8, 2.0, 5.0]),  # ours took 1/2, 1/4 and 4/5 of it
        "products (MKL)": Timing(wall_s=[9.0] * 3, cpu_s=[0.2, 0.1, 0.8]),
        "products (oneDNN)": Timing(wall_s=[9.0] * 3, cpu_s=[0.1, 0.3, 0.9]),
    }
    flops = 3 * 2 * 1536**3  # as many as three products, which took 1/4, 1/5 and 1/5 of our time
    cost = cost_of(Case(name="traj-l13", batch=4), timings, frames=80, flops=flops, cnn=False)
    assert cost.ratio_to_reference == pytest.approx(1 / 2)
    assert cost.share_of_product_rate == pytest.approx(1 / 5)
    assert cost.step_ms == pytest.approx(700)
    assert cost.frames_per_second == pytest.approx(80 / 0.7)
    assert cost.paper_hours == pytest.approx(0.7 * 200_000 / 3600)


@pytest.mark.parametrize(("batch", "scale", "width"), [(1, "paper", 0), (4, "demo", 0), (4, "paper", 8)])
def test_hours_are_told_of_nothing_but_the_papers_size(batch: int, scale: str, width: int) -> None:
    timings = {name: Timing(wall_s=[1.0], cpu_s=[1.0]) for name in ("ours", "products (MKL)", "products (oneDNN)")}
    case = Case(name="traj-l13", batch=batch, scale=scale, width=width)
    assert cost_of(case, timings, frames=20, flops=1, cnn=False).paper_hours is None


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


@pytest.mark.parametrize("name", ["traj-l13", "conv-k5-d1", "convlstm"])
def test_a_step_takes_no_more_memory_than_the_plain_one(name: str) -> None:
    case = Case(name=name, width=32, batch=16)  # of which far more is kept than what the allocator leaves in holes
    ours, plain = (peak_gib(case, threads=1, reference=reference) for reference in (False, True))
    assert ours < plain


def test_a_baseline_has_no_step_to_measure() -> None:
    with pytest.raises(ConfigError, match="rover has nothing to train"):
        measure(Case(name="rover"), rounds=1, with_reference=False)
