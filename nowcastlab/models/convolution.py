"""The convolutions that recurrent cells are made of: torch's, done by points on a CPU where that is faster.

How, is in `winograd`. Here is what makes a layer of it: when it is used, gradients, and what is worked out once for all
steps of a sequence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nowcastlab.models import winograd

KEPT_BYTES = 1 << 20  # of weights' points, from the way there to the way back


class Conv2d(nn.Conv2d):
    """A convolution like torch's, done by points where that is faster."""

    keeping = False  # see `weights_kept`
    kept: _Weights | None = None

    def forward(self, x: Tensor, *beside: tuple[Conv2d, Tensor]) -> Tensor:
        """The convolution of x. Added to it, in the same pass, are those of other layers like this one, each of an
        image of its own."""
        layers, images = (self, *(layer for layer, _ in beside)), (x, *(image for _, image in beside))
        suited = self.suits(images)
        if not suited and not beside:
            return super().forward(x)
        weights = self.kept
        if weights is None or not weights.serve(layers):
            weights = _Weights(layers)
        if self.keeping:
            self.kept = weights
        if suited:
            return _Convolve.apply(weights.way_back, weights.weight.detach(), weights.points, weights.bias, *images)
        return self._conv_forward(torch.cat(images, dim=1), weights.weight, weights.bias)

    def suits(self, images: Sequence[Tensor]) -> bool:
        x, kernel = images[0], self.kernel_size[0]
        if not (
            self.kernel_size == (kernel, kernel)
            and self.padding == (kernel // 2, kernel // 2)
            and self.padding_mode == "zeros"
            and self.stride == self.dilation == (1, 1)
            and self.groups == 1
            and x.dim() == 4
            and x.numel() > 0
            and x.shape[1] == self.in_channels
            and x.device.type == "cpu"
            and x.dtype in (torch.float32, torch.float64)
            and all(image.dtype == self.weight.dtype for image in images)
            and not torch.is_autocast_enabled("cpu")  # which asks for products in lower precision
        ):
            return False
        height, width = x.shape[2:]
        return winograd.saves(kernel, height, width, sum(image.shape[1] for image in images), self.out_channels)


@contextmanager
def weights_kept(network: nn.Module) -> Iterator[None]:
    """Within, every convolution of the network evaluates its weights once: for all steps of a sequence."""
    convolutions = [module for module in network.modules() if isinstance(module, Conv2d)]
    for one in convolutions:
        one.keeping = True
    try:
        yield
    finally:
        for one in convolutions:
            one.keeping, one.kept = False, None


class _Weights:
    """Those of layers side by side, and their points, for all steps of a sequence."""

    def __init__(self, layers: tuple[Conv2d, ...]) -> None:
        self.layers = layers
        self.learning = _learning(layers)
        self.weight, self.bias = layers[0].weight, layers[0].bias
        if len(layers) > 1:
            self.weight = torch.cat([layer.weight for layer in layers], dim=1)
            biases = [layer.bias for layer in layers if layer.bias is not None]
            self.bias = torch.stack(biases).sum(dim=0) if biases else None

    def serve(self, layers: tuple[Conv2d, ...]) -> bool:
        # Another thread may keep them without a gradient, for a forecast.
        return layers == self.layers and self.learning == _learning(layers)

    @cached_property
    def way_back(self) -> _WayBack:
        return _WayBack()

    @cached_property
    def points(self) -> Tensor:
        return _Points.apply(self.way_back, self.weight)


def _learning(layers: tuple[Conv2d, ...]) -> bool:
    return torch.is_grad_enabled() and any(layer.weight.requires_grad for layer in layers)


# --- gradients


class _WayBack:
    """What the steps of a sequence share in a backward pass: points of the weights, and the sum of their gradients.

    One sum a step, left to autograd to add up, would take another 4% of a narrow network's time and 20 MB of a wide
    one's memory. Points that are large are worked out anew: those of all layers, kept from the way there to the way
    back, would fill 30 MB.
    """

    points: Tensor | None = None
    total: Tensor | None = None
    task = -1

    def of(self, weight: Tensor) -> Tensor:
        if self.points is None:
            self.points = winograd.weight_points(weight)
        return self.points

    def add(self, x: Tensor, grad: Tensor, size: int) -> None:
        task = torch._C._current_graph_task_id()
        if self.total is None or self.task != task:  # another pass may have failed on its way to the weights
            self.total, self.task = x.new_zeros(64, grad.shape[1], x.shape[1]), task
        winograd.add_points_gradient(self.total, x, grad, size)


class _Points(torch.autograd.Function):
    """`winograd.weight_points`. Their gradient is not handed over, but taken from where the steps have added theirs."""

    @staticmethod
    def forward(ctx: Any, way_back: _WayBack, weight: Tensor) -> Tensor:
        ctx.set_materialize_grads(False)
        ctx.way_back, ctx.kernel = way_back, weight.shape[2]
        points = winograd.weight_points(weight)
        if points.nbytes <= KEPT_BYTES:
            way_back.points = points.detach()
        return points

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *nothing: None) -> tuple[None, Tensor | None]:
        total, ctx.way_back.total, ctx.way_back.points = ctx.way_back.total, None, None
        return None, None if total is None else winograd.weight_gradient(total, ctx.kernel)


class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, way_back: _WayBack, weight: Tensor, points: Tensor, bias: Tensor | None, *images: Tensor
    ) -> Tensor:
        ctx.save_for_backward(weight, *images)
        ctx.way_back = way_back
        return winograd.convolve(_beside(images), points.transpose(1, 2), bias, winograd.SIZES[weight.shape[2]])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        weight, *images = ctx.saved_tensors
        grad, size = grads[0], winograd.SIZES[weight.shape[2]]
        _, _, needs_points, needs_bias, *need = ctx.needs_input_grad
        grad_images: Sequence[Tensor | None] = [None] * len(images)
        if any(need):
            together = winograd.convolve(grad, ctx.way_back.of(weight), None, size, mirrored=True)
            grad_images = together.split([image.shape[1] for image in images], dim=1)
        if needs_points:
            ctx.way_back.add(_beside(images), grad, size)
        return None, None, None, grad.sum(dim=(0, 2, 3)) if needs_bias else None, *grad_images


def _beside(images: list[Tensor] | tuple[Tensor, ...]) -> Tensor:
    return torch.cat(images, dim=1) if len(images) > 1 else images[0]
