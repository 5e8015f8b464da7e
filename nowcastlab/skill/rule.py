"""What makes a pixel rain at a threshold, and how much its error weighs: one rule for every pass over pixels.

The truth is a byte and rains at a threshold from a first level on. A prediction is a float p and rains if
p >= p(threshold), as the benchmark compares (Shi et al. 2017). Both must agree where a prediction *is* a level, so the
float the predictions are compared with lies above float32((level - 1) / 255) and not above float32(level / 255).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from nowcastlab.errors import ConfigError
from nowcastlab.units import WEIGHT_FROM_MMH, WEIGHTS, level_from_mmh, mmh_from_pixel, p_from_mmh


@dataclass(frozen=True, kw_only=True, eq=False)
class Rule:
    """Thresholds and weights as the pixel loops want them; index j is a threshold, i a step of the weights."""

    first_level: NDArray[np.uint8]  # (j) the truth rains from here on
    first_p: NDArray[np.float32]  # (j) a prediction rains from here on
    weight_level: NDArray[np.uint8]  # (i) from this level of the truth on ...
    weight_step: NDArray[np.uint8]  # (i) ... an error weighs so much more

    @classmethod
    def of(cls, thresholds_mmh: tuple[float, ...]) -> Self:
        """The rule of these thresholds, or a ConfigError that says which of them cannot be."""
        check_thresholds(thresholds_mmh)
        return cls(
            first_level=np.array([level_from_mmh(rate) for rate in thresholds_mmh], np.uint8),
            first_p=np.array([first_p(rate) for rate in thresholds_mmh], np.float32),
            weight_level=np.array([level_from_mmh(rate) for rate in WEIGHT_FROM_MMH[1:]], np.uint8),
            weight_step=np.diff(WEIGHTS).astype(np.uint8),  # whole numbers, so a byte holds the sum too
        )


def first_p(threshold_mmh: float) -> np.float32:
    """The smallest float32 that rains: comparing with it is comparing with the exact p of the threshold."""
    exact, level = p_from_mmh(threshold_mmh), level_from_mmh(threshold_mmh)
    p = np.float32(exact)
    if float(p) < exact:
        p = np.nextafter(p, np.float32(np.inf))
    # A threshold that falls on a level is rounded one way here and another in `level_from_mmh`: the level decides.
    above = np.nextafter(np.float32((level - 1) / 255), np.float32(np.inf))
    return np.float32(min(max(p, above), np.float32(level / 255)))


def check_thresholds(thresholds_mmh: tuple[float, ...]) -> None:
    rates = np.asarray(thresholds_mmh, np.float64)
    if rates.ndim != 1 or not rates.size or not np.isfinite(rates).all() or (rates <= 0).any():
        raise ConfigError(f"`thresholds_mmh` (={thresholds_mmh}) must be one or more positive rain rates.")
    if (np.diff(rates) <= 0).any():
        raise ConfigError(f"`thresholds_mmh` (={thresholds_mmh}) must increase.")
    if level_from_mmh(float(rates[-1])) > 255:
        raise ConfigError(f"`thresholds_mmh` (={thresholds_mmh}): no pixel can reach {rates[-1]:g} mm/h.")
    if level_from_mmh(float(rates[0])) < 1:
        raise ConfigError(
            f"`thresholds_mmh` (={thresholds_mmh}): {rates[0]:g} mm/h is below every echo; pixels begin at "
            f"{mmh_from_pixel(1):.2g} mm/h."
        )
