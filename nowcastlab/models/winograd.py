"""Convolutions in a fraction of the multiplications, on a CPU: what recurrent cells are made of.

A tile of 8 x 8 inputs gives 4 x 4 results of a 5x5 kernel, which directly takes 16 x 25 multiplications a pair of
channels. By the algorithm of Toom, Cook and Winograd (Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural
Networks") it takes 64: along each side tile and kernel are polynomials, evaluated at 8 points and multiplied point by
point, which over all tiles and channels is a matrix product; the results are read off the products. A 3x3 kernel gives
6 x 6 results a tile, of the same points.

x        (B, C, H, W), channels last in memory
points   (64, out, C) of weights, (64, rows of tiles, tiles across, channels) of images

Sums are rounded otherwise than directly: in the root mean square results and gradients are off by 2e-6 to 5e-6 of their
deviation at 32 channels and by 4e-6 to 8e-6 at 192, direct ones by 2e-7 to 9e-7. The points are those of all small
fractions that are off the least. One input that is not a number spoils its tiles, not only what it reaches.

Measured on one core of an AMD EPYC, forward and backward, as a share of torch's own time: 5x5 0.35 at 64 -> 192
channels, 0.6 at 32 -> 32, 0.7 to 0.9 at 16 -> 32, nothing gained at 8; 3x3 0.6 to 0.9. Keeping an image's points for
the backward pass gains nothing. GPUs have ways of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nowcastlab.models.threads import share

try:
    from nowcastlab.models import winograd_kernel
except ImportError:  # numba does not exist for every Python
    winograd_kernel = None  # type: ignore[assignment]

Array = np.ndarray[Any, np.dtype[Any]]

POINTS = (0, 1, -1, 2, -2, 0.5, -0.5)  # and infinity
SIZES = {3: 6, 5: 4}  # how many results a tile gives along a side, by kernel
LEAST_SAVED = 50  # multiplications for each number that goes to points or comes back: below that nothing is gained
CACHE_WAY_BYTES = 128 << 10  # `interpolate` reads 8 runs at once, which must not push each other out of the cache
KEPT_BYTES = 1 << 20  # of weights' points, from the way there to the way back
LEAST_ROWS = 4  # of tiles that are worth a thread's while
CHUNK_BYTES = 2 << 20  # of points at a time: they stay in cache from one stage to the next


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
            winograd_kernel is not None
            and kernel in SIZES
            and self.kernel_size == (kernel, kernel)
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
        inputs, outputs, (height, width) = sum(image.shape[1] for image in images), self.out_channels, x.shape[2:]
        products = 64 * _tiles(height, SIZES[kernel]) * _tiles(width, SIZES[kernel])
        saved = (kernel**2 * height * width - products) * inputs * outputs
        return saved >= LEAST_SAVED * products * (inputs + outputs)


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


# --- the algorithm


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
            self.points = weight_points(weight)
        return self.points

    def add(self, x: Tensor, grad: Tensor, size: int) -> None:
        task = torch._C._current_graph_task_id()
        if self.total is None or self.task != task:  # another pass may have failed on its way to the weights
            self.total, self.task = x.new_zeros(64, grad.shape[1], x.shape[1]), task
        add_points_gradient(self.total, x, grad, size)


class _Points(torch.autograd.Function):
    """`weight_points`. Their gradient is not handed over, but taken from where the steps have added theirs."""

    @staticmethod
    def forward(ctx: Any, way_back: _WayBack, weight: Tensor) -> Tensor:
        ctx.set_materialize_grads(False)
        ctx.way_back, ctx.shape = way_back, weight.shape
        points = weight_points(weight)
        if points.nbytes <= KEPT_BYTES:
            way_back.points = points.detach()
        return points

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *nothing: None) -> tuple[None, Tensor | None]:
        total, ctx.way_back.total, ctx.way_back.points = ctx.way_back.total, None, None
        if total is None:
            return None, None
        both = _both_sides(9 - ctx.shape[2], total.dtype)
        return None, (total.flatten(1).t() @ both).view(ctx.shape)


class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, way_back: _WayBack, weight: Tensor, points: Tensor, bias: Tensor | None, *images: Tensor
    ) -> Tensor:
        ctx.save_for_backward(weight, *images)
        ctx.way_back = way_back
        return convolve(_beside(images), points.transpose(1, 2), bias, SIZES[weight.shape[2]])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        weight, *images = ctx.saved_tensors
        grad, size = grads[0], SIZES[weight.shape[2]]
        _, _, needs_points, needs_bias, *need = ctx.needs_input_grad
        grad_images: Sequence[Tensor | None] = [None] * len(images)
        if any(need):
            together = convolve(grad, ctx.way_back.of(weight), None, size, mirrored=True)
            grad_images = together.split([image.shape[1] for image in images], dim=1)
        if needs_points:
            ctx.way_back.add(_beside(images), grad, size)
        return None, None, None, grad.sum(dim=(0, 2, 3)) if needs_bias else None, *grad_images


def _beside(images: list[Tensor] | tuple[Tensor, ...]) -> Tensor:
    return torch.cat(images, dim=1) if len(images) > 1 else images[0]


def convolve(x: Tensor, points: Tensor, bias: Tensor | None, size: int, *, mirrored: bool = False) -> Tensor:
    """points (64, C, out). Mirrored, the image is turned by half a turn before and after: as if the weights were."""
    pixels = _pixels(x)
    out = torch.empty(x.shape[0], points.shape[2], *x.shape[2:], dtype=x.dtype, memory_format=torch.channels_last)
    to = out.permute(0, 2, 3, 1).numpy()
    offset = (x.new_zeros(points.shape[2]) if bias is None else bias.detach()).numpy()
    tile, results, _ = terms(size, pixels.dtype)
    for start, seen, made in _chunks(x, points.shape[1], points.shape[2], size):
        rows = seen.shape[1]
        share(rows, winograd_kernel.evaluate, *tile, size, pixels, mirrored, seen.numpy(), start, at_least=LEAST_ROWS)
        torch.bmm(seen.flatten(1, 2), points, out=made.flatten(1, 2))
        share(
            rows,
            winograd_kernel.interpolate,
            *results,
            size,
            made.numpy(),
            offset,
            to,
            mirrored,
            start,
            at_least=LEAST_ROWS,
        )
    return out


def add_points_gradient(total: Tensor, x: Tensor, grad: Tensor, size: int) -> None:
    """How the results depend on the weights' points, added to (64, out, C)."""
    pixels, grad_pixels = _pixels(x), _pixels(grad)
    tile, _, back = terms(size, pixels.dtype)
    for start, seen, made in _chunks(x, x.shape[1], grad.shape[1], size):
        rows = seen.shape[1]
        share(rows, winograd_kernel.evaluate, *tile, size, pixels, False, seen.numpy(), start, at_least=LEAST_ROWS)
        share(rows, winograd_kernel.spread, *back, size, grad_pixels, made.numpy(), start, at_least=LEAST_ROWS)
        total.baddbmm_(made.flatten(1, 2).transpose(1, 2), seen.flatten(1, 2))


def _tiles(side: int, size: int) -> int:
    return -(-side // size)


def _pixels(x: Tensor) -> Array:
    """(B, H, W, C) of contiguous memory: no copy of what is channels last."""
    return x.detach().permute(0, 2, 3, 1).contiguous().numpy()


def _chunks(x: Tensor, inputs: int, outputs: int, size: int) -> Iterator[tuple[int, Tensor, Tensor]]:
    """The first row of tiles, and room for the points of some rows, before the product and after it."""
    batch, _, height, width = x.shape
    rows, across = batch * _tiles(height, size), _tiles(width, size)
    row_bytes = 64 * across * (inputs + outputs) * x.element_size()
    many = -(-rows // min(rows, max(1, round(rows * row_bytes / CHUNK_BYTES))))
    if 8 * many * across * outputs * x.element_size() % CACHE_WAY_BYTES == 0 and many < rows:
        many += 1
    rooms = [x.new_empty(64, many, across, channels) for channels in (inputs, outputs)]
    for start in range(0, rows, many):
        if rows - start < many:  # what is left
            shape = 64, rows - start, across
            rooms = [room.flatten()[: math.prod(shape) * room.shape[3]].view(*shape, -1) for room in rooms]
        yield start, rooms[0], rooms[1]


# --- its matrices


def matrices(size: int) -> tuple[Array, Array, Array]:
    """Along one side: what gives a tile's points (8, 8), the results from points (size, 8), the weights' points.

    A point of the weights is their polynomial's value there, divided by the product of its distances to the others; at
    infinity it is the last weight. A tile's are the sums that make the two a correlation.
    """
    p = np.array(POINTS)
    others = [np.delete(p, k) for k in range(7)]
    tile = np.array([[*np.poly(rest)[::-1], 0] for rest in others] + [np.poly(p)[::-1]])
    distances = np.array([np.prod(x - rest) for x, rest in zip(p, others, strict=True)])
    taps = 9 - size
    weights = np.vstack([np.vander(p, taps, increasing=True) / distances[:, None], np.eye(taps)[-1]])
    results = np.vstack([np.vander(p, size, increasing=True), np.eye(size)[-1]]).T
    return tile, results, weights


def weight_points(weight: Tensor) -> Tensor:
    """(out, C, kernel, kernel) to (64, out, C)."""
    both = _both_sides(9 - weight.shape[2], weight.dtype)
    return (both @ weight.reshape(-1, both.shape[1]).t()).view(64, *weight.shape[:2])


@cache
def _both_sides(size: int, dtype: torch.dtype) -> Tensor:
    _, _, weights = matrices(size)
    with torch.inference_mode(False):  # a training may follow the forecast that asks first
        return torch.from_numpy(np.kron(weights, weights)).to(dtype)


@cache
def terms(size: int, dtype: np.dtype[Any]) -> tuple[Any, Any, Any]:
    """The matrices for tiles, for results, and for the way back from results, as the kernel takes them."""
    tile, results, _ = matrices(size)
    return _terms(tile.astype(dtype)), _terms(results.astype(dtype)), _terms(results.T.astype(dtype))


def _terms(matrix: Array) -> tuple[Array, Array]:
    terms, factors = np.zeros((len(matrix), 8), np.int64), np.zeros((len(matrix), 7), matrix.dtype)
    terms[:, 7] = counts = np.count_nonzero(matrix, axis=1)
    for row, count in enumerate(counts):
        (terms[row, :count],) = matrix[row].nonzero()
        factors[row, :count] = matrix[row, terms[row, :count]]
    return terms, factors
