"""The fused pass: every count and error of one frame, each pixel fetched from memory once.

A frame is walked row by row. A row fits the first-level cache, so the short loops over it, each simple enough to become
vector instructions, cost far less than one pass over the frame per threshold and score. (A joint histogram of
categories is one loop instead of many, but a scalar one, and was slower.)

Sums are float64 and have one fixed order: down each column first, then along the columns. No reassociation is allowed
the compiler, so a frame's numbers are the same bits alone or in a batch, on one thread or many, on any machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nowcastlab.compiled import compiled
from nowcastlab.units import NOISE_BELOW_PIXEL

# Kept apart by a few numbers, rows of a width like 512 do not fall on the same cache lines.
_PAD = 8
# Stretches of a row begin and end at multiples of this, so that vector loops have little left over.
_STEP = 16
# Rows after which counters of one byte a column must be emptied.
_FULL = 255


def stretches(excluded: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(y, 2): from where to where a row must be walked so that no pixel of it, nor of the rows beside it, is left out.

    A round radar leaves a fifth of a square grid excluded. The rows beside it count because each row is also read as
    the one above the next.
    """
    height, width = excluded.shape
    there = np.zeros((height + 2, width), np.bool_)
    for shift in range(3):
        there[shift : shift + height] |= ~excluded
    there = there[1:-1]
    first, last = there.argmax(1), width - there[:, ::-1].argmax(1)
    first, last = first // _STEP * _STEP, np.minimum(-(-last // _STEP) * _STEP, width)
    return np.where(there.any(1, keepdims=True), np.stack([first, last], 1), 0)


@compiled()
def score_frame(
    predicted: NDArray[np.float32],  # (y, x), p
    true: NDArray[np.uint8],  # (y, x)
    included: NDArray[np.uint8],  # (y, x), 1 where the map does not exclude the pixel
    walked: NDArray[np.int64],  # (y, 2), the map's `stretches`
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
        left, right = walked[y]
        length = right - left
        p, level, ok = predicted[y, left:right], true[y, left:right], included[y, left:right]
        m, q, t = masks[here, left:], preds[here, left:], trues[here, left:]
        m_above, q_above, t_above = masks[above, left:], preds[above, left:], trues[above, left:]
        sse, sae, bsse, bsae, gdl = sums[0, left:], sums[1, left:], sums[2, left:], sums[3, left:], sums[4, left:]

        for x in range(length):
            valid[x] = ok[x] & ((level[x] == 0) | (level[x] >= NOISE_BELOW_PIXEL))
        for x in range(length):
            pixels += valid[x]
        for x in range(length):
            weight[x] = valid[x]
        for i in range(len(weight_level)):
            start, step = weight_level[i], weight_step[i]
            for x in range(length):
                weight[x] += step if level[x] >= start else np.uint8(0)
        for x in range(length):
            m[x] = valid[x]
        m[length] = 0  # beyond the stretch, and above the first row, nothing is valid
        for x in range(length):
            t[x] = level[x]
        for x in range(length):
            # what lies under the mask may be anything, even NaN: it is the truth from here on, an error of 0
            q[x] = 255.0 * p[x] if valid[x] else t[x]

        for x in range(length):
            d = q[x] - t[x]
            absolute, squared, w = abs(d), d * d, np.float64(weight[x])
            sse[x] += squared
            sae[x] += absolute
            bsse[x] += w * squared
            bsae[x] += w * absolute
        for x in range(length):
            across = abs(abs(q[x + 1] - q[x]) - abs(t[x + 1] - t[x])) * (m[x] * m[x + 1])
            up = abs(abs(q[x] - q_above[x]) - abs(t[x] - t_above[x])) * (m[x] * m_above[x])
            gdl[x] += across + up

        for j in range(thresholds):
            cut, start = first_p[j], first_level[j]
            hits, forecasts, observations = tally[3 * j], tally[3 * j + 1], tally[3 * j + 2]
            for x in range(length):
                forecast[x] = (p[x] >= cut) & valid[x]
            for x in range(length):
                observed[x] = (level[x] >= start) & valid[x]
            for x in range(length):
                hits[x] += forecast[x] & observed[x]
            for x in range(length):
                forecasts[x] += forecast[x]
            for x in range(length):
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
