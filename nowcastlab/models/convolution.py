"""The convolutions that recurrent cells are made of: torch's, done by points on a CPU where that is faster.

How, is in `winograd`. Here is what makes a layer of it: when it is used, gradients, and what is worked out once for all
steps of a sequence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial, reduce
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nowcastlab.models import winograd


class Conv2d(nn.Conv2d):
    """A convolution like torch's, done by points where that is faster."""

    keeping = False  # see `weights_kept`
    kept: _Weights | None = None

    def forward(self, x: Tensor, *beside: tuple[Conv2d, Tensor]) -> Tensor:
        """The convolution of x. Added to it, in the same pass, are those of other layers like this one, each of an
        image of its own."""
        layers, images = (self, *(layer for layer, _ in beside)), (x, *(image for _, image in beside))
        if beside:
            _check_alike(layers, images)
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


def _check_alike(layers: tuple[Conv2d, ...], images: tuple[Tensor, ...]) -> None:
    """So that they can be one convolution."""
    ways = {
        (one.out_channels, one.kernel_size, one.padding, one.padding_mode, one.stride, one.dilation) for one in layers
    }
    shapes = {(image.shape[0], *image.shape[2:]) for image in images}
    channels = [image.shape[1] for image in images]
    expected = [one.in_channels for one in layers]
    if len(ways) > 1 or len(shapes) > 1 or channels != expected or any(one.groups > 1 for one in layers):
        raise ValueError(f"layers side by side must be alike: {layers}, of images {[tuple(i.shape) for i in images]}")


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
        self.serves = layers, torch.is_grad_enabled()
        self.weight, self.bias = layers[0].weight, layers[0].bias
        if len(layers) > 1:
            self.weight = torch.cat([layer.weight for layer in layers], dim=1)
            biases = [layer.bias for layer in layers if layer.bias is not None]
            # Not a stack's sum, whose gradients would share their memory.
            self.bias = reduce(torch.add, biases) if biases else None
        self.way_back = _WayBack()

    def serve(self, layers: tuple[Conv2d, ...]) -> bool:
        # Another thread may keep the same without a gradient, for a forecast.
        return self.serves == (layers, torch.is_grad_enabled())

    @cached_property
    def points(self) -> Tensor:
        return _Points.apply(self.way_back, self.weight)


# --- gradients


class _WayBack:
    """What the steps of a sequence share in a backward pass: points of the weights, and the sum of their gradients.

    One sum a step, left to autograd to add up, would take another 4% of a narrow network's time and 20 MB of a wide
    one's memory. Points are worked out anew: those of all layers, kept from the way there to the way back, would fill
    some 50 MB.
    """

    def __init__(self) -> None:
        self.passes: dict[int, _Pass] = {}  # there may be several at a time, of threads or one within another

    def now(self) -> _Pass:
        task = torch._C._current_graph_task_id()
        if task not in self.passes:
            self.passes[task] = _Pass()
            # For passes that nobody asks for the weights' gradient.
            torch.autograd.Variable._execution_engine.queue_callback(partial(self.over, task))
        return self.passes[task]

    def over(self, task: int) -> None:
        self.passes.pop(task, None)


class _Pass:
    points: Tensor | None = None
    total: Tensor | None = None


class _Points(torch.autograd.Function):
    """`winograd.weight_points`. Their gradient is not handed over, but taken from where the steps have added theirs."""

    @staticmethod
    def forward(ctx: Any, way_back: _WayBack, weight: Tensor) -> Tensor:
        ctx.set_materialize_grads(False)
        ctx.way_back, ctx.kernel = way_back, weight.shape[2]
        return winograd.weight_points(weight)

    @staticmethod
    def backward(ctx: Any, *nothing: None) -> tuple[None, Tensor | None]:
        total = ctx.way_back.now().total
        ctx.way_back.over(torch._C._current_graph_task_id())
        if total is None:
            return None, None
        grad = winograd.weight_gradient(total, ctx.kernel)
        return None, _NotTwice.apply(grad.requires_grad_()) if torch.is_grad_enabled() else grad


class _NotTwice(torch.autograd.Function):
    """What `once_differentiable` is to other gradients."""

    @staticmethod
    def forward(ctx: Any, grad: Tensor) -> Tensor:
        return grad.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> None:
        raise RuntimeError("the gradient of these convolutions cannot be differentiated once more")


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
        grad, size, here = grads[0], winograd.SIZES[weight.shape[2]], ctx.way_back.now()
        _, _, needs_points, needs_bias, *need = ctx.needs_input_grad
        grad_images: Sequence[Tensor | None] = [None] * len(images)
        if any(need):
            points = here.points = winograd.weight_points(weight) if here.points is None else here.points
            together = winograd.convolve(grad, points, None, size, mirrored=True)
            grad_images = together.split([image.shape[1] for image in images], dim=1)
        if needs_points:
            if here.total is None:
                here.total = weight.new_zeros(64, *weight.shape[:2])
            winograd.add_points_gradient(here.total, _beside(images), grad, size)
        return None, None, None, grad.sum(dim=(0, 2, 3)) if needs_bias else None, *grad_images


def _beside(images: list[Tensor] | tuple[Tensor, ...]) -> Tensor:
    return torch.cat(images, dim=1) if len(images) > 1 else images[0]
