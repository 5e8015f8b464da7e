"""The warp on a CPU, compiled by numba: all links of a pixel in one pass, channels last.

padded  (H + 2, W + 2, C)  one image with a border of zeros, so that a pixel half outside needs no branch
flow    (2, L, H, W)       U, V in pixels
seen    (pixels, L, C)     what each link of each pixel reads, for the pixels from `start` on, row by row

A bilinear read touches 4 runs of C contiguous numbers, which compile to vector instructions; `grid_sample` goes channel
by channel. Measured on one core, L = 13, forward and backward: 5 to 9 times faster than `grid_sample`.

The loops run without the interpreter lock and own no threads: the caller splits the work. Coordinates are double
precision, weights and sums the field's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, np.dtype[Any]]

# Sums may be reordered and fused, nothing else: NaN and infinity keep their meaning.
_LOOSE = {"reassoc", "contract", "nsz"}


def _compiled(function: Callable[..., None]) -> Callable[..., None]:
    try:
        return njit(nogil=True, cache=True, fastmath=_LOOSE, error_model="numpy")(function)
    except RuntimeError:  # nowhere to keep the compiled code: compile anew in each process
        return njit(nogil=True, fastmath=_LOOSE, error_model="numpy")(function)


@_compiled
def gather(padded: Array, flow: Array, seen: Array, start: int) -> None:
    """Fill `seen`, as many pixels as it holds."""
    height, width, channels = padded.shape[0] - 2, padded.shape[1] - 2, padded.shape[2]
    number = padded.dtype.type
    for at in range(seen.shape[0]):
        i = (start + at) // width
        j = (start + at) - i * width
        for link in range(flow.shape[1]):
            x = np.float64(flow[0, link, i, j]) + j
            y = np.float64(flow[1, link, i, j]) + i
            if not (x > -1 and x < width and y > -1 and y < height):
                outside = number((x - x) + (y - y))  # zero; but a flow that is not a number is not hidden
                for c in range(channels):
                    seen[at, link, c] = outside
                continue
            # Unsigned: an index that may be negative would be wrapped around, and the loops not vectorised.
            left, top = np.uint64(np.int64(np.floor(x)) + 1), np.uint64(np.int64(np.floor(y)) + 1)
            right, low = left + np.uint64(1), top + np.uint64(1)
            to_right, to_low = number(x - np.floor(x)), number(y - np.floor(y))
            if to_right == 0 and to_low == 0:  # to the bit, and what nearly all links do before training
                for c in range(channels):
                    seen[at, link, c] = padded[top, left, c]
                continue
            to_left, to_top = number(1) - to_right, number(1) - to_low
            a, b, d, e = to_top * to_left, to_top * to_right, to_low * to_left, to_low * to_right
            for c in range(channels):
                seen[at, link, c] = (
                    a * padded[top, left, c]
                    + b * padded[top, right, c]
                    + d * padded[low, left, c]
                    + e * padded[low, right, c]
                )


@_compiled
def scatter(padded: Array, flow: Array, grad_seen: Array, grad_padded: Array, grad_flow: Array, start: int) -> None:
    """The backward pass of `gather`: adds to grad_padded, fills grad_flow at its pixels.

    Neighbours add to the same corners, so an image, or a slice of its channels, belongs to one thread.
    """
    height, width, channels = padded.shape[0] - 2, padded.shape[1] - 2, padded.shape[2]
    number = padded.dtype.type
    for at in range(grad_seen.shape[0]):
        i = (start + at) // width
        j = (start + at) - i * width
        for link in range(flow.shape[1]):
            x = np.float64(flow[0, link, i, j]) + j
            y = np.float64(flow[1, link, i, j]) + i
            if not (x > -1 and x < width and y > -1 and y < height):
                grad_flow[0, link, i, j] = number((x - x) + (y - y))
                grad_flow[1, link, i, j] = number((x - x) + (y - y))
                continue
            left, top = np.uint64(np.int64(np.floor(x)) + 1), np.uint64(np.int64(np.floor(y)) + 1)
            right, low = left + np.uint64(1), top + np.uint64(1)
            to_right, to_low = number(x - np.floor(x)), number(y - np.floor(y))
            to_left, to_top = number(1) - to_right, number(1) - to_low
            du = dv = number(0)
            for c in range(channels):
                g = grad_seen[at, link, c]
                p, q = padded[top, left, c], padded[top, right, c]
                r, s = padded[low, left, c], padded[low, right, c]
                du += g * (to_top * (q - p) + to_low * (s - r))
                dv += g * (to_left * (r - p) + to_right * (s - q))
            grad_flow[0, link, i, j] = du
            grad_flow[1, link, i, j] = dv
            a, b, d, e = to_top * to_left, to_top * to_right, to_low * to_left, to_low * to_right
            # Four loops, each with one target, because the compiler cannot know that the corners are apart.
            for c in range(channels):
                grad_padded[top, left, c] += a * grad_seen[at, link, c]
            for c in range(channels):
                grad_padded[top, right, c] += b * grad_seen[at, link, c]
            for c in range(channels):
                grad_padded[low, left, c] += d * grad_seen[at, link, c]
            for c in range(channels):
                grad_padded[low, right, c] += e * grad_seen[at, link, c]
