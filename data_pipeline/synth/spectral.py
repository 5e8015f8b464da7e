"""Random fields with a power-law spectrum whose small scales live shorter than their large ones.

Rain is such a field: power falls with the wavenumber, and what is small is soon gone (Seed 2003, "A dynamic and spatial
scaling approach to advection forecasting"). An autoregression would do it, but its state must be carried from frame to
frame. Here a field is woven between knots in time: at each knot an octave of wavelengths has a noise of its own, drawn
from (seed, stream, octave, knot), and between two knots one fades into the next along a quarter circle, which keeps the
variance. So the field at any minute can be made on its own, and is the same whoever makes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.fft
from numpy.typing import NDArray

# An octave with fewer waves than this on the torus is no random field but a pattern: it is not drawn.
_FEWEST_WAVES = 20

# Shorter waves, when the field is sampled between its cells, would come out weaker.
_SHORTEST_WAVE_CELLS = 3

# Knots of different octaves fall at different times, so that the field never stands still as a whole.
_KNOT_SHIFT = 0.37


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """What a field is made of."""

    longest_km: float
    octaves: int
    std: float
    slope: float  # power per wave falls as wavelength ** slope
    lifetime_minutes: float  # between knots, of waves of 32 km
    lifetime_exponent: float  # lifetime grows with wavelength to this power
    longest_lifetime_minutes: float = math.inf
    stretch: float = 1.0  # waves are this much longer along x than along y


@dataclass(frozen=True)
class _Octave:
    number: int
    waves: NDArray[np.intp]  # places in the flattened half spectrum
    amplitude: NDArray[np.float32]
    lifetime_minutes: float
    shares_waves: bool  # with the octave before it
    noise: dict[int, NDArray[np.complex64]]  # at the two knots in use


class EvolvingField:
    """A square torus of `cells` by `cells` cells, each `cell_km` wide.

    An octave too short for a coarse grid is not left out: with its own variance and lifetime it appears at the shortest
    waves the grid has, as it would if a finer field were sampled there. So one map from field to rain serves all grids.
    """

    def __init__(self, spectrum: Spectrum, *, cells: int, cell_km: float, seed: int, stream: int) -> None:
        self.cells = cells
        self.cell_km = cell_km
        self._key = (seed, stream)
        self._half = np.zeros((cells, cells // 2 + 1), np.complex64)
        self._octaves = _octaves(spectrum, cells, cell_km)

    def at(self, minutes: float) -> NDArray[np.float32]:
        """The field at a moment, (y, x), before anything has moved it."""
        flat = self._half.reshape(-1)
        for octave in self._octaves:
            knots = minutes / octave.lifetime_minutes + _KNOT_SHIFT * octave.number
            knot = math.floor(knots)
            angle = (knots - knot) * math.pi / 2
            now = np.float32(math.cos(angle)) * self._noise(octave, knot)
            now += np.float32(math.sin(angle)) * self._noise(octave, knot + 1)
            flat[octave.waves] = flat[octave.waves] + now if octave.shares_waves else now
        return scipy.fft.irfft2(self._half, s=(self.cells, self.cells), norm="forward")

    def _noise(self, octave: _Octave, knot: int) -> NDArray[np.complex64]:
        if knot not in octave.noise:
            for old in [k for k in octave.noise if abs(k - knot) > 1]:
                del octave.noise[old]
            rng = np.random.default_rng((*self._key, octave.number, knot))
            normal = rng.standard_normal(2 * len(octave.waves), np.float32).view(np.complex64)
            octave.noise[knot] = normal * octave.amplitude
        return octave.noise[knot]


def _octaves(spectrum: Spectrum, cells: int, cell_km: float) -> list[_Octave]:
    ky = scipy.fft.fftfreq(cells, cell_km)[:, None]
    kx = scipy.fft.rfftfreq(cells, cell_km)[None, :]
    resolved = np.hypot(kx, ky) < 1 / (_SHORTEST_WAVE_CELLS * cell_km)
    wavenumber = np.hypot(kx * math.sqrt(spectrum.stretch), ky / math.sqrt(spectrum.stretch))
    with np.errstate(divide="ignore"):
        wavelength_km = 1 / wavenumber
    # The half spectrum stands for the whole: all but its first and last column count twice.
    twice = np.full(wavelength_km.shape, 2.0)
    twice[:, [0, -1]] = 1.0

    shares = _variance_shares(spectrum)
    found: list[tuple[int, NDArray[np.intp]]] = []
    for number in range(spectrum.octaves):
        upper = spectrum.longest_km / 2**number
        waves = np.flatnonzero(resolved & (wavelength_km >= upper / 2) & (wavelength_km < upper))
        if len(waves) < _FEWEST_WAVES and found:
            waves = found[-1][1]
        found.append((number, waves))

    octaves: list[_Octave] = []
    for number, waves in found:
        power = wavelength_km.reshape(-1)[waves] ** spectrum.slope
        power *= shares[number] * spectrum.std**2 / np.sum(power * twice.reshape(-1)[waves])
        octaves.append(
            _Octave(
                number=number,
                waves=waves,
                amplitude=np.sqrt(power / 2).astype(np.float32),  # half in the real part, half in the imaginary
                lifetime_minutes=_lifetime_minutes(spectrum, number),
                shares_waves=bool(octaves) and octaves[-1].waves is waves,
                noise={},
            )
        )
    return octaves


def _variance_shares(spectrum: Spectrum) -> list[float]:
    """Of each octave, from the longest: the integral of the spectrum over a ring goes as wavelength ** (slope - 2)."""
    weights = [_middle_km(spectrum, number) ** (spectrum.slope - 2) for number in range(spectrum.octaves)]
    return [weight / sum(weights) for weight in weights]


def _lifetime_minutes(spectrum: Spectrum, number: int) -> float:
    scaled = spectrum.lifetime_minutes * (_middle_km(spectrum, number) / 32) ** spectrum.lifetime_exponent
    return min(scaled, spectrum.longest_lifetime_minutes)


def _middle_km(spectrum: Spectrum, number: int) -> float:
    return spectrum.longest_km / 2**number / math.sqrt(2)
