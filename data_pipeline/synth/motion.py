"""Where the rain goes: one closed formula in time, so that any minute can be asked for without the minutes before.

A place on the map is followed back into the frame in which the fields evolve without moving. Three motions are joined:
the whole frame drifts, speeding up and slowing down; it turns; and slow shear waves run through it, so that
neighbouring systems part and meet. Periods share no common multiple within a season: no two days are alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Coordinates = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, kw_only=True)
class MotionSettings:
    drift_kmh: float
    cells_kmh: float  # cells move through the systems they belong to, at up to about this speed
    shear_km: float  # amplitude of the longest shear wave


# (wavelength km, period h, direction of the wave in radians)
_SHEAR_WAVES = ((600.0, 11.0, 0.4), (430.0, 9.0, 1.9), (350.0, 7.3, 3.3))


class Motion:
    def __init__(self, settings: MotionSettings, *, seed: int, stream: int) -> None:
        self._settings = settings
        rng = np.random.default_rng((seed, stream))
        self._phases = rng.uniform(0, 2 * math.pi, 6 + len(_SHEAR_WAVES)).tolist()

    def turn_radians(self, minutes: float) -> float:
        hours, phase = minutes / 60, self._phases
        return 0.25 * math.sin(_wave(hours, 23) + phase[0]) + 0.8 * math.sin(_wave(hours, 71) + phase[1])

    def drift_km(self, minutes: float) -> tuple[float, float]:
        """How far the systems have come, along the frame's own axes."""
        hours, phase, speed = minutes / 60, self._phases, self._settings.drift_kmh
        along = speed * hours + _path(0.4 * speed, 29, hours, phase[2])
        return along, _path(0.6 * speed, 37, hours, phase[3])

    def cell_drift_km(self, minutes: float) -> tuple[float, float]:
        """The same for the cells, which run ahead of their system or fall behind."""
        hours, phase, speed = minutes / 60, self._phases, self._settings.cells_kmh
        x, y = self.drift_km(minutes)
        return x + _path(speed, 17, hours, phase[4]), y + _path(speed, 13, hours, phase[5])

    def frame_coordinates(self, x_km: NDArray[np.float64], y_km: NDArray[np.float64], minutes: float) -> Coordinates:
        """Places on the map (km from its middle) in the turning, shearing frame; the drift is still to be taken off."""
        hours = minutes / 60
        sheared_x, sheared_y = x_km.copy(), y_km.copy()
        for (length_km, period, direction), phase in zip(_SHEAR_WAVES, self._phases[6:], strict=True):
            along = math.cos(direction) * x_km + math.sin(direction) * y_km
            # Across the wave's direction, so the shear moves rain without squeezing it.
            shift = self._settings.shear_km * length_km / _SHEAR_WAVES[0][0]
            push = shift * np.sin(2 * math.pi * (along / length_km + hours / period) + phase)
            sheared_x -= math.sin(direction) * push
            sheared_y += math.cos(direction) * push
        turn = self.turn_radians(minutes)
        cos, sin = math.cos(turn), math.sin(turn)
        return cos * sheared_x + sin * sheared_y, cos * sheared_y - sin * sheared_x


def _wave(hours: float, period: float) -> float:
    return 2 * math.pi * hours / period


def _path(speed_kmh: float, period: float, hours: float, phase: float) -> float:
    """The way of something whose speed swings between +speed and -speed."""
    return speed_kmh * period / (2 * math.pi) * math.sin(_wave(hours, period) + phase)
