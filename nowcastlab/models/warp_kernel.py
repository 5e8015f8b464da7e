"""The warp on a CPU, compiled by numba: all links of a pixel in one pass, channels last.

padded  (B, H + 2, W + 2, C)  images with a border of zeros, so that a pixel half outside needs no branch
flow    (B, H, W, 2, L)       U, V in pixels
seen    (B, pixels, L, C)     what each link of each pixel reads, for the pixels from `start` on, row by row

A bilinear read touches 4 runs of C contiguous numbers, which compile to vector instructions; `grid_sample` goes channel
by channel. Measured on one core with 13 links, forward and backward: 3 times faster than `grid_sample` at 8 channels,
10 times at 64.

Coordinates are double precision, weights and sums the field's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from nowcastlab.compiled import compiled

Array = np.ndarray[Any, np.dtype[Any]]

# Sums may be reordered and fused, nothing else: NaN and infinity keep their meaning.
_LOOSE = ("reassoc", "contract", "nsz")
_compiled = compiled(fastmath=set(_LOOSE), error_model="numpy")


@_compiled
def gather(padded: Array, flow: Array, seen: Array, start: int, first: int, last: int) -> None:
    """Fill `seen` from its first pixel to its last, one past the end."""
    height, width, channels = padded.shape[1] - 2, padded.shape[2] - 2, padded.shape[3]
    number = padded.dtype.type
    for b in range(padded.shape[0]):
        for at in range(first, last):
            i = (start + at) // width
            j = (start + at) - i * width
            for link in range(flow.shape[4]):
                x = np.float64(flow[b, i, j, 0, link]) + j
                y = np.float64(flow[b, i, j, 1, link]) + i
                if not (x > -1 and x < width and y > -1 and y < height):
                    # A flow that is not a number is not hidden: a network that diverged should show it.
                    outside = number(0) if x == x and y == y else number(np.nan)
                    for c in range(channels):
                        seen[b, at, link, c] = outside
                    continue
                # Unsigned: an index that may be negative is one that numba wraps around, in loops not vectorised then.
                left, top = np.uint64(np.int64(np.floor(x)) + 1), np.uint64(np.int64(np.floor(y)) + 1)
                right, low = left + np.uint64(1), top + np.uint64(1)
                to_right, to_low = number(x - np.floor(x)), number(y - np.floor(y))
                if to_right == 0 and to_low == 0:  # to the bit, and what nearly all links do before training
                    for c in range(channels):
                        seen[b, at, link, c] = padded[b, top, left, c]
                    continue
                to_left, to_top = number(1) - to_right, number(1) - to_low
                w1, w2, w3, w4 = to_top * to_left, to_top * to_right, to_low * to_left, to_low * to_right
                for c in range(channels):
                    seen[b, at, link, c] = (
                        w1 * padded[b, top, left, c]
                        + w2 * padded[b, top, right, c]
                        + w3 * padded[b, low, left, c]
                        + w4 * padded[b, low, right, c]
                    )


@_compiled
def scatter(
    padded: Array,
    flow: Array,
    grad_seen: Array,
    grad_padded: Array,
    grad_flow: Array,
    start: int,
    first: int,
    last: int,
) -> None:
    """The backward pass of `gather` for the channels from first to last: adds to grad_padded and fills, at its pixels,
    these channels' part of grad_flow.

    By channels, because neighbouring pixels add to the same corners: two threads on the pixels of an image would race.
    """
    height, width, channels = padded.shape[1] - 2, padded.shape[2] - 2, padded.shape[3]
    pixels, links, number = grad_seen.shape[1], flow.shape[4], padded.dtype.type
    field, grad, to = padded.reshape(-1), grad_seen.reshape(-1), grad_padded.reshape(-1)
    across, down = np.uint64(channels), np.uint64(padded.shape[2] * channels)
    begin, eights, end = np.uint64(first), np.uint64(last - (last - first) % 8), np.uint64(last)
    for b in range(padded.shape[0]):
        for at in range(pixels):
            i = (start + at) // width
            j = (start + at) - i * width
            for link in range(links):
                x = np.float64(flow[b, i, j, 0, link]) + j
                y = np.float64(flow[b, i, j, 1, link]) + i
                if not (x > -1 and x < width and y > -1 and y < height):
                    grad_flow[b, i, j, 0, link] = number(0) if x == x else number(np.nan)
                    grad_flow[b, i, j, 1, link] = number(0) if y == y else number(np.nan)
                    continue
                left, top = np.int64(np.floor(x)) + 1, np.int64(np.floor(y)) + 1
                to_right, to_low = number(x - np.floor(x)), number(y - np.floor(y))
                to_left, to_top = number(1) - to_right, number(1) - to_low
                # Where the four corners begin, and what this link of this pixel read.
                p = np.uint64(((b * (height + 2) + top) * (width + 2) + left) * channels)
                q, r, s = p + across, p + down, p + down + across
                g = np.uint64(((b * pixels + at) * links + link) * channels)
                du = dv = number(0)
                for c in range(begin, end):
                    p_q, r_s = field[q + c] - field[p + c], field[s + c] - field[r + c]
                    p_r, q_s = field[r + c] - field[p + c], field[s + c] - field[q + c]
                    du += grad[g + c] * (to_top * p_q + to_low * r_s)
                    dv += grad[g + c] * (to_left * p_r + to_right * q_s)
                grad_flow[b, i, j, 0, link] = du
                grad_flow[b, i, j, 1, link] = dv
                w1, w2, w3, w4 = to_top * to_left, to_top * to_right, to_low * to_left, to_low * to_right
                for c in range(begin, eights, np.uint64(8)):
                    _add_eight(to, p + c, w1, grad, g + c)
                    _add_eight(to, q + c, w2, grad, g + c)
                    _add_eight(to, r + c, w3, grad, g + c)
                    _add_eight(to, s + c, w4, grad, g + c)
                for c in range(eights, end):
                    to[p + c] += w1 * grad[g + c]
                    to[q + c] += w2 * grad[g + c]
                    to[r + c] += w3 * grad[g + c]
                    to[s + c] += w4 * grad[g + c]


@intrinsic
def _add_eight(_: Any, to: Any, at: Any, factor: Any, numbers: Any, start: Any) -> Any:
    """to[at : at + 8] += factor * numbers[start : start + 8], of flat arrays, in vector instructions.

    Left to the compiler, which cannot know that corners are apart, a loop so short takes longer to set up than to run.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        eight, alignment = ir.VectorType(context.get_value_type(to.dtype), 8), to.dtype.bitwidth // 8

        def place(kind: Any, array: Any, index: Any) -> Any:
            pointer = builder.gep(make_array(kind)(context, builder, array).data, [index])
            return builder.bitcast(pointer, eight.as_pointer())

        target = place(to, *arguments[:2])
        nothing, int32 = ir.Constant(eight, ir.Undefined), ir.IntType(32)
        one = builder.insert_element(nothing, arguments[2], ir.Constant(int32, 0))
        factors = builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(int32, 8), [0] * 8))
        added = builder.fmul(factors, builder.load(place(numbers, *arguments[3:]), align=alignment), flags=_LOOSE)
        total = builder.fadd(builder.load(target, align=alignment), added, flags=_LOOSE)
        builder.store(total, target, align=alignment)
        return context.get_dummy_value()

    return types.void(to, at, factor, numbers, start), generate
