"""The encoder-forecaster: equal to a plain one, counted to the last parameter, and frugal when asked."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from nowcastlab.bench.reference import load_reference
from nowcastlab.errors import ConfigError
from nowcastlab.models.dfn import DynamicFilterNetwork
from nowcastlab.models.encoder_forecaster import EncoderForecaster, joined, with_coordinates
from nowcastlab.models.flops import count_flops
from nowcastlab.models.spec import RecurrentSpec, Resample

reference = load_reference()

SMALL = RecurrentSpec(
    cell="traj_gru",
    filters=(4, 6, 8),
    stem_filters=3,
    stem=Resample(kernel=7, stride=5, pad=1),
    downs=(Resample(kernel=5, stride=3, pad=1), Resample(kernel=3, stride=2, pad=1)),
    ups=(Resample(kernel=4, stride=2, pad=1), Resample(kernel=5, stride=3, pad=1)),
    head=Resample(kernel=7, stride=5, pad=1),
    links=(5, 4, 3),
    state_kernels=(5, 3, 3),
    state_dilations=(1, 2, 1),
    flow_filters=5,
)
FLAT = replace(
    SMALL,
    cell="conv_gru",
    stem=Resample(kernel=3, stride=1, pad=1),
    head=Resample(kernel=3, stride=1, pad=1),
    local_filter=5,
)
MODELS = {
    "traj_gru": lambda: EncoderForecaster(SMALL),
    "conv_gru": lambda: EncoderForecaster(replace(SMALL, cell="conv_gru")),
    "conv_lstm": lambda: EncoderForecaster(replace(SMALL, cell="conv_lstm")),
    "dfn": lambda: DynamicFilterNetwork(FLAT),
}


def some_frames(batch: int = 2, steps: int = 3, height: int = 60, width: int = 90) -> Tensor:
    return torch.rand(batch, steps, height, width, generator=torch.Generator().manual_seed(0))


def awake(name: str) -> EncoderForecaster:
    """A model no part of which is zero, as after training: links that look around, biases that matter."""
    model, generator = MODELS[name](), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if parameter_name.endswith("bias"):
                parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
            elif parameter_name.endswith("flow.weight"):
                parameter.copy_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model


def gradients(model: EncoderForecaster, forecast: Tensor) -> dict[str, Tensor]:
    model.zero_grad()
    forecast.square().sum().backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("name", MODELS)
def test_it_forecasts_what_the_plain_reference_does(name: str) -> None:
    """Seven steps, of which a forecaster reads five at a time."""
    model, frames = awake(name), some_frames()
    torch.testing.assert_close(model(frames, 7), reference.forecast(model, frames, 7), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_its_gradients_are_those_of_the_plain_reference(name: str) -> None:
    """In double precision: where a link looks at the very edge between pixels, a rounding moves its gradient."""
    model, frames = awake(name).double(), some_frames().double()
    ours = gradients(model, model(frames, 7))
    theirs = gradients(model, reference.forecast(model, frames, 7))
    for parameter in ours:
        assert ours[parameter].abs().max() > 0, f"{parameter} has no gradient: the comparison would prove nothing"
        torch.testing.assert_close(ours[parameter], theirs[parameter], rtol=1e-5, atol=1e-8, msg=parameter)


@pytest.mark.parametrize("name", MODELS)
def test_checkpointing_gives_the_same_gradients(name: str) -> None:
    model, frames = awake(name).double(), some_frames().double()
    forecast = model(frames, 4)
    plain = gradients(model, forecast)
    model.checkpointing = True
    again = model(frames, 4)
    torch.testing.assert_close(again, forecast, rtol=0, atol=1e-12)
    frugal = gradients(model, again)
    for parameter in plain:
        torch.testing.assert_close(frugal[parameter], plain[parameter], rtol=1e-9, atol=1e-9, msg=parameter)


def kept_bytes(forward: Callable[[], Tensor]) -> int:
    """What a forward pass leaves in memory for the backward pass, and its result."""
    forward()  # what is made once is not of this pass
    with profile(profile_memory=True, activities=[ProfilerActivity.CPU]) as seen:
        result = forward()
    assert result.requires_grad
    return sum(event.self_cpu_memory_usage for event in seen.events())


@pytest.mark.parametrize("name", ["traj_gru", "conv_gru"])
def test_checkpointing_keeps_less_than_half(name: str) -> None:
    model, frames = awake(name), some_frames()
    plain = kept_bytes(lambda: model(frames, 8))
    model.checkpointing = True
    assert kept_bytes(lambda: model(frames, 8)) < plain / 2


WAYS = {"down": torch.nn.Conv2d(4, 6, 3, stride=2), "up": torch.nn.ConvTranspose2d(4, 6, 4, stride=2, bias=False)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wanted", ["all", "steps", "weight"])
def test_a_sequence_in_one_piece_has_the_gradients_of_its_steps(way: str, wanted: str) -> None:
    layer, generator = copy.deepcopy(WAYS[way]).double(), torch.Generator().manual_seed(0)
    steps = [torch.rand(2, 4, 5, 6, generator=generator, dtype=torch.float64) for _ in range(3)]
    layer.requires_grad_(wanted != "steps")
    for step in steps:
        step.requires_grad_(wanted != "weight")
    leaves = [leaf for leaf in (*steps, *layer.parameters()) if leaf.requires_grad]
    ours, theirs = joined(layer, steps), torch.cat([layer(step) for step in steps])
    gradients = [torch.autograd.grad((made * theirs.detach().cos()).sum(), leaves) for made in (ours, theirs)]
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("way", WAYS)
def test_of_a_sequence_in_one_piece_only_the_steps_are_kept(way: str) -> None:
    layer, steps = WAYS[way], [torch.rand(2, 4, 30, 20, requires_grad=True) for _ in range(5)]
    piece, result = 5 * steps[0].nbytes, layer(torch.cat(steps)).nbytes
    assert kept_bytes(lambda: layer(torch.cat(steps))) == piece + result
    assert kept_bytes(lambda: joined(layer, steps)) == result


@pytest.mark.parametrize("name", MODELS)
def test_a_forecast_that_nobody_learns_from_leaves_nothing_behind(name: str) -> None:
    """What keeps its own graph alive, the garbage collector does not find."""
    model, frames = awake(name), some_frames()
    weight = weakref.ref(model.head[0].weight if name != "dfn" else model.head.weight)
    assert model(frames, 7).requires_grad
    del model
    gc.collect()
    assert weight() is None


@pytest.mark.parametrize("name", MODELS)
def test_the_state_keeps_its_precision_under_autocast(name: str) -> None:
    model, frames = awake(name), some_frames()
    with torch.autocast("cpu", torch.bfloat16):
        assert all(state.dtype == torch.float32 for state in model.features(frames, 2))


def test_the_network_is_told_where_it_is() -> None:
    channels = with_coordinates(torch.full((1, 3, 5), 0.25))[0]
    assert channels[0].unique().tolist() == [0.25]
    assert channels[1, 0].tolist() == [-1, -0.5, 0, 0.5, 1]
    assert channels[2, :, 0].tolist() == [-1, 0, 1]
    assert channels[3].unique().tolist() == [1]


def test_weights_are_drawn_after_he_for_the_leaky_relu() -> None:
    model = EncoderForecaster(replace(SMALL, filters=(32, 32, 32), cell="conv_gru"))
    weight = model.encoder[0].state_to_state.weight
    # variance 2 / (1 + 0.2^2) / fan-in, with 32 channels of 5 x 5 coming in
    assert weight.var().item() == pytest.approx(2 / 1.04 / (32 * 25), rel=0.03)
    assert abs(weight.mean().item()) < 0.001
    assert all(not p.any() for name, p in model.named_parameters() if name.endswith("bias"))


def test_the_seed_decides_the_weights_and_the_global_generator_is_left_alone() -> None:
    before = torch.get_rng_state()
    one, same, other = (EncoderForecaster(SMALL, seed=seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["stem.weight"], other["stem.weight"])
    assert torch.equal(torch.get_rng_state(), before)


def test_the_forecasters_first_layer_has_no_weights_for_the_input_it_lacks() -> None:
    names = [name for name, _ in EncoderForecaster(SMALL).forecaster[0].named_parameters()]
    assert names
    assert not [name for name in names if name.startswith("input")]


def test_a_grid_that_does_not_fit_is_refused_with_the_numbers() -> None:
    with pytest.raises(ConfigError, match=r"height \(=64\) does not fit strides \[5, 3, 2\].*multiple of 30, as 60"):
        EncoderForecaster(SMALL)(torch.zeros(1, 2, 64, 60), 2)


@pytest.mark.parametrize(("steps", "leads"), [(3, 0), (0, 2)])
def test_nothing_in_or_nothing_out_is_refused(steps: int, leads: int) -> None:
    with pytest.raises(ConfigError, match=f"no forecast of {leads} leads from {steps} frames"):
        awake("conv_gru").predict(some_frames(steps=steps), leads=leads)


def test_flops_are_those_of_the_products() -> None:
    """One frame in, one out, no recurrent product yet in the encoder (its state is zero): counted by hand."""
    side = 4
    spec = replace(
        FLAT,
        filters=(2,),
        stem_filters=3,
        downs=(),
        ups=(),
        state_kernels=(3,),
        state_dilations=(1,),
        local_filter=0,
    )
    stem = 4 * 3 * 9
    encoder = 3 * (3 * 2) * 9
    forecaster = 2 * (3 * 2) * 9  # from the state alone
    head = 2 * 3 * 9 + 3 * 3 * 9 + 3 * 1
    multiply_adds = (stem + encoder + forecaster + head) * side * side
    assert count_flops(EncoderForecaster(spec), frames=1, leads=1, height=side, width=side) == 2 * multiply_adds


def test_flops_of_links_are_those_of_the_convolution_they_stand_for() -> None:
    """9 links cost what a 3 x 3 kernel does, plus the flow net, whichever way the warp is worked out."""
    conv = replace(FLAT, filters=(2,), downs=(), ups=(), state_kernels=(3,), state_dilations=(1,), local_filter=0)
    traj = replace(conv, cell="traj_gru", links=(9,), flow_filters=5)
    size = {"frames": 2, "leads": 3, "height": 4, "width": 4}
    per_step = (2 * 5 + 5 * 18) * 25  # from the state, then to 2 x 9 numbers
    read = 3 * 5 * 25  # from the input, which the forecaster does not have
    flow_net = 2 * 16 * (4 * per_step + 1 * read)  # 1 + 3 steps from a state that is not zero
    difference = count_flops(EncoderForecaster(traj), **size) - count_flops(EncoderForecaster(conv), **size)
    assert difference == flow_net


def test_a_backward_pass_costs_twice_the_forward_but_for_the_frames() -> None:
    """Every product has two in its gradient, one for each factor; the stem's input is data and needs none."""
    size = {"frames": 3, "leads": 2, "height": 30, "width": 30}
    model = EncoderForecaster(SMALL)
    stem = 2 * 4 * 3 * 7 * 7 * 6 * 6 * 3  # 4 -> 3 channels by 7 x 7 onto 6 x 6, for 3 frames
    assert count_flops(model, **size, backward=True) == 3 * count_flops(model, **size) - stem
