"""The 2D and 3D CNNs of the appendix of Shi et al. 2017: all frames in, all forecasts out, in one pass.

2D: frames are channels        (batch, frames, y, x) -> (batch, leads, y, x)
3D: frames are depth, channel 1 (batch, 1, frames, y, x) -> (batch, 1, leads, y, x)

A layer is convolution, batch norm where the spec asks for it, leaky ReLU; the last is a deconvolution alone.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from nowcastlab.errors import ConfigError
from nowcastlab.models.cell import SLOPE
from nowcastlab.models.forecaster import Forecaster
from nowcastlab.models.spec import CnnLayer, CnnSpec, Resample, fitting_strides


class Cnn(Forecaster):
    def __init__(self, spec: CnnSpec, *, seed: int = 0) -> None:
        super().__init__()
        self.spec = spec
        self.depth = spec.encoder[0].time is not None
        self._check_time()
        layers = (*spec.encoder, *spec.forecaster)
        out = 1 if self.depth else spec.out_frames
        widths = [1 if self.depth else spec.in_frames]
        widths += [layer.filters or layer.width * spec.base_filters for layer in layers[:-1]] + [out]
        self.layers = nn.ModuleDict()
        for i, (layer, (before, after)) in enumerate(zip(layers, pairwise(widths), strict=True)):
            self.layers[layer.name] = _block(layer, before, after, transposed=i >= len(spec.encoder))
        generator = torch.Generator().manual_seed(seed)
        for module in self.modules():
            if isinstance(module, CONVOLUTIONS):
                _initialise(module, spec.init, generator)

    def forward(self, frames: Tensor, leads: int) -> Tensor:
        self._check_call(frames, leads)
        x = frames[:, None] if self.depth else frames
        for name, layer in self.layers.items():
            x = layer(x)
            if name != self.spec.forecaster[-1].name:
                x = functional.leaky_relu(x, SLOPE)
        return x[:, 0, :leads] if self.depth else x

    def check_grid(self, height: int, width: int) -> None:
        strides = tuple(layer.space.stride for layer in self.spec.encoder)
        if all(self._sizes(n, "space")[-1] == n for n in (height, width)):
            return
        total, smaller = math.prod(strides), fitting_strides(strides, height, width)
        raise ConfigError(
            f"A {height}x{width} grid does not fit this CNN: its strides {_times(strides)} = {total} must divide both "
            f"sides. Crop or pad the frames to a multiple of {total}"
            + (f", or build it with strides={smaller}." if math.prod(smaller) > 1 else ".")
        )

    def _sizes(self, size: int, axis: str) -> list[int]:
        """An axis' length before and after every layer; 0 from where a kernel no longer fits."""
        sizes = [size]
        for i, layer in enumerate((*self.spec.encoder, *self.spec.forecaster)):
            step: Resample = getattr(layer, axis)
            if i < len(self.spec.encoder):
                after = (size + 2 * step.pad - step.kernel) // step.stride + 1
            else:
                after = (size - 1) * step.stride - 2 * step.pad + step.kernel
            size = max(0, after) if size else 0
            sizes.append(size)
        return sizes

    def _check_time(self) -> None:
        """A 3D CNN's kernels fix how many frames come out; it may give fewer, never more."""
        spec = self.spec
        if self.depth:
            depths = self._sizes(spec.in_frames, "time")
            if min(depths) < 1 or depths[-1] < spec.out_frames:
                raise ConfigError(
                    f"This 3D CNN turns {spec.in_frames} frames into {depths[-1]}, not out_frames={spec.out_frames}: "
                    f"its depth runs {' -> '.join(map(str, depths))}. Change in_frames or out_frames, or its layers."
                )

    def _check_call(self, frames: Tensor, leads: int) -> None:
        spec, (batch, time, height, width) = self.spec, frames.shape
        if (time, leads) != (spec.in_frames, spec.out_frames):
            raise ConfigError(
                f"This CNN turns {spec.in_frames} frames into {spec.out_frames} and was given {time} frames and asked "
                f"for {leads}. Build it with in_frames={time}, out_frames={leads}."
            )
        self.check_grid(height, width)
        stride = math.prod(layer.space.stride for layer in spec.encoder)
        if self.training and batch * (height // stride) * (width // stride) == 1:
            raise ConfigError(
                f"Batch norm cannot train on one value a channel: batch {batch} of {height}x{width} frames leaves a "
                f"1x1 grid after strides of {stride}. Use a batch of 2 or more, or smaller strides."
            )


CONVOLUTIONS = (nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d, nn.ConvTranspose3d)
KINDS = {(2, False): nn.Conv2d, (2, True): nn.ConvTranspose2d, (3, False): nn.Conv3d, (3, True): nn.ConvTranspose3d}
NORMS = {2: nn.BatchNorm2d, 3: nn.BatchNorm3d}


def _block(layer: CnnLayer, before: int, after: int, *, transposed: bool) -> nn.Sequential:
    axes = (layer.space, layer.space) if layer.time is None else (layer.time, layer.space, layer.space)
    kernel, stride, pad = zip(*((axis.kernel, axis.stride, axis.pad) for axis in axes), strict=True)
    kind = KINDS[len(axes), transposed]
    block = nn.Sequential()
    # skip_init: the values come from `_initialise`, so none are drawn here
    block.add_module("conv", nn.utils.skip_init(kind, before, after, kernel, stride=stride, padding=pad))
    if layer.norm:
        block.add_module("norm", NORMS[len(axes)](after))
    return block


def _initialise(
    conv: nn.Conv2d | nn.Conv3d | nn.ConvTranspose2d | nn.ConvTranspose3d, init: str, generator: torch.Generator
) -> None:
    """Weights by MSRA for the leaky ReLU's slope, or Xavier; biases zero.

    MSRA keeps the variance of what an output pixel *sums*: for a deconvolution, in_channels * kernel / stride terms.
    So all four CNNs start with forecasts of standard deviation 0.9 to 1.0 (c = 16); torch's kaiming_normal_, which
    takes out_channels * kernel there, gave 0.1 to 1.8.
    """
    drawn = torch.empty(conv.weight.shape)
    if init == "msra":
        overlap = math.prod(conv.stride) if conv.transposed else 1
        summed = conv.in_channels * math.prod(conv.kernel_size) / overlap
        drawn.normal_(std=math.sqrt(2 / (1 + SLOPE**2) / summed), generator=generator)
    elif init == "xavier":
        nn.init.xavier_uniform_(drawn, generator=generator)
    else:
        raise ConfigError(f"init (={init!r}) must be 'msra' or 'xavier'.")
    with torch.no_grad():
        conv.weight.copy_(drawn)
    assert conv.bias is not None
    nn.init.zeros_(conv.bias)


def _times(strides: tuple[int, ...]) -> str:
    return "x".join(map(str, strides))
