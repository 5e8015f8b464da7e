"""How close the synthetic rain comes to the real thing: the same figures, beside those of the HKO-7 test set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field as default
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from data_pipeline.synth.days import Sky, SyntheticPlan
from data_pipeline.synth.rain import AREA_KM
from nowcastlab.progress import progress
from nowcastlab.units import NOISE_BELOW_PIXEL, THRESHOLDS_MMH, level_from_mmh, valid_pixels
from nowcastlab.windows import walk

TOLERANCE = 0.25  # a figure agrees if it is within this share of its target

LEADS = (1, 5, 10, 20)
CSI_THRESHOLDS_MMH = (0.5, 5.0)
_INPUT_FRAMES, _WINDOW_FRAMES, _STRIDE = 5, 25, 5

# HKO-7 test set, from the official frames
_TARGET_EXCEEDANCE_PERCENT = (9.69, 5.64, 3.11, 1.66, 0.45)
_TARGET_CSI = {0.5: (0.686, 0.463, 0.375, 0.294), 5.0: (0.536, 0.287, 0.210, 0.147)}
_TARGET_VALID_PERCENT = 98.1  # about 174,000 of the 177,316 pixels never excluded; the rest are small echoes
_TARGET_SLOPE = -2.75  # of the spectrum of reflectivity; between -2.5 and -3 in the literature

# The slope is fitted where both the grid and the window resolve the waves.
_SLOPE_LONGEST_KM, _SLOPE_SHORTEST_KM, _SLOPE_SHORTEST_PIXELS = 128.0, 8.0, 4.0
_SPECTRUM_EVERY = 10  # frames


class Figure(NamedTuple):
    name: str
    measured: float
    target: float

    @property
    def relative_error(self) -> float:
        return self.measured / self.target - 1

    @property
    def agrees(self) -> bool:
        return abs(self.relative_error) <= TOLERANCE


@dataclass
class Measurement:
    """Counts over a stream of frames, taken one at a time in order of their stamps, in the memory of a window.

    The skill is that of the last input frame as the forecast: counts pooled over the benchmark's windows and the valid
    pixels of the true frame, one score a lead.
    """

    excluded: NDArray[np.bool_]
    minutes: NDArray[np.int64]  # all stamps that will come
    interval_minutes: int
    km_per_pixel: float
    frames: int = 0
    valid: int = 0
    above: NDArray[np.int64] = default(default_factory=lambda: np.zeros(len(THRESHOLDS_MMH), np.int64))
    hits: NDArray[np.int64] = default(default_factory=lambda: np.zeros((len(CSI_THRESHOLDS_MMH), len(LEADS)), np.int64))
    either: NDArray[np.int64] = default(
        default_factory=lambda: np.zeros((len(CSI_THRESHOLDS_MMH), len(LEADS)), np.int64)
    )

    def __post_init__(self) -> None:
        windows = walk(self.minutes, length=_WINDOW_FRAMES, stride=_STRIDE, interval_minutes=self.interval_minutes)
        self._starts = {window.start for window in windows}
        self._recent: dict[int, NDArray[np.bool_]] = {}
        self._spectrum: NDArray[np.float64] | None = None

    def add(self, minute: int, pixels: NDArray[np.uint8]) -> None:
        valid = valid_pixels(pixels, self.excluded)
        self.valid += int(np.count_nonzero(valid))
        histogram = np.bincount(pixels[valid], minlength=256)
        self.above += [int(histogram[level_from_mmh(rate) :].sum()) for rate in THRESHOLDS_MMH]

        rain = np.stack([pixels >= level_from_mmh(rate) for rate in CSI_THRESHOLDS_MMH])
        for i, lead in enumerate(LEADS):
            start = minute - (_INPUT_FRAMES - 1 + lead) * self.interval_minutes
            if start in self._starts:
                last = self._recent.get(start + (_INPUT_FRAMES - 1) * self.interval_minutes, np.zeros_like(rain))
                self.hits[:, i] += np.count_nonzero(last & rain & valid, axis=(1, 2))
                self.either[:, i] += np.count_nonzero((last | rain) & valid, axis=(1, 2))
        self._recent[minute] = rain
        for old in [m for m in self._recent if m < minute - max(LEADS) * self.interval_minutes]:
            del self._recent[old]

        if self.frames % _SPECTRUM_EVERY == 0:
            power = _power(np.where(valid & (pixels >= NOISE_BELOW_PIXEL), pixels, 0).astype(np.float32))
            self._spectrum = power if self._spectrum is None else self._spectrum + power
        self.frames += 1

    def figures(self) -> list[Figure]:
        exceedance = 100 * self.above / max(self.valid, 1)
        csi = self.hits / np.maximum(self.either, 1)
        in_range = int(np.count_nonzero(~self.excluded)) * max(self.frames, 1)
        figures = [
            Figure(f"pixels >= {rate:g} mm/h, %", float(share), target)
            for rate, share, target in zip(THRESHOLDS_MMH, exceedance, _TARGET_EXCEEDANCE_PERCENT, strict=True)
        ]
        for rate, row in zip(CSI_THRESHOLDS_MMH, csi, strict=True):
            figures += [
                Figure(f"CSI of the last frame, {rate:g} mm/h, lead {lead}", float(score), target)
                for lead, score, target in zip(LEADS, row, _TARGET_CSI[rate], strict=True)
            ]
        figures.append(Figure("spectral slope", self._slope(), _TARGET_SLOPE))
        figures.append(Figure("valid pixels in range, %", 100 * self.valid / in_range, _TARGET_VALID_PERCENT))
        return figures

    def _slope(self) -> float:
        if self._spectrum is None or not self._spectrum.any():
            return float("nan")
        size = len(self.excluded)
        shortest_km = max(_SLOPE_SHORTEST_KM, _SLOPE_SHORTEST_PIXELS * self.km_per_pixel)
        wavenumber = np.arange(len(self._spectrum)) / (size * self.km_per_pixel)
        fitted = (wavenumber >= 1 / _SLOPE_LONGEST_KM) & (wavenumber <= 1 / shortest_km)
        return float(np.polyfit(np.log(wavenumber[fitted]), np.log(self._spectrum[fitted]), 1)[0])


def describe_plan(plan: SyntheticPlan) -> list[Figure]:
    """The figures of a plan's days, made frame by frame and kept nowhere."""
    sky = Sky(plan)
    minutes = np.concatenate([plan.minutes(date) for date in plan.dates])
    measurement = Measurement(sky.exclusion.excluded, minutes, plan.interval_minutes, AREA_KM / plan.size)
    frames = progress(sky.frames(minutes), total=len(minutes), label="describe", unit="frame")
    for minute, pixels in zip(minutes.tolist(), frames, strict=True):
        measurement.add(minute, pixels)
    return measurement.figures()


def table(figures: list[Figure]) -> Iterator[str]:
    """One line a figure: measured, target, relative error, and a mark where they disagree."""
    width = max(len(figure.name) for figure in figures)
    yield f"{'':{width}}  {'measured':>9}  {'HKO-7':>9}  {'error':>7}"
    for figure in figures:
        mark = "" if figure.agrees else f"  beyond {TOLERANCE:.0%}"
        yield (
            f"{figure.name:{width}}  {figure.measured:9.3f}  {figure.target:9.3f}  {figure.relative_error:+7.1%}{mark}"
        )


def _power(field: NDArray[np.float32]) -> NDArray[np.float64]:
    """Mean power of the waves in each ring of wavenumbers, under a window that fades to the edges."""
    size = len(field)
    fade = np.hanning(size + 2)[1:-1].astype(np.float32)
    power = np.abs(np.fft.rfft2(field * fade[:, None] * fade[None, :])) ** 2
    ring = np.rint(np.hypot(np.fft.fftfreq(size, 1 / size)[:, None], np.fft.rfftfreq(size, 1 / size)[None, :]))
    ring = ring.astype(np.intp).reshape(-1)
    sums = np.bincount(ring, power.reshape(-1))
    return (sums / np.maximum(np.bincount(ring), 1))[: size // 2]
