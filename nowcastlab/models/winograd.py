"""Convolutions in a fraction of the multiplications, on a CPU.

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
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

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
CHUNK_BYTES = 2 << 20  # of points at a time: they stay in cache from one stage to the next

_by_rows = partial(share, at_least=16)  # rows of tiles that are worth a thread's while, on two cores


def saves(kernel: int, height: int, width: int, inputs: int, outputs: int) -> bool:
    """Whether this is faster than torch's own."""
    if winograd_kernel is None or kernel not in SIZES:
        return False
    products = 64 * _tiles(height, SIZES[kernel]) * _tiles(width, SIZES[kernel])
    saved = (kernel**2 * height * width - products) * inputs * outputs
    return saved >= LEAST_SAVED * products * (inputs + outputs)


def convolve(x: Tensor, points: Tensor, bias: Tensor | None, size: int, *, mirrored: bool = False) -> Tensor:
    """points (64, C, out). Mirrored, the image is turned by half a turn before and after: as if the weights were."""
    pixels = _pixels(x)
    out = torch.empty(x.shape[0], points.shape[2], *x.shape[2:], dtype=x.dtype, memory_format=torch.channels_last)
    to = out.permute(0, 2, 3, 1).numpy()
    offset = (x.new_zeros(points.shape[2]) if bias is None else bias.detach()).numpy()
    tile, results, _ = terms(size, pixels.dtype)
    for start, seen, made in _chunks(x, points.shape[1], points.shape[2], size):
        rows = seen.shape[1]
        _by_rows(rows, winograd_kernel.evaluate, *tile, size, pixels, mirrored, seen.numpy(), start)
        torch.bmm(seen.flatten(1, 2), points, out=made.flatten(1, 2))
        _by_rows(rows, winograd_kernel.interpolate, *results, size, made.numpy(), offset, to, mirrored, start)
    return out


def add_points_gradient(total: Tensor, x: Tensor, grad: Tensor, size: int) -> None:
    """How the results depend on the weights' points, added to (64, out, C)."""
    pixels, grad_pixels = _pixels(x), _pixels(grad)
    tile, _, back = terms(size, pixels.dtype)
    for start, seen, made in _chunks(x, x.shape[1], grad.shape[1], size):
        rows = seen.shape[1]
        _by_rows(rows, winograd_kernel.evaluate, *tile, size, pixels, False, seen.numpy(), start)
        _by_rows(rows, winograd_kernel.spread, *back, size, grad_pixels, made.numpy(), start)
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
    points = weight.new_empty(64, weight.shape[0] * weight.shape[1])
    # Given a place, here and below, autocast does not lower the precision.
    return torch.mm(both, weight.reshape(-1, both.shape[1]).t(), out=points).view(64, *weight.shape[:2])


def weight_gradient(points: Tensor, kernel: int) -> Tensor:
    """How weights' points depend on weights: (64, out, C) back to (out, C, kernel, kernel)."""
    both, (_, out, channels) = _both_sides(9 - kernel, points.dtype), points.shape
    grad = points.new_empty(out * channels, kernel**2)
    return torch.mm(points.flatten(1).t(), both, out=grad).view(out, channels, kernel, kernel)


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
