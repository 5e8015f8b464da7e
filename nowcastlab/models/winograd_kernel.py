"""The sums of `winograd`, compiled by numba: images to points and back, one row of tiles at a time.

pixels   (B, H, W, C)                 channels last; mirrored, they are read or written from the last to the first
points   (64, rows, across, C)        a chunk of rows of tiles, of all images one after another; `start` is its first
window   (height, size, columns, C)   some rows of an image, the columns by their place in tiles that are `size` apart:
                                      0, size, 2 size, ... then 1, size + 1, ...

In a window and among points, what belongs to the same place of all tiles in a row is one run of numbers. Nearly all
work is sums of such runs, which compile to vector instructions also where channels are few.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nowcastlab.compiled import compiled

Array = np.ndarray[Any, np.dtype[Any]]

# Sums may be reordered and fused, nothing else: NaN and infinity keep their meaning.
_compiled = compiled(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")


@_compiled
def _combine(
    terms: Array, factors: Array, runs: Array, first: int, places: Array, sums: Array, at: int, apart: int, n: int
) -> None:
    """A matrix times runs of n numbers, one a column, which begin at places after `first`.

    No row of it has more than 7 entries. They are `factors`; `terms` are their columns and, last, how many they are.
    """
    # Indices are unsigned: one that may be negative is one that numba wraps around, in loops not vectorised then.
    for row in range(terms.shape[0]):
        y = np.uint64(at + row * apart)
        a, fa = np.uint64(first + places[terms[row, 0]]), factors[row, 0]
        b, fb = np.uint64(first + places[terms[row, 1]]), factors[row, 1]
        c, fc = np.uint64(first + places[terms[row, 2]]), factors[row, 2]
        d, fd = np.uint64(first + places[terms[row, 3]]), factors[row, 3]
        if terms[row, 7] <= 4:
            for k in range(np.uint64(n)):
                sums[y + k] = (fa * runs[a + k] + fb * runs[b + k]) + (fc * runs[c + k] + fd * runs[d + k])
            continue
        e, fe = np.uint64(first + places[terms[row, 4]]), factors[row, 4]
        f, ff = np.uint64(first + places[terms[row, 5]]), factors[row, 5]
        if terms[row, 7] <= 6:
            for k in range(np.uint64(n)):
                four = (fa * runs[a + k] + fb * runs[b + k]) + (fc * runs[c + k] + fd * runs[d + k])
                sums[y + k] = four + (fe * runs[e + k] + ff * runs[f + k])
            continue
        g, fg = np.uint64(first + places[terms[row, 6]]), factors[row, 6]
        for k in range(np.uint64(n)):
            four = (fa * runs[a + k] + fb * runs[b + k]) + (fc * runs[c + k] + fd * runs[d + k])
            sums[y + k] = four + (fe * runs[e + k] + ff * runs[f + k] + fg * runs[g + k])


@_compiled
def _fill(window: Array, pixels: Array, mirrored: bool, image: int, top: int, left: int) -> None:
    """Copy a place of an image, zero outside it."""
    height, width, channels = pixels.shape[1], pixels.shape[2], pixels.shape[3]
    size = window.shape[1]
    for i in range(window.shape[0]):
        y = top + i
        if y < 0 or y >= height:
            window[i] = 0
            continue
        row = pixels[image, height - 1 - y if mirrored else y]
        for place in range(size):
            for j in range(window.shape[2]):
                x = left + place + size * j
                if x < 0 or x >= width:
                    window[i, place, j] = 0
                    continue
                x = width - 1 - x if mirrored else x
                for c in range(channels):
                    window[i, place, j, c] = row[x, c]


@_compiled
def evaluate(
    terms: Array,
    factors: Array,
    size: int,
    pixels: Array,
    mirrored: bool,
    points: Array,
    start: int,
    first: int,
    last: int,
) -> None:
    """The points of tiles of 8 x 8 that lie `size` apart: fills rows of tiles from first to last, one past the end."""
    across, channels = points.shape[2], points.shape[3]
    tiles, margin = -(-pixels.shape[1] // size), (8 - size) // 2
    columns = across + 7 // size
    stripe, n = columns * channels, across * channels
    row, apart, sums = size * stripe, points.shape[1] * n, points.reshape(-1)
    window, half = np.empty((8, size, columns, channels), pixels.dtype), np.empty(8 * row, pixels.dtype)
    down, along = np.empty(8, np.int64), np.empty(8, np.int64)
    for k in range(8):  # a tile's last columns are the next tile's first
        down[k], along[k] = k * row, k % size * stripe + k // size * channels
    for t in range(first, last):
        image = (start + t) // tiles
        _fill(window, pixels, mirrored, image, size * (start + t - image * tiles) - margin, -margin)
        _combine(terms, factors, window.reshape(-1), 0, down, half, 0, row, row)
        for i in range(8):
            _combine(terms, factors, half, i * row, along, sums, 8 * i * apart + t * n, apart, n)


@_compiled
def interpolate(
    terms: Array,
    factors: Array,
    size: int,
    points: Array,
    bias: Array,
    pixels: Array,
    mirrored: bool,
    start: int,
    first: int,
    last: int,
) -> None:
    """The results of each tile from its points: fills the pixels of the rows of tiles from first to last."""
    height, width, channels = pixels.shape[1], pixels.shape[2], pixels.shape[3]
    tiles, n = -(-height // size), points.shape[2] * channels
    apart, runs = points.shape[1] * n, points.reshape(-1)
    half, line = np.empty(size * 8 * n, points.dtype), np.empty(size * n, points.dtype)
    down, along = np.arange(8) * 8 * apart, np.arange(8) * n
    for t in range(first, last):
        image = (start + t) // tiles
        for j in range(8):
            _combine(terms, factors, runs, j * apart + t * n, down, half, j * n, 8 * n, n)
        top = size * (start + t - image * tiles)
        for i in range(min(size, height - top)):
            _combine(terms, factors, half, 8 * i * n, along, line, 0, n, n)
            row = pixels[image, height - 1 - top - i if mirrored else top + i]
            for x in range(width):
                at = (x % size) * n + (x // size) * channels
                to = width - 1 - x if mirrored else x
                for c in range(channels):
                    row[to, c] = line[at + c] + bias[c]


@_compiled
def spread(
    terms: Array, factors: Array, size: int, pixels: Array, points: Array, start: int, first: int, last: int
) -> None:
    """The transpose of `interpolate`: how the results depend on each point."""
    across, channels = points.shape[2], points.shape[3]
    tiles, n = -(-pixels.shape[1] // size), across * channels
    apart, sums = points.shape[1] * n, points.reshape(-1)
    window, half = np.empty((size, size, across, channels), pixels.dtype), np.empty(8 * size * n, pixels.dtype)
    down, along = np.arange(size) * size * n, np.arange(size) * n
    for t in range(first, last):
        image = (start + t) // tiles
        _fill(window, pixels, False, image, size * (start + t - image * tiles), 0)
        _combine(terms, factors, window.reshape(-1), 0, down, half, 0, size * n, size * n)
        for i in range(8):
            _combine(terms, factors, half, i * size * n, along, sums, 8 * i * apart + t * n, apart, n)
