"""Values of any kind to bytes, on a grid of any size.

Shrinking takes the mean of the rain rate over the area of each new pixel, so the water that falls stays the same. The
mean of dBZ would lose most of a shower, because dBZ is a logarithm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.units import mmh_from_dbz, mmh_from_pixel, pixel_from_dbz, pixel_from_mmh

UNITS = ("dBZ", "mm/h", "pixel")
_SPELLINGS = {
    "dBZ": ("dbz",),
    "mm/h": ("mm/h", "mmh-1", "mm/hr", "mmhr-1", "mmperhour", "kgm-2h-1"),
    "pixel": ("pixel",),
}


class Square(NamedTuple):
    """The part of the source that is kept."""

    top: int
    left: int
    height: int
    width: int

    def of(self, array: NDArray[Any]) -> NDArray[Any]:
        return array[self.top : self.top + self.height, self.left : self.left + self.width]


@dataclass(frozen=True, kw_only=True)
class Regrid:
    """From one frame as stored, missing values not-a-number, to bytes and where they are known."""

    units: str
    part: Square
    grid: tuple[int, int]
    scale: float = 1.0
    offset: float = 0.0
    missing: float | None = None  # the stored value that means "not known"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale and math.isfinite(self.offset)):
            raise ConfigError(
                f"Values cannot be {self.scale:g} * stored + {self.offset:g}: --scale must be a number other than 0, "
                "--offset a number."
            )

    def __call__(self, stored: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """Pixels, 0 where not known; and which are known."""
        values = self.part.of(stored)
        known = np.isfinite(values) | (values == -np.inf) if values.dtype.kind == "f" else np.ones(values.shape, bool)
        if self.missing is not None:
            known &= values != self.missing
        physical = np.where(known, values, 0).astype(np.float64) * self.scale + self.offset
        if self.units == "pixel":
            pixels = _as_bytes(physical, known)
            if self.grid == pixels.shape:
                return pixels, known
            rate = mmh_from_pixel(pixels)
        else:
            if self.grid == values.shape:
                pixels = pixel_from_dbz(physical) if self.units == "dBZ" else pixel_from_mmh(physical)
                return np.where(known, pixels, np.uint8(0)), known
            rate = mmh_from_dbz(physical) if self.units == "dBZ" else np.maximum(physical, 0)
        share = resize(known.astype(np.float64), self.grid)
        rate = resize(np.where(known, rate, 0.0), self.grid) / np.maximum(share, 1e-9)
        known = share > 0.5
        return np.where(known, pixel_from_mmh(rate), np.uint8(0)), known

    def attributes(self) -> dict[str, Any]:
        """What made the bytes, for a store to go on only with the same. Text where JSON has no word: none, nan."""
        return {
            "source_units": self.units,
            "source_scale": self.scale,
            "source_offset": self.offset,
            "source_missing": "none" if self.missing is None else str(self.missing),
            "source_crop": list(self.part),
        }

    def mask(self, valid: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """A static mask on the new grid: valid where most of a pixel's area is."""
        valid = self.part.of(valid)
        return valid if valid.shape == self.grid else resize(valid.astype(np.float64), self.grid) > 0.5


def resize(values: NDArray[np.float64], grid: tuple[int, int]) -> NDArray[np.float64]:
    """Area mean where the grid shrinks, linear in between where it grows."""
    import cv2

    shrinks = grid[0] <= values.shape[0]
    return np.asarray(
        cv2.resize(values, (grid[1], grid[0]), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    )


def part_of(
    grid: tuple[int, int], *, crop: tuple[int, int, int] | None = None, size: int | None = None
) -> tuple[Square, tuple[int, int]]:
    """What is kept of a grid, and the grid it becomes: a crop if one is given, the middle square if a size is."""
    height, width = grid
    if crop is not None:
        top, left, side = crop
        if min(top, left) < 0 or side < 1 or top + side > height or left + side > width:
            raise ConfigError(f"--crop {top},{left},{side} leaves the source's grid of {height} x {width} pixels.")
        part = Square(top, left, side, side)
    elif size is not None:
        side = min(height, width)
        part = Square((height - side) // 2, (width - side) // 2, side, side)
    else:
        part = Square(0, 0, height, width)
    return part, (size, size) if size else (part.height, part.width)


def known_units(asked: str | None, said: str | None) -> str:
    """The units asked for, else those the source states, else an error that says what to pass."""
    if asked is not None:
        return asked
    plain = (said or "").lower().replace(" ", "").replace("**", "").replace("^", "")
    for units, spellings in _SPELLINGS.items():
        if plain in spellings:
            return units
    states = f"The source says {said!r}" if said else "The source does not state its units"
    raise ConfigError(
        f"{states}: pass --units dBZ, mm/h or pixel (bytes encoded as dBZ = 70 p / 255 - 10). "
        "For millimetres in 5 minutes pass --units mm/h --scale 12."
    )


def _as_bytes(values: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[np.uint8]:
    filled = np.where(known, values, 0)
    if filled.min(initial=0) < 0 or filled.max(initial=0) > 255 or (filled != np.floor(filled)).any():
        raise StoreError(
            f"With --units pixel values are whole numbers from 0 to 255, got {filled.min():g} to {filled.max():g}. "
            "Pass --units dBZ or mm/h."
        )
    return filled.astype(np.uint8)
