"""Scores that forgive a small displacement, or show a blurred forecast: fractions skill score and power spectrum.

Both see a field without its invalid pixels: what the mask hides is no rain in prediction and truth alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from nowcastlab.compiled import compiled

FSS_SCALES_KM = (1.0, 5.0, 10.0, 20.0)
# Bands of the spectrum to an octave; a band holds at least one ring of whole wavenumbers.
_BANDS_PER_OCTAVE = 4


def fss_window(scale_km: float, km_per_pixel: float) -> int:
    """The side, in pixels, of the window that stands for a scale: the nearest odd number, the upper of two."""
    return 2 * int(scale_km / km_per_pixel / 2) + 1


@compiled()
def fss_sums(
    predicted: NDArray[np.float32],  # (y, x), p
    true: NDArray[np.uint8],
    valid: NDArray[np.bool_],
    first_p: NDArray[np.float32],
    first_level: NDArray[np.uint8],
    windows: NDArray[np.int64],  # (scale) odd
    error: NDArray[np.int64],  # out, (threshold, scale)
    reference: NDArray[np.int64],  # out, (threshold, scale)
) -> None:
    """FSS = 1 - sum (Fp - Ft)^2 / sum (Fp^2 + Ft^2), F the fraction of rain pixels in the window round a pixel.

    Roberts and Lean (2008): every pixel of the grid is a centre, and beyond the edge there is no rain. A fraction is a
    count over a constant that cancels, so both sums are whole numbers: exact, and addable in any order.
    """
    height, width = predicted.shape
    margin = windows.max() // 2
    # area[y, x] counts the rain pixels above and left of a point of the grid widened by the margin
    shape = (height + 2 * margin + 1, width + 2 * margin + 1)
    area_p, area_t = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    error[:] = 0
    reference[:] = 0
    for j in range(len(first_p)):
        for y in range(height):
            row, row_p, row_t = margin + y + 1, 0, 0
            for x in range(width):
                row_p += (predicted[y, x] >= first_p[j]) & valid[y, x]
                row_t += (true[y, x] >= first_level[j]) & valid[y, x]
                area_p[row, margin + x + 1] = area_p[row - 1, margin + x + 1] + row_p
                area_t[row, margin + x + 1] = area_t[row - 1, margin + x + 1] + row_t
            for x in range(margin + width + 1, shape[1]):
                area_p[row, x] = area_p[row, margin + width]
                area_t[row, x] = area_t[row, margin + width]
        for y in range(margin + height + 1, shape[0]):
            area_p[y], area_t[y] = area_p[margin + height], area_t[margin + height]
        if area_p[-1, -1] == 0 and area_t[-1, -1] == 0:
            return  # nothing here, and so nothing at any higher threshold
        for s in range(len(windows)):
            side = windows[s]
            off = margin - side // 2
            for y in range(height):
                top_p, low_p = area_p[y + off], area_p[y + off + side]
                top_t, low_t = area_t[y + off], area_t[y + off + side]
                if low_p[-1] == top_p[-1] and low_t[-1] == top_t[-1]:
                    continue  # no rain in any window of this row
                differing, both = 0, 0
                for x in range(off, off + width):
                    p = low_p[x + side] - low_p[x] - top_p[x + side] + top_p[x]
                    t = low_t[x + side] - low_t[x] - top_t[x + side] + top_t[x]
                    differing += (p - t) * (p - t)
                    both += p * p + t * t
                error[j, s] += differing
                reference[j, s] += both


@dataclass(frozen=True, kw_only=True, eq=False)
class Bands:
    """Rings of the two-dimensional spectrum, a quarter octave wide, largest wavelength first."""

    wavelength_km: NDArray[np.float64]
    band: NDArray[np.int64]  # of each coefficient of the half-plane transform; the last number is "none"
    share: NDArray[np.float64]  # of each coefficient in its band's mean

    @classmethod
    def of(cls, grid: tuple[int, int], *, km_per_pixel: float) -> Self:
        height, width = grid
        longest = max(grid)
        frequency = np.hypot(scipy.fft.fftfreq(height)[:, None], scipy.fft.rfftfreq(width)[None])  # cycles a pixel
        ring = np.round(frequency * longest)
        last = longest // 2  # two pixels a wave; the corners beyond hold no full ring
        steps = np.arange(0, _BANDS_PER_OCTAVE * np.log2(max(last, 1)) + 1)
        edges = np.unique(np.round(2 ** (steps / _BANDS_PER_OCTAVE)))
        edges = edges[edges <= last]  # the first ring of each band
        band = np.searchsorted(edges, ring, side="right") - 1
        band[(ring < 1) | (ring > last)] = len(edges)
        # The half plane holds each wave and not its mirror image, but for the first and, if even, the last column.
        copies = np.full(frequency.shape, 2.0)
        copies[:, 0] = 1
        if width % 2 == 0:
            copies[:, -1] = 1
        total = np.bincount(band.ravel(), copies.ravel(), minlength=len(edges) + 1)
        mean = np.bincount(band.ravel(), (copies * frequency).ravel(), minlength=len(edges) + 1)[:-1] / total[:-1]
        return cls(wavelength_km=km_per_pixel / mean, band=band.ravel(), share=(copies / total[band]).ravel())

    def power(self, field: NDArray[np.floating]) -> NDArray[np.float64]:
        """Mean power |F|^2 / pixels of each band: white noise of variance v gives v in all of them."""
        # in float64, one frame at a time: in batches the transform may take another path and round otherwise
        waves = scipy.fft.rfft2(np.asarray(field, np.float64), workers=1).ravel()
        power = (waves.real**2 + waves.imag**2) / field.size
        sums = np.bincount(self.band, power * self.share, minlength=len(self.wavelength_km) + 1)
        return sums[:-1].astype(np.float64)
