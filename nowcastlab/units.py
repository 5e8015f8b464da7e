"""Pixels, reflectivity and rain rate, and the constants of the HKO-7 benchmark.

A pixel is a byte; p = pixel / 255 is what networks see and scores are summed in.

    dBZ = 70 p - 10                                    (Shi et al. 2017, section 5.1)
    dBZ = 10 log10(58.53) + 15.6 log10(rain rate)      (their Z-R relationship, a = 58.53, b = 1.56)
"""

from __future__ import annotations

import itertools
import math
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

ZR_A = 58.53
ZR_B = 1.56
DBZ_MIN = -10.0
DBZ_SPAN = 70.0

# Echoes below this pixel value are noise (sea clutter and the like); 0 is "no echo" and stays valid.
NOISE_BELOW_PIXEL = 71

THRESHOLDS_MMH = (0.5, 2.0, 5.0, 10.0, 30.0)

# Shi et al. 2017, table "Rain rate statistics": what it calls the classes that begin at 0 and at each threshold.
RAIN_LEVELS = (
    "No / Hardly noticeable",
    "Light",
    "Light to moderate",
    "Moderate",
    "Moderate to heavy",
    "Rainstorm warning",
)

# The balanced weights: WEIGHTS[i] from WEIGHT_FROM_MMH[i] on, picked by the true pixel.
WEIGHT_FROM_MMH = (0.0, 2.0, 5.0, 10.0, 30.0)
WEIGHTS = (1.0, 2.0, 5.0, 10.0, 30.0)


def rain_classes() -> list[str]:
    """`0.5 <= x < 2` and the like, one for each of RAIN_LEVELS."""
    edges = [f"{rate:g}" for rate in (0.0, *THRESHOLDS_MMH)]
    return [f"{low} <= x < {high}" for low, high in itertools.pairwise(edges)] + [f"{edges[-1]} <= x"]


@overload
def dbz_from_mmh(rate_mmh: float) -> float: ...
@overload
def dbz_from_mmh(rate_mmh: NDArray[np.floating]) -> NDArray[np.floating]: ...
def dbz_from_mmh(rate_mmh: float | NDArray[np.floating]) -> float | NDArray[np.floating]:
    """Reflectivity of a rain rate; no rain at all is -inf dBZ."""
    with np.errstate(divide="ignore"):
        dbz = 10 * math.log10(ZR_A) + 10 * ZR_B * np.log10(rate_mmh)
    return dbz if isinstance(dbz, np.ndarray) else float(dbz)


def mmh_from_dbz(reflectivity_dbz: ArrayLike) -> NDArray[np.floating]:
    """Rain rate of a reflectivity; -inf dBZ is no rain."""
    return np.asarray(10 ** ((np.asarray(reflectivity_dbz) - 10 * math.log10(ZR_A)) / (10 * ZR_B)))


def p_from_mmh(rate_mmh: float) -> float:
    """Where on the pixel scale [0, 1] a rain rate lies: 0.5 mm/h is .328253."""
    return (dbz_from_mmh(rate_mmh) - DBZ_MIN) / DBZ_SPAN


def level_from_mmh(rate_mmh: float) -> int:
    """The first byte at or above a rain rate: 0.5 mm/h is 84."""
    return math.ceil(255 * p_from_mmh(rate_mmh)) if rate_mmh > 0 else 0


def mmh_from_pixel(pixel: ArrayLike) -> NDArray[np.floating]:
    """Rain rate of a byte; pixel 0 is no echo and so exactly no rain."""
    pixel = np.asarray(pixel)
    return np.where(pixel > 0, mmh_from_dbz(DBZ_SPAN * pixel / 255.0 + DBZ_MIN), 0.0)


def pixel_from_dbz(reflectivity_dbz: ArrayLike) -> NDArray[np.uint8]:
    """floor(255 (dBZ + 10) / 70 + 1/2), clipped to a byte; not-a-number becomes 0."""
    level = np.floor(255 * (np.asarray(reflectivity_dbz, np.float64) - DBZ_MIN) / DBZ_SPAN + 0.5)
    return np.clip(np.nan_to_num(level, nan=0.0, posinf=255.0, neginf=0.0), 0, 255).astype(np.uint8)


def pixel_from_mmh(rate_mmh: ArrayLike) -> NDArray[np.uint8]:
    """The byte nearest to a rain rate; none, or one below none, is 0."""
    return pixel_from_dbz(dbz_from_mmh(np.maximum(np.asarray(rate_mmh, np.float64), 0)))


def valid_pixels(pixels: NDArray[np.uint8], excluded: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The benchmark's mask: not excluded, and not a small echo. (A missing frame is all False: the reader's part.)"""
    # uint8 arithmetic wraps, so one comparison tests 0 < pixel < 71 and this reads each pixel once
    noise = (pixels - np.uint8(1)) < np.uint8(NOISE_BELOW_PIXEL - 1)
    return ~(noise | excluded)
