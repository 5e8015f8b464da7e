"""ROVER's three steps as compiled loops for one CPU core, an image at a time; `rover_torch` says the same plainly.

Measured on one core of an AMD EPYC (AVX2), 480 x 480, flow and 20 leads: 38 ms, plain torch 160 ms (`nowcastlab bench
rover` measures it anew). All is float32 in a fixed order, so a forecast does not depend on the batch it is in.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nowcastlab.compiled import compiled
from nowcastlab.models.rover_torch import gaussian_weights

Array = NDArray[np.float32]

# Fused multiply-adds, and nothing else, may round otherwise than written. Copies below are loops and not slices, whose
# assignment takes numba seconds to compile.
_compiled = compiled(fastmath={"contract"}, error_model="numpy")


def structure_tensor(before: Tensor, now: Tensor, *, blur_sigma: float, tensor_sigma: float) -> Tensor:
    tensor = before.new_empty(len(before), 5, *before.shape[-2:])
    blur_half, tensor_half = (_half(sigma) for sigma in (blur_sigma, tensor_sigma))
    for a, b, out in zip(_arrays(before), _arrays(now), _arrays(tensor), strict=True):
        _structure_tensor(a, b, blur_half, tensor_half, out)
    return tensor


def relax(flow: Tensor, tensor: Tensor, *, stiffness: float, sweeps: int) -> None:
    for uv, j in zip(flow.numpy(), _arrays(tensor), strict=True):
        _relax(uv[0], uv[1], j, np.float32(stiffness), sweeps)


def extrapolate(image: Tensor, flow: Tensor, leads: int) -> Tensor:
    forecast = image.new_empty(len(image), leads, *image.shape[-2:])
    for start, uv, out in zip(_arrays(image), _arrays(flow), _arrays(forecast), strict=True):
        _extrapolate(start, uv[0], uv[1], out)
    return forecast


def _arrays(images: Tensor) -> Array:
    return images.contiguous().numpy()


def _half(sigma: float) -> Array:
    """A symmetric filter's weights from the centre outwards."""
    weights = gaussian_weights(sigma)
    return weights[len(weights) // 2 :].to(torch.float32).numpy()


@_compiled
def _structure_tensor(before: Array, now: Array, blur_half: Array, tensor_half: Array, out: Array) -> None:
    before_blurred, now_blurred = np.empty_like(before), np.empty_like(now)
    _blur(before, blur_half, before_blurred)
    _blur(now, blur_half, now_blurred)
    products = np.empty_like(out)
    _products(before_blurred, now_blurred, products)
    for k in range(5):
        _blur(products[k], tensor_half, out[k])


@_compiled
def _blur(image: Array, half: Array, out: Array) -> None:
    """A symmetric separable filter, `half` its weights from the centre outwards; edge pixels repeated outwards."""
    height, width = image.shape
    reach = len(half) - 1
    row = np.empty(width + 2 * reach, np.float32)
    centre = row[reach : reach + width]
    for y in range(height):
        for x in range(width):
            centre[x] = half[0] * image[y, x]
        for k in range(1, reach + 1):
            above, below = image[max(y - k, 0)], image[min(y + k, height - 1)]
            for x in range(width):
                centre[x] += half[k] * (above[x] + below[x])
        for k in range(reach):
            row[k] = centre[0]
            row[reach + width + k] = centre[width - 1]
        line = out[y]
        for x in range(width):
            line[x] = half[0] * centre[x]
        for k in range(1, reach + 1):
            before, after = row[reach - k : reach - k + width], row[reach + k : reach + k + width]
            for x in range(width):
                line[x] += half[k] * (before[x] + after[x])


@_compiled
def _products(before: Array, now: Array, out: Array) -> None:
    """J11, J12, J22, J13, J23, not yet smoothed, from the derivatives [1, -8, 0, 8, -1] / 12 of the first image."""
    height, width = before.shape
    row = np.empty(width + 4, np.float32)
    near, far = np.float32(8 / 12), np.float32(1 / 12)
    for y in range(height):
        a, b = before[max(y - 2, 0)], before[max(y - 1, 0)]
        c, d = before[min(y + 1, height - 1)], before[min(y + 2, height - 1)]
        for x in range(-2, width + 2):
            row[x + 2] = before[y, min(max(x, 0), width - 1)]
        for x in range(width):
            dx = near * (row[x + 3] - row[x + 1]) - far * (row[x + 4] - row[x])
            dy = near * (c[x] - b[x]) - far * (d[x] - a[x])
            dt = now[y, x] - before[y, x]
            out[0, y, x] = dx * dx
            out[1, y, x] = dx * dy
            out[2, y, x] = dy * dy
            out[3, y, x] = dx * dt
            out[4, y, x] = dy * dt


@_compiled
def _relax(u: Array, v: Array, tensor: Array, stiffness: np.float32, sweeps: int) -> None:
    """All red-black sweeps in one pass over memory.

    Half-sweep k may do row r once half-sweep k - 1 has done row r + 1; so the 2 * sweeps of them follow each other down
    the image one row apart, within the cache, and the result is that of whole sweeps.
    """
    height, width = u.shape
    padded = np.zeros((2, height + 2, width + 2), np.float32)  # a frame of zeros: no neighbour needs a test
    factors = np.empty((height, 5, width), np.float32)
    for y in range(height):
        for x in range(width):
            padded[0, y + 1, x + 1] = u[y, x]
            padded[1, y + 1, x + 1] = v[y, x]
            neighbours = np.float32((y > 0) + (y < height - 1) + (x > 0) + (x < width - 1))
            factors[y, 0, x] = np.float32(1) / (neighbours + stiffness * tensor[0, y, x])
            factors[y, 1, x] = np.float32(1) / (neighbours + stiffness * tensor[2, y, x])
            factors[y, 2, x] = stiffness * tensor[1, y, x]
            factors[y, 3, x] = stiffness * tensor[3, y, x]
            factors[y, 4, x] = stiffness * tensor[4, y, x]
    for step in range(height + 2 * sweeps - 1):
        for half_sweep in range(max(0, step - height + 1), min(2 * sweeps, step + 1)):
            y = step - half_sweep
            # red (x + y even) in even half-sweeps, black in odd ones: either way x starts at step % 2
            _relax_row(padded[0, y : y + 3], padded[1, y : y + 3], factors[y], step % 2)
    for y in range(height):
        for x in range(width):
            u[y, x] = padded[0, y + 1, x + 1]
            v[y, x] = padded[1, y + 1, x + 1]


@_compiled
def _relax_row(u: Array, v: Array, factors: Array, first: int) -> None:
    """Every second pixel of the middle one of three rows, from x = `first`."""
    u_scale, v_scale, j12, j13, j23 = factors[0], factors[1], factors[2], factors[3], factors[4]
    u_above, u_row, u_below = u[0], u[1], u[2]
    v_above, v_row, v_below = v[0], v[1], v[2]
    for x in range(first, len(j12), 2):
        u_sum = u_above[x + 1] + u_below[x + 1] + (u_row[x] + u_row[x + 2])
        v_sum = v_above[x + 1] + v_below[x + 1] + (v_row[x] + v_row[x + 2])
        u_new = (u_sum - j12[x] * v_row[x + 1] - j13[x]) * u_scale[x]
        u_row[x + 1] = u_new
        v_row[x + 1] = (v_sum - j12[x] * u_new - j23[x]) * v_scale[x]


@_compiled
def _extrapolate(image: Array, u: Array, v: Array, forecast: Array) -> None:
    """forecast[0] from the image, forecast[1] from forecast[0] ...: im <- bilinear(im, x - flow(x)), zero outside."""
    leads, height, width = forecast.shape
    corner = np.empty(height * width, np.int32)
    weights = np.zeros((4, height * width), np.float32)
    one, zero = np.float32(1), np.float32(0)
    for y in range(height):
        for x in range(width):
            # Beyond these bounds all is zero; a flow that is not a number fails the test as well.
            from_y, from_x = np.float32(y) - v[y, x], np.float32(x) - u[y, x]
            i = y * width + x
            if not (from_y > -1 and from_y < height and from_x > -1 and from_x < width):
                corner[i] = 0  # with the weights of zero
                continue
            top, left = int(np.floor(from_y)), int(np.floor(from_x))
            bottom_weight, right_weight = from_y - np.float32(top), from_x - np.float32(left)
            top_weight, left_weight = one - bottom_weight, one - right_weight
            # On the border the pair of rows (columns) is moved inside, the outer one weighing nothing.
            if top < 0:
                top, top_weight, bottom_weight = 0, bottom_weight, zero
            elif top > height - 2:
                top, top_weight, bottom_weight = height - 2, zero, top_weight
            if left < 0:
                left, left_weight, right_weight = 0, right_weight, zero
            elif left > width - 2:
                left, left_weight, right_weight = width - 2, zero, left_weight
            corner[i] = top * width + left
            weights[0, i] = top_weight * left_weight
            weights[1, i] = top_weight * right_weight
            weights[2, i] = bottom_weight * left_weight
            weights[3, i] = bottom_weight * right_weight
    source = image.ravel()
    for lead in range(leads):
        target = forecast[lead].ravel()
        for i in range(height * width):
            c = corner[i]
            target[i] = (
                weights[0, i] * source[c]
                + weights[1, i] * source[c + 1]
                + weights[2, i] * source[c + width]
                + weights[3, i] * source[c + width + 1]
            )
        source = target
