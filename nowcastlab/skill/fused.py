"""The fused pass: every count and error of one frame, each pixel fetched from memory once.

A frame is walked row by row. A row fits the first-level cache, so the short loops over it, each simple enough to become
vector instructions, cost far less than one pass over the frame per threshold and score. (A joint histogram of
categories is one loop instead of many, but a scalar one, and was slower.)

Sums are float64 and have one fixed order: down each column first, then along the columns. No reassociation is allowed
the compiler, so a frame's numbers are the same bits alone or in a batch, on one thread or many, on any machine.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from nowcastlab.units import NOISE_BELOW_PIXEL

# Kept apart by a few numbers, rows of a width like 512 do not fall on the same cache lines.
_PAD = 8
# Rows after which counters of one byte a column must be emptied.
_FULL = 255


@njit(nogil=True, cache=True)
def score_frame(
    predicted: NDArray[np.float32],  # (y, x), p
    true: NDArray[np.uint8],  # (y, x)
    included: NDArray[np.uint8],  # (y, x), 1 where the map does not exclude the pixel
    first_p: NDArray[np.float32],
    first_level: NDArray[np.uint8],
    weight_level: NDArray[np.uint8],
    weight_step: NDArray[np.uint8],
    counts: NDArray[np.int64],  # out, (4, threshold): TP, FN, FP, TN
    errors: NDArray[np.float64],  # out, (5): MSE, MAE, B-MSE, B-MAE, GDL
) -> None:
    height, width = predicted.shape
    thresholds = len(first_p)
    sums = np.zeros((5, width + _PAD))
    sse, sae, bsse, bsae, gdl = sums[0], sums[1], sums[2], sums[3], sums[4]
    tally = np.zeros((3 * thresholds, width), np.uint8)
    valid = np.empty(width, np.uint8)
    weight = np.empty(width, np.uint8)
    forecast = np.empty(width, np.uint8)
    observed = np.empty(width, np.uint8)
    # This row and the one above, in levels rather than p: exact for the truth, and scaled once at the end.
    masks = np.zeros((2, width + _PAD))
    preds = np.zeros((2, width + _PAD))
    trues = np.zeros((2, width + _PAD))
    counts[:] = 0
    pixels = 0
    for y in range(height):
        here, above = y & 1, 1 - (y & 1)
        p, level, ok = predicted[y], true[y], included[y]
        m, q, t = masks[here], preds[here], trues[here]
        m_above, q_above, t_above = masks[above], preds[above], trues[above]

        for x in range(width):
            valid[x] = ok[x] & ((level[x] == 0) | (level[x] >= NOISE_BELOW_PIXEL))
        for x in range(width):
            pixels += valid[x]
        for x in range(width):
            weight[x] = valid[x]
        for i in range(len(weight_level)):
            start, step = weight_level[i], weight_step[i]
            for x in range(width):
                weight[x] += step if level[x] >= start else np.uint8(0)
        for x in range(width):
            m[x] = valid[x]
        for x in range(width):
            t[x] = level[x]
        for x in range(width):
            # what lies under the mask may be anything, even NaN: it is the truth from here on, an error of 0
            q[x] = 255.0 * p[x] if valid[x] else t[x]

        for x in range(width):
            d = q[x] - t[x]
            absolute, squared, w = abs(d), d * d, np.float64(weight[x])
            sse[x] += squared
            sae[x] += absolute
            bsse[x] += w * squared
            bsae[x] += w * absolute
        for x in range(width):  # past the last column, and above the first row, the mask is 0
            right = abs(abs(q[x + 1] - q[x]) - abs(t[x + 1] - t[x])) * (m[x] * m[x + 1])
            up = abs(abs(q[x] - q_above[x]) - abs(t[x] - t_above[x])) * (m[x] * m_above[x])
            gdl[x] += right + up

        for j in range(thresholds):
            cut, start = first_p[j], first_level[j]
            hits, forecasts, observations = tally[3 * j], tally[3 * j + 1], tally[3 * j + 2]
            for x in range(width):
                forecast[x] = (p[x] >= cut) & valid[x]
            for x in range(width):
                observed[x] = (level[x] >= start) & valid[x]
            for x in range(width):
                hits[x] += forecast[x] & observed[x]
            for x in range(width):
                forecasts[x] += forecast[x]
            for x in range(width):
                observations[x] += observed[x]
        if y % _FULL == _FULL - 1 or y == height - 1:
            for j in range(thresholds):
                hit, fore, obs = 0, 0, 0
                for x in range(width):
                    hit += tally[3 * j, x]
                    fore += tally[3 * j + 1, x]
                    obs += tally[3 * j + 2, x]
                counts[0, j] += hit
                counts[1, j] += obs - hit
                counts[2, j] += fore - hit
            tally[:] = 0

    for j in range(thresholds):
        counts[3, j] = pixels - counts[0, j] - counts[1, j] - counts[2, j]
    for i in range(5):
        total = 0.0
        for x in range(width):
            total += sums[i, x]
        errors[i] = total / (255.0 * 255.0 if i == 0 or i == 2 else 255.0)
