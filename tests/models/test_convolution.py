"""The layer of recurrent cells: when it works by points, beside another, for a sequence of steps, in a network."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nowcastlab.bench.reference import load_reference
from nowcastlab.models import build, winograd
from nowcastlab.models.convolution import Conv2d, weights_kept
from nowcastlab.models.encoder_forecaster import EncoderForecaster
from nowcastlab.models.flops import count_flops
from nowcastlab.models.winograd import convolve, weight_points
from nowcastlab.models.zoo import MNIST_GRU

reference = load_reference()


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def layer(inputs: int, outputs: int, kernel: int, *, dtype: torch.dtype = torch.float32) -> Conv2d:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Conv2d(inputs, outputs, kernel, padding=kernel // 2, dtype=dtype)


def directly(made: Conv2d, x: Tensor) -> Tensor:
    return F.conv2d(x, made.weight, made.bias, padding=made.padding)


# --- where it is used


def plain_like(one: Conv2d) -> nn.Conv2d:
    other = nn.Conv2d(
        one.in_channels,
        one.out_channels,
        one.kernel_size,
        one.stride,
        one.padding,
        one.dilation,
        one.groups,
        padding_mode=one.padding_mode,
    )
    other.load_state_dict(one.state_dict())
    return other


UNSUITED = {
    "dilated": (Conv2d(32, 32, 3, padding=2, dilation=2), (32, 32)),
    "strided": (Conv2d(32, 32, 5, padding=2, stride=2), (32, 32)),
    "without a border": (Conv2d(32, 32, 5), (32, 32)),
    "of an even kernel": (Conv2d(32, 32, 4, padding=1), (32, 32)),
    "oblong": (Conv2d(32, 32, (3, 5), padding=(1, 2)), (32, 32)),
    "in groups": (Conv2d(32, 32, 5, padding=2, groups=2), (32, 32)),
    "of few channels": (Conv2d(4, 32, 5, padding=2), (32, 32)),
    "with another border": (Conv2d(32, 32, 5, padding=2, padding_mode="circular"), (32, 32)),
    "on a grid that fills a corner of its tiles": (Conv2d(32, 32, 5, padding=2), (5, 5)),
}


@pytest.mark.parametrize("name", UNSUITED)
def test_elsewhere_it_is_torchs_own_to_the_bit(name: str) -> None:
    one, grid = UNSUITED[name]
    x = normal(1, one.in_channels, *grid)
    assert not one.suits([x])
    assert torch.equal(one(x), plain_like(one)(x))


def test_a_batch_of_none_gives_none() -> None:
    assert layer(32, 32, 5)(normal(0, 32, 16, 16)).shape == (0, 32, 16, 16)


def test_it_can_be_trained_after_a_forecast() -> None:
    """What is worked out once a process is first asked for in inference mode, of which autograd takes nothing."""
    winograd._both_sides.cache_clear()
    made, x = layer(32, 32, 5), normal(1, 32, 16, 16)
    with torch.inference_mode():
        made(x)
    made(x).sum().backward()
    assert made.weight.grad is not None


def test_lower_precision_is_left_to_torch() -> None:
    one, x = layer(32, 32, 5), normal(1, 32, 16, 16)
    assert one.suits([x])
    with torch.autocast("cpu", torch.bfloat16):
        assert not one.suits([x])
        assert one(x).dtype == torch.bfloat16


def test_a_network_counts_as_many_operations_with_it_as_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that GFLOPs can be compared: they are those of direct convolutions."""
    size = {"frames": 2, "leads": 2, "height": 32, "width": 32, "backward": True}
    counted = count_flops(build("traj-l5"), **size)
    monkeypatch.setattr(winograd, "SIZES", {})
    assert count_flops(build("traj-l5"), **size) == counted


# --- layers side by side


@pytest.mark.parametrize("inputs", [(16, 20), (3, 2)], ids=["by points", "directly"])
def test_a_layer_beside_another_adds_what_it_would_give(inputs: tuple[int, int]) -> None:
    layers = [layer(channels, 32, 5, dtype=torch.float64) for channels in inputs]
    images = [normal(2, c, 16, 16, seed=c, dtype=torch.float64).requires_grad_() for c in inputs]
    leaves = [*images, *(parameter for one in layers for parameter in one.parameters())]
    assert layers[0].suits(images) == (inputs[0] == 16)
    together = layers[0](images[0], (layers[1], images[1]))
    apart = layers[0](images[0]) + layers[1](images[1])
    torch.testing.assert_close(together, apart, rtol=1e-10, atol=1e-10)
    gradients = [torch.autograd.grad((made * apart.detach().cos()).sum(), leaves) for made in (together, apart)]
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_gradients_of_layers_side_by_side_are_each_their_own() -> None:
    """A norm that is clipped works on them in place."""
    layers = [layer(16, 32, 5), layer(20, 32, 5)]
    layers[0](normal(1, 16, 16, 16), (layers[1], normal(1, 20, 16, 16))).sum().backward()
    biases = [one.bias.grad for one in layers]
    biases[0].zero_()
    assert torch.equal(biases[1], torch.full((32,), 256.0))


def test_a_layer_kept_for_itself_is_not_taken_for_one_beside_another() -> None:
    one, other, x = layer(32, 32, 5), layer(16, 32, 5), normal(1, 32, 16, 16)
    with weights_kept(nn.ModuleList([one, other])):
        alone, both = one(x), one(x, (other, x[:, :16]))
        torch.testing.assert_close(both, alone + other(x[:, :16]), rtol=1e-4, atol=1e-4)
        assert torch.equal(one(x), alone)


@pytest.mark.parametrize(
    ("other", "channels"),
    [
        (Conv2d(20, 32, 5, padding=2), 400),
        (Conv2d(16, 32, 5, padding=4, dilation=2), 16),
        (Conv2d(16, 8, 5, padding=2), 16),
    ],
    ids=["of an image with other channels", "dilated", "with fewer results"],
)
def test_layers_side_by_side_must_be_alike(other: Conv2d, channels: int) -> None:
    with pytest.raises(ValueError, match=rf"layers side by side must be alike: .*, {channels}, 16, 16\)\]"):
        layer(32, 32, 5)(normal(1, 32, 16, 16), (other, normal(1, channels, 16, 16)))


# --- weights, once a sequence


def test_kept_weights_give_the_same_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are evaluated once a sequence, and once more for its way back."""
    made, x = layer(32, 32, 5), normal(1, 32, 16, 16)
    evaluated: list[int] = []
    original = weight_points
    monkeypatch.setattr(winograd, "weight_points", lambda weight: evaluated.append(1) or original(weight))
    made(made(made(x))).square().sum().backward()
    assert len(evaluated) == 3 + 2  # the first image needs no gradient
    assert made.weight.grad is not None
    expected, made.weight.grad = made.weight.grad, None
    evaluated.clear()
    with weights_kept(made):
        made(made(made(x))).square().sum().backward()
    assert len(evaluated) == 1 + 1
    torch.testing.assert_close(made.weight.grad, expected, rtol=1e-4, atol=1e-4 * expected.abs().max().item())


def test_each_backward_pass_gives_the_whole_gradient() -> None:
    """Also after one that stops at the image, and of a part of the steps."""
    made, x = layer(32, 32, 5, dtype=torch.float64), normal(1, 32, 16, 16, dtype=torch.float64).requires_grad_()
    assert made.suits([x])
    with weights_kept(made):
        steps = [made(x), made(2 * x), made(3 * x)]
    outcome, truth = (
        sum((one * one.detach().cos()).sum() for one in images)
        for images in (steps, [directly(made, k * x) for k in (1, 2, 3)])
    )
    leaves = [x, made.weight, made.bias]
    expected = torch.autograd.grad(truth, leaves)
    for asked in ([x], leaves, [made.weight], [x], leaves):
        gradients = torch.autograd.grad(outcome, asked, retain_graph=True)
        for leaf, ours in zip(asked, gradients, strict=True):
            theirs = next(grad for one, grad in zip(leaves, expected, strict=True) if one is leaf)
            torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    (of_one,) = torch.autograd.grad(steps[1].sum(), [made.weight])
    (truth_of_one,) = torch.autograd.grad(directly(made, 2 * x).sum(), [made.weight])
    torch.testing.assert_close(of_one, truth_of_one, rtol=1e-10, atol=1e-10)


@pytest.fixture
def three_steps() -> tuple[Conv2d, list[Tensor], Tensor]:
    """A layer, three steps it took with its weights kept, and the gradient of their squares' sum."""
    made, x = layer(32, 32, 5, dtype=torch.float64), normal(1, 32, 16, 16, dtype=torch.float64)
    images = [(k * x).requires_grad_() for k in (1, 2, 3)]
    with weights_kept(made):
        steps = [made(image) for image in images]
    truth = sum(directly(made, image).square().sum() for image in images)
    return made, steps, torch.autograd.grad(truth, made.weight)[0]


def of_squares(made: Conv2d, steps: list[Tensor]) -> Tensor:
    with torch.enable_grad():
        total = torch.stack([step.square().sum() for step in steps]).sum()
    return torch.autograd.grad(total, made.weight, retain_graph=True)[0]


def test_a_pass_that_failed_leaves_nothing_to_the_next(three_steps: tuple[Conv2d, list[Tensor], Tensor]) -> None:
    made, steps, expected = three_steps

    def fail(grad: Tensor) -> None:
        raise InterruptedError

    with steps[0].register_hook(fail), pytest.raises(InterruptedError):  # when the last of the three has been through
        of_squares(made, steps)
    torch.testing.assert_close(of_squares(made, steps), expected, rtol=1e-10, atol=1e-10)


def test_passes_may_overlap(three_steps: tuple[Conv2d, list[Tensor], Tensor]) -> None:
    made, steps, expected = three_steps
    within: list[Tensor] = []

    def another(grad: Tensor) -> None:
        hook.remove()
        within.append(of_squares(made, steps))

    hook = steps[1].register_hook(another)
    outer = of_squares(made, steps)
    for grad in (outer, within[0]):
        torch.testing.assert_close(grad, expected, rtol=1e-10, atol=1e-10)
    with ThreadPoolExecutor(4) as pool:
        for grad in pool.map(lambda _: of_squares(made, steps), range(12)):
            torch.testing.assert_close(grad, expected, rtol=1e-10, atol=1e-10)


def test_a_pass_leaves_nothing_behind(three_steps: tuple[Conv2d, list[Tensor], Tensor]) -> None:
    made, _, _ = three_steps
    x = normal(1, 32, 16, 16, dtype=torch.float64).requires_grad_()
    with weights_kept(made):
        result = made(x)
        assert made.kept is not None
        way_back = made.kept.way_back
    for asked in ([x], [made.weight], [x, made.weight]):
        torch.autograd.grad(result.sum(), asked, retain_graph=True)
        assert not way_back.passes


def test_to_differentiate_twice_is_an_error() -> None:
    made, x = layer(32, 32, 5), normal(1, 32, 16, 16)
    (grad,) = torch.autograd.grad(made(x).square().mean(), made.weight, create_graph=True)
    with pytest.raises(RuntimeError, match="cannot be differentiated once more"):
        grad.square().sum().backward()


def test_a_backward_pass_under_autocast_keeps_the_precision() -> None:
    made, x = layer(32, 32, 5), normal(1, 32, 16, 16).requires_grad_()
    result = made(x).square().sum()
    expected = torch.autograd.grad(result, [x, made.weight], retain_graph=True)
    with torch.autocast("cpu", torch.bfloat16):
        for ours, theirs in zip(torch.autograd.grad(result, [x, made.weight]), expected, strict=True):
            assert torch.equal(ours, theirs)


def test_a_forecast_while_weights_are_kept_does_not_stop_what_can_be_learnt() -> None:
    one, other = layer(32, 32, 5), layer(16, 32, 5)
    x, y = normal(1, 32, 16, 16), normal(1, 16, 16, 16)
    one.weight.requires_grad_(False)
    other.weight.requires_grad_(False)
    for forecasting in (torch.no_grad, torch.inference_mode):
        with weights_kept(nn.ModuleList([one, other])):
            with forecasting():
                one(x, (other, y))
            learning = one(x.clone().requires_grad_(), (other, y))
        learning.sum().backward()
    for bias in (one.bias, other.bias):
        torch.testing.assert_close(bias.grad, torch.full((32,), 2 * 16 * 16.0))


def test_what_was_kept_does_not_outlive_its_sequence() -> None:
    """An optimiser's step in between would not be seen, and no other sequence could be trained on."""
    made, x = layer(32, 32, 5), normal(1, 32, 16, 16)
    with weights_kept(made):
        before = made(x)
    with torch.no_grad():
        made.weight.mul_(2)
        torch.testing.assert_close(made(x) - made.bias[:, None, None], 2 * (before - made.bias[:, None, None]))
    with pytest.raises(RuntimeError), weights_kept(made):
        made(made(x)[:, :5])  # a mistake in the midst of it
    assert made.kept is None
    assert not made.keeping


# --- in a network

WIDE = replace(MNIST_GRU, cell="traj_gru", links=(5, 3, 3), filters=(32, 32, 32), stem_filters=32)


def awake() -> EncoderForecaster:
    """A wide TrajGRU whose links look around."""
    model = EncoderForecaster(WIDE)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("flow.weight"):
                parameter.copy_(0.02 * normal(*parameter.shape))
    return model


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """What was convolved by points."""
    shapes: list[tuple[int, ...]] = []

    def noted(x: Tensor, *arguments: object, **options: object) -> Tensor:
        shapes.append(tuple(x.shape))
        return convolve(x, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(winograd, "convolve", noted)
    return shapes


def test_a_network_forecasts_and_learns_what_the_plain_reference_does(used: list[tuple[int, ...]]) -> None:
    model, frames = awake(), torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    ours, theirs = model(frames, 3), reference.forecast(model, frames, 3)
    assert {shape[2] for shape in used} == {8, 16, 32}
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    model.double()
    parameters = dict(model.named_parameters())
    gradients = [
        torch.autograd.grad(forecast.square().sum(), list(parameters.values()))
        for forecast in (model(frames.double(), 3), reference.forecast(model, frames.double(), 3))
    ]
    for parameter, ours, theirs in zip(parameters, *gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-8, msg=parameter)


def test_checkpointing_gives_the_same_gradients(used: list[tuple[int, ...]]) -> None:
    model, frames = awake().double(), torch.rand(1, 3, 32, 32, dtype=torch.float64)
    gradients = []
    for model.checkpointing in (False, True):
        gradients.append(torch.autograd.grad(model(frames, 2).square().sum(), list(model.parameters())))
        assert used
        used.clear()
    for plain, frugal in zip(*gradients, strict=True):
        torch.testing.assert_close(frugal, plain, rtol=1e-9, atol=1e-9)
