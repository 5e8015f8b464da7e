"""What every forecaster keeps to, whatever it is: one suite, run on every name `build` knows.

Networks are narrow here (their names, layers, kernels and strides are the paper's); the sizes are in test_zoo.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nowcastlab.errors import ConfigError
from nowcastlab.models import BASELINES, Forecaster, build, names, spec_of
from nowcastlab.models.overrides import encoder_strides
from nowcastlab.models.spec import CnnSpec
from nowcastlab.models.zoo import SETTINGS

CASES = [(name, dataset) for dataset in SETTINGS for name in names(dataset)]
NETWORKS = [case for case in CASES if case[0] not in BASELINES]
RECURRENT = [case for case in NETWORKS if not isinstance(spec_of(*case), CnnSpec)]
CNNS = [case for case in NETWORKS if case not in RECURRENT]
ANY_LEADS = [case for case in CASES if case not in CNNS]


def narrow(name: str, dataset: str, *, seed: int = 0) -> Forecaster:
    spec = spec_of(name, dataset)
    sizes: dict[str, Any] = {}
    if isinstance(spec, CnnSpec):
        sizes = {"base_filters": 2}
    elif spec is not None:
        sizes = {"filters": (4, 6, 6), "stem_filters": 3, "flow_filters": 4}
    return build(name, dataset, seed=seed, **sizes)


def unit(name: str, dataset: str) -> int:
    """The smallest grid: what the strides come to. A baseline takes any."""
    spec = spec_of(name, dataset)
    return math.prod(encoder_strides(spec)) if spec else 16


def leads_of(name: str, dataset: str) -> int:
    """As few as the model allows."""
    spec = spec_of(name, dataset)
    return spec.out_frames if isinstance(spec, CnnSpec) else 3


def frames_for(name: str, dataset: str, *, batch: int = 2, rows: int = 1, columns: int = 1, seed: int = 7) -> Tensor:
    side = unit(name, dataset)
    shape = (batch, SETTINGS[dataset].in_frames, side * rows, side * columns)
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def digest_of_prediction(name: str, dataset: str) -> str:
    forecast = narrow(name, dataset, seed=3).predict(frames_for(name, dataset), leads=leads_of(name, dataset))
    return hashlib.sha256(forecast.numpy().tobytes()).hexdigest()


@pytest.mark.parametrize(("name", "dataset"), CASES)
@pytest.mark.parametrize(("batch", "rows", "columns"), [(1, 1, 2), (2, 2, 1)])
def test_any_batch_on_any_grid_its_strides_divide(name: str, dataset: str, batch: int, rows: int, columns: int) -> None:
    frames = frames_for(name, dataset, batch=batch, rows=rows, columns=columns)
    leads = leads_of(name, dataset)
    forecast = narrow(name, dataset)(frames, leads)
    assert forecast.shape == (batch, leads, *frames.shape[2:])
    assert forecast.isfinite().all()


@pytest.mark.parametrize(("name", "dataset"), CASES)
def test_a_sequence_is_forecast_alone_as_it_is_in_a_batch(name: str, dataset: str) -> None:
    model, frames, leads = narrow(name, dataset), frames_for(name, dataset), leads_of(name, dataset)
    together = model.predict(frames, leads=leads)
    alone = torch.cat([model.predict(sequence[None], leads=leads) for sequence in frames])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "dataset"), ANY_LEADS)
def test_more_leads_continue_the_forecast_and_do_not_change_it(name: str, dataset: str) -> None:
    model, frames = narrow(name, dataset), frames_for(name, dataset)
    longer, shorter = model.predict(frames, leads=7), model.predict(frames, leads=1)
    assert longer.shape[1] == 7
    torch.testing.assert_close(longer[:, :1], shorter, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "dataset"), RECURRENT)
def test_a_recurrent_network_takes_any_number_of_input_frames(name: str, dataset: str) -> None:
    frames = frames_for(name, dataset)
    assert narrow(name, dataset)(frames[:, :2], 2).shape == (2, 2, *frames.shape[2:])


@pytest.mark.parametrize(("name", "dataset"), CNNS)
def test_a_cnn_says_which_frame_counts_it_was_built_for(name: str, dataset: str) -> None:
    model, frames, leads = narrow(name, dataset), frames_for(name, dataset), leads_of(name, dataset)
    with pytest.raises(ConfigError, match=rf"{frames.shape[1]} frames into {leads} .* asked for {leads + 1}"):
        model(frames, leads + 1)
    with pytest.raises(ConfigError, match=f"given {frames.shape[1] - 1} frames"):
        model(frames[:, 1:], leads)


@pytest.mark.parametrize(("name", "dataset"), CASES)
def test_bfloat16_autocast_is_near_float32(name: str, dataset: str) -> None:
    model, frames, leads = narrow(name, dataset), frames_for(name, dataset), leads_of(name, dataset)
    exact = model.predict(frames, leads=leads)
    with torch.autocast("cpu", torch.bfloat16):
        coarse = model.predict(frames, leads=leads)
    assert coarse.dtype == exact.dtype == torch.float32
    torch.testing.assert_close(coarse, exact, rtol=0.1, atol=0.1)


def gradient_step(model: Forecaster, frames: Tensor, leads: int, *, autocast: bool = False) -> None:
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        forecast = model(frames, leads)
    (forecast.float() - frames[:, :1]).square().mean().backward()


@pytest.mark.parametrize(("name", "dataset"), NETWORKS)
def test_every_parameter_has_a_finite_gradient_after_two_steps(name: str, dataset: str) -> None:
    """Two, because TrajGRU's last flow layer starts at zero and lets no gradient past it in the first.

    A coarsest grid of one pixel has nowhere to look, so recurrent networks get 2x2 there, and four frames.
    """
    model, leads, frames = narrow(name, dataset), leads_of(name, dataset), frames_for(name, dataset)
    if (name, dataset) in RECURRENT:
        frames = frames_for(name, dataset, rows=2, columns=2)[:, :4]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, betas=(0.5, 0.999))
    for _ in range(2):
        optimizer.zero_grad()
        gradient_step(model, frames, leads)
        optimizer.step()
    parameters = dict(model.named_parameters())
    for key, parameter in parameters.items():
        assert parameter.grad is not None, key
        assert parameter.grad.isfinite().all(), key
        # batch norm takes away what a bias before it adds: that gradient is zero, or rounding
        normed = key.replace("conv.bias", "norm.weight") in parameters
        assert parameter.grad.any() or normed, key


@pytest.mark.parametrize(("name", "dataset"), NETWORKS)
def test_gradients_are_finite_under_bfloat16_autocast(name: str, dataset: str) -> None:
    model, frames = narrow(name, dataset), frames_for(name, dataset)
    gradient_step(model, frames if (name, dataset) in CNNS else frames[:, :3], leads_of(name, dataset), autocast=True)
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.dtype == torch.float32
        assert parameter.grad.isfinite().all(), key


@pytest.mark.parametrize(("name", "dataset"), CASES)
def test_a_saved_model_loads_without_trusting_the_file(name: str, dataset: str) -> None:
    model, other, leads = narrow(name, dataset, seed=1), narrow(name, dataset, seed=2), leads_of(name, dataset)
    frames = frames_for(name, dataset)
    if any(True for _ in model.parameters()):
        model(frames, leads)  # in training mode, so that batch norm has statistics of its own
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(other.predict(frames, leads=leads), model.predict(frames, leads=leads))


def test_a_fresh_process_gives_the_same_output_from_the_same_seed() -> None:
    """One process for all of them: starting Python and torch is the cost."""
    script = (
        "import importlib.util, json, sys\n"
        "import torch\n"
        "torch.set_num_threads(int(sys.argv[2]))\n"
        "spec = importlib.util.spec_from_file_location('contract', sys.argv[1])\n"
        "contract = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(contract)\n"
        "print(json.dumps([contract.digest_of_prediction(*case) for case in contract.CASES]))\n"
    )
    arguments = [sys.executable, "-c", script, str(Path(__file__)), str(torch.get_num_threads())]
    elsewhere = json.loads(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout)
    here = [digest_of_prediction(*case) for case in CASES]
    assert dict(zip(CASES, here, strict=True)) == dict(zip(CASES, elsewhere, strict=True))


@pytest.mark.parametrize(("name", "dataset"), NETWORKS)
def test_weights_depend_on_the_seed_and_on_nothing_else(name: str, dataset: str) -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one, same, another = (narrow(name, dataset, seed=seed).state_dict() for seed in (5, 5, 6))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(one[key], same[key]) for key in one)
    assert any(not torch.equal(one[key], another[key]) for key in one)


@pytest.mark.parametrize(("name", "dataset"), NETWORKS)
def test_a_grid_that_does_not_fit_is_refused_with_the_numbers(name: str, dataset: str) -> None:
    model, side = narrow(name, dataset), unit(name, dataset)
    model.check_grid(side, 2 * side)
    with pytest.raises(ConfigError, match=rf"{side + 1}") as refusal:
        model.check_grid(side, side + 1)
    assert str(side) in str(refusal.value)
    with pytest.raises(ConfigError, match=rf"{side + 1}"):
        model(torch.zeros(1, SETTINGS[dataset].in_frames, side + 1, side), leads_of(name, dataset))


@pytest.mark.parametrize(("name", "dataset"), CASES)
def test_predict_is_in_range_and_leaves_the_model_as_it_was(name: str, dataset: str) -> None:
    model, frames, leads = narrow(name, dataset), frames_for(name, dataset), leads_of(name, dataset)
    state = {key: value.clone() for key, value in model.state_dict().items()}
    valid = torch.ones_like(frames, dtype=torch.bool)
    for training in (True, False):
        model.train(training)
        forecast = model.predict(frames, valid, leads=leads)
        assert model.training is training
        assert 0 <= forecast.min() <= forecast.max() <= 1
        assert not forecast.requires_grad
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())
