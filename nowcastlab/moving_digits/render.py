"""From a motion to frames. Compiled, one core, and the same bits whatever else is in the batch.

The release warps each digit over the whole frame; here each is drawn into the small box it covers, which is what makes
thousands of sequences a second possible.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nowcastlab.compiled import compiled

PERIOD = 5  # frames after which growing turns into shrinking, and dimming into brightening


@compiled()
def render(
    images: NDArray[np.uint8],
    heights: NDArray[np.int64],
    widths: NDArray[np.int64],
    digit: NDArray[np.int64],
    corner: NDArray[np.float64],
    velocity: NDArray[np.float64],
    rotation_rad: NDArray[np.float64],
    scale: NDArray[np.float64],
    illumination: NDArray[np.float64],
    margin: float,
    frames: NDArray[np.float32],
) -> None:
    """Draw n sequences of d digits into `frames` (n, time, size, size), which must come in as zeros.

    `images` (count, y, x) holds each digit in its top-left `heights` x `widths`. Positions are pixels of the frame.

    Frame 0 is as drawn: no turn, no scale, full light. From frame to frame a digit moves by its velocity and turns. In
    frames 1-4 its size is divided by `scale` and its light multiplied by `illumination` m, each time anew; in frames
    5-9 the other way round, and so on by turns, so that the light swings between m^4 and 1/m. A centre that would leave
    [margin, size - margin] is put back on the edge and that part of the velocity changes sign, whichever way it
    pointed.
    """
    size = frames.shape[-1]
    low, high = margin, size - margin
    for n in range(digit.shape[0]):
        for d in range(digit.shape[1]):
            image = images[digit[n, d]]
            height, width = heights[digit[n, d]], widths[digit[n, d]]
            x = corner[n, d, 0] * (size - width) + width / 2.0
            y = corner[n, d, 1] * (size - height) + height / 2.0
            vx, vy = velocity[n, d, 0], velocity[n, d, 1]
            zoom, light, angle = 1.0, 1.0, 0.0
            for t in range(frames.shape[1]):
                if t > 0:
                    if (t // PERIOD) % 2 == 0:
                        zoom /= scale[n, d]
                        light *= illumination[n]
                    else:
                        zoom *= scale[n, d]
                        light /= illumination[n]
                    angle += rotation_rad[n, d]
                    x += vx
                    y += vy
                    if x < low or x > high:
                        x = min(max(x, low), high)
                        vx = -vx
                    if y < low or y > high:
                        y = min(max(y, low), high)
                        vy = -vy
                _draw(image, height, width, x, y, zoom, angle, light / 255.0, frames[n, t])


@compiled()
def _draw(
    image: NDArray[np.uint8],
    height: int,
    width: int,
    x: float,
    y: float,
    zoom: float,
    angle: float,
    gain: float,
    frame: NDArray[np.float32],
) -> None:
    """Put one digit's centre at (x, y), turned and scaled about it; where digits overlap the brighter one shows.

    Every frame pixel looks back to where it came from in the image and takes it bilinearly; outside the image is zero.
    Pixel i has its centre at coordinate i, and the digit its centre at (width/2, height/2), as in the release.
    """
    size = frame.shape[0]
    cos, sin = math.cos(angle) * zoom, math.sin(angle) * zoom
    half_x, half_y = width / 2.0 + 1.0, height / 2.0 + 1.0  # one pixel more: the rim fades to zero over it
    reach_x = abs(cos) * half_x + abs(sin) * half_y
    reach_y = abs(sin) * half_x + abs(cos) * half_y
    x_first, x_end = max(0, math.ceil(x - reach_x)), min(size, math.floor(x + reach_x) + 1)
    y_first, y_end = max(0, math.ceil(y - reach_y)), min(size, math.floor(y + reach_y) + 1)
    back_cos, back_sin = cos / (zoom * zoom), sin / (zoom * zoom)
    for row in range(y_first, y_end):
        for column in range(x_first, x_end):
            u = back_cos * (column - x) - back_sin * (row - y) + width / 2.0
            v = back_sin * (column - x) + back_cos * (row - y) + height / 2.0
            i, j = math.floor(v), math.floor(u)
            if i < -1 or j < -1 or i >= height or j >= width:
                continue
            b, a = v - i, u - j
            value = 0.0
            if i >= 0:
                if j >= 0:
                    value += (1 - b) * (1 - a) * image[i, j]
                if j + 1 < width:
                    value += (1 - b) * a * image[i, j + 1]
            if i + 1 < height:
                if j >= 0:
                    value += b * (1 - a) * image[i + 1, j]
                if j + 1 < width:
                    value += b * a * image[i + 1, j + 1]
            frame[row, column] = max(frame[row, column], np.float32(value * gain))
