"""The CNNs against the appendix's tables and against a plain chain of layers."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from nowcastlab.errors import ConfigError
from nowcastlab.models import build
from nowcastlab.models.zoo import SETTINGS

SPACE = {
    "mnist": [32, 16, 8, 4, 4, 8, 16, 32, 64],
    "hko7": [96, 32, 16, 8, 4, 4, 8, 16, 32, 96, 480, 480],
}
DEPTH = {
    "mnist": [5, 2, 1, 1, 2, 4, 6, 10, 10],
    "hko7": [5, 5, 2, 1, 1, 2, 4, 10, 20, 20, 20, 20],
}


@pytest.mark.parametrize("dataset", ["mnist", "hko7"])
@pytest.mark.parametrize("name", ["conv2d", "conv3d"])
def test_layers_have_the_resolutions_of_the_papers_tables(name: str, dataset: str) -> None:
    setting = SETTINGS[dataset]
    model = build(name, dataset, base_filters=1).to("meta")
    seen: list[tuple[int, ...]] = []
    for layer in model.get_submodule("layers").children():
        layer.register_forward_hook(lambda _module, _inputs, output: seen.append(tuple(output.shape[2:])))
    model(torch.empty(1, setting.in_frames, setting.height, setting.width, device="meta"), setting.leads)
    depths: list[tuple[int, ...]] = [(n,) for n in DEPTH[dataset]] if name == "conv3d" else [()] * len(SPACE[dataset])
    assert seen == [(*depth, side, side) for depth, side in zip(depths, SPACE[dataset], strict=True)]


@pytest.mark.parametrize("name", ["conv2d", "conv3d"])
def test_batch_norm_is_on_the_layers_of_the_release(name: str) -> None:
    layers = build(name, "hko7", base_filters=1).get_submodule("layers")
    normed = [key for key, layer in layers.named_children() if hasattr(layer, "norm")]
    assert normed == ["enc2", "enc3", "enc4", "vid2", "vid3", "vid4"]


def test_the_network_is_convolution_norm_and_leaky_relu_in_turn() -> None:
    model = build("conv2d", base_filters=2).eval()
    frames = torch.rand(2, 10, 32, 16, generator=torch.Generator().manual_seed(0))
    weights = model.state_dict()
    x: Tensor = frames
    for name in ("enc1", "enc2", "enc3", "enc4", "vid1", "vid2", "vid3", "vid4", "vid5"):
        weight, bias = weights[f"layers.{name}.conv.weight"], weights[f"layers.{name}.conv.bias"]
        if name.startswith("enc"):
            x = functional.conv2d(x, weight, bias, stride=2, padding=1)
        elif name == "vid1":
            x = functional.conv_transpose2d(x, weight, bias)
        else:
            x = functional.conv_transpose2d(x, weight, bias, stride=2, padding=1)
        if name[-1] in "234":
            x = x / math.sqrt(1 + 1e-5)  # a norm that has seen nothing: mean 0, variance 1
        if name != "vid5":
            x = torch.where(x > 0, x, 0.2 * x)
    torch.testing.assert_close(model(frames, 10), x, rtol=1e-4, atol=1e-5)


def test_weights_start_by_msra_and_biases_at_zero() -> None:
    model = build("conv2d", base_filters=16)
    weight = model.get_parameter("layers.enc2.conv.weight")
    # He et al. for slope 0.2: variance 2 / ((1 + 0.04) fan_in), fan_in = 64 channels of 4x4
    assert weight.std().item() == pytest.approx(math.sqrt(2 / (1.04 * 64 * 16)), rel=0.02)
    deconvolution = model.get_parameter("layers.vid3.conv.weight")
    # of 256 channels and 4x4 taps, stride 2 lets 2x2 reach an output pixel
    assert deconvolution.std().item() == pytest.approx(math.sqrt(2 / (1.04 * 256 * 4)), rel=0.02)
    assert not model.get_parameter("layers.enc2.conv.bias").any()


def test_the_releases_xavier_start_is_a_spec_away() -> None:
    weight = build("conv2d", base_filters=16, init="xavier").get_parameter("layers.enc2.conv.weight")
    # Glorot, uniform: bound sqrt(6 / (fan_in + fan_out)), 64 and 128 channels of 4x4
    bound = math.sqrt(6 / (64 * 16 + 128 * 16))
    assert weight.abs().max().item() == pytest.approx(bound, rel=1e-3)


def test_an_unknown_start_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"init \(='orthogonal'\) must be 'msra' or 'xavier'"):
        build("conv2d", base_filters=1, init="orthogonal")


def test_a_2d_cnn_is_built_for_any_frame_counts() -> None:
    model = build("conv2d", base_filters=1, in_frames=3, out_frames=7)
    assert model(torch.rand(2, 3, 16, 16), 7).shape == (2, 7, 16, 16)


def test_a_3d_cnn_may_give_fewer_leads_than_its_kernels_make() -> None:
    frames = torch.rand(1, 10, 32, 32)
    ten, four = (build("conv3d", base_filters=1, out_frames=n).predict(frames, leads=n) for n in (10, 4))
    assert torch.equal(ten[:, :4], four)


def test_a_3d_cnn_that_cannot_make_its_leads_says_what_it_makes() -> None:
    with pytest.raises(ConfigError, match=r"10 frames into 10, not out_frames=11: .* 10 -> 5 -> 2 -> 1 -> 1 -> 2"):
        build("conv3d", base_filters=1, out_frames=11)
    with pytest.raises(ConfigError, match=r"4 frames into 0, not out_frames=10"):
        build("conv3d", base_filters=1, in_frames=4)


@pytest.mark.parametrize("name", ["conv2d", "conv3d"])
def test_batch_norm_refuses_to_train_on_a_single_value(name: str) -> None:
    model, frames = build(name, base_filters=1), torch.rand(1, 10, 16, 16)
    with pytest.raises(ConfigError, match=r"batch 1 of 16x16 frames leaves a 1x1 grid after strides of 16"):
        model(frames, 10)
    assert model.predict(frames, leads=10).isfinite().all()


def test_a_grid_that_does_not_fit_is_told_which_strides_would() -> None:
    model = build("conv2d", "hko7", base_filters=1)
    with pytest.raises(ConfigError, match=r"60x60 .* 5x3x2x2x2 = 120 .* strides=\(5, 3, 1, 1, 1\)"):
        model.check_grid(60, 60)
    with pytest.raises(ConfigError, match=r"121x121 .* to a multiple of 120\.$"):
        model.check_grid(121, 121)
