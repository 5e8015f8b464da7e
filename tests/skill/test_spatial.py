"""Fractions skill score and radially averaged spectrum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nowcastlab.skill import concatenate, fss_per_lead, mean_spectra, per_lead, summarize
from nowcastlab.skill.spatial import Bands, fss_sums, fss_window


def test_a_scale_becomes_the_nearest_odd_window() -> None:
    # the HKO-7 grid: 512 km over 480 pixels
    assert [fss_window(scale, 512 / 480) for scale in (1, 5, 10, 20)] == [1, 5, 9, 19]
    assert fss_window(1, 4.0) == 1


def test_sums_are_those_of_a_slow_loop_over_windows() -> None:
    rng = np.random.default_rng(0)
    predicted, true = rng.random((13, 9)).astype(np.float32), rng.integers(0, 256, (13, 9)).astype(np.uint8)
    valid = rng.random((13, 9)) < 0.8
    windows = np.array([1, 3, 7, 31])  # the last one reaches beyond the grid on every side
    error, reference = np.empty((2, 4), np.int64), np.empty((2, 4), np.int64)
    fss_sums(predicted, true, valid, np.float32([0.3, 0.7]), np.uint8([77, 179]), windows, error, reference)
    for j, (cut, level) in enumerate(((0.3, 77), (0.7, 179))):
        rain_p, rain_t = (predicted >= np.float32(cut)) & valid, (true >= level) & valid
        for s, side in enumerate(windows):
            h = side // 2
            pairs = [
                (rain_p[box].sum(), rain_t[box].sum())
                for y, x in np.ndindex(13, 9)
                for box in [(slice(max(y - h, 0), y + h + 1), slice(max(x - h, 0), x + h + 1))]
            ]
            assert error[j, s] == sum((p - t) ** 2 for p, t in pairs)
            assert reference[j, s] == sum(p**2 + t**2 for p, t in pairs)


def test_at_one_pixel_fss_is_twice_csi_over_one_plus_csi(frames: Any, score: Any) -> None:
    scores = score(*frames(np.random.default_rng(1), 2, 3), fss=True, km_per_pixel=1.0)
    csi = per_lead(scores, "csi")
    assert fss_per_lead(scores)[:, :, 0].data == pytest.approx((2 * csi / (1 + csi)).data)


def test_a_displaced_shower_is_forgiven_at_large_scales_only(score: Any) -> None:
    true = np.zeros((1, 1, 60, 60), np.uint8)
    true[..., 20:30, 20:30] = 200
    predicted = np.roll(true, 10, axis=-1).astype(np.float32) / 255
    scores = score(predicted, true, fss=True, km_per_pixel=1.0)
    fss = fss_per_lead(scores)[0, 0]
    assert fss[0] == 0  # not one pixel in common
    assert (np.diff(fss) > 0).all()
    assert fss[3] > 0.5  # 20 km windows see both showers


def test_fss_pools_sums_and_not_scores(frames: Any, score: Any) -> None:
    predicted, true = frames(np.random.default_rng(2), 2, 1)
    true[1] = 0
    true[1, 0, 0, 0] = 255  # one pixel of rain, missed: FSS 0 on its own
    predicted[1] = 0
    options = {"fss": True, "km_per_pixel": 1.0}
    alone, both = (score(predicted[:n], true[:n], **options) for n in (1, 2))
    assert both.fss_error[0].tolist() == alone.fss_error[0].tolist()
    assert fss_per_lead(both)[0, 0, 0] > 0.9 * fss_per_lead(alone)[0, 0, 0]


def test_fss_of_what_never_occurs_is_no_data(score: Any) -> None:
    true = np.full((1, 1, 8, 8), 100, np.uint8)  # 0.5 mm/h and no more
    summary = summarize(score(np.ones((1, 1, 8, 8), np.float32), true, fss=True, km_per_pixel=1.0))
    assert summary["fss"][0] == [1.0] * 4
    assert summary["fss"][1:] == [[None] * 4] * 4
    assert summary["fss_pixels"] == [1, 5, 11, 21]


@pytest.mark.parametrize("grid", [(64, 64), (63, 64), (64, 63), (32, 80)])
def test_white_noise_has_its_variance_in_every_band(grid: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    bands = Bands.of(grid, km_per_pixel=1.0)
    power = np.mean([bands.power(rng.normal(0, 2, grid)) for _ in range(200)], 0)
    # the largest band holds 2 to 8 waves: a mean over 200 fields has a relative error of at most sqrt(2 / 400)
    assert power == pytest.approx(np.full(len(power), 4.0), rel=0.25)
    assert power.mean() == pytest.approx(4.0, rel=0.05)


@pytest.mark.parametrize("grid", [(12, 12), (11, 12), (12, 11), (6, 12)])
def test_bands_are_means_over_the_whole_plane_of_waves(grid: tuple[int, int]) -> None:
    # on a side of 12 pixels each wavenumber from 1 to 6 is a band of its own
    field = np.random.default_rng(6).random(grid)
    ring = np.round(12 * np.hypot(np.fft.fftfreq(grid[0])[:, None], np.fft.fftfreq(grid[1])[None]))
    power = np.abs(np.fft.fft2(field)) ** 2 / field.size
    expected = [power[ring == k].mean() for k in (1, 2, 3, 4, 5, 6)]
    assert Bands.of(grid, km_per_pixel=1.0).power(field) == pytest.approx(expected)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_wave_shows_in_the_band_of_its_wavelength(axis: int) -> None:
    bands = Bands.of((64, 64), km_per_pixel=2.0)
    wave = np.cos(2 * np.pi * np.arange(64) / 16)  # 16 pixels: 32 km
    power = bands.power(np.broadcast_to(wave[:, None] if axis == 0 else wave, (64, 64)))
    assert bands.wavelength_km[power.argmax()] == pytest.approx(32, rel=0.1)
    assert power.max() > 0.99 * power.sum()


def test_wavelengths_fall_from_the_grid_to_two_pixels() -> None:
    wavelength = Bands.of((480, 480), km_per_pixel=1.0).wavelength_km
    assert (np.diff(wavelength) < 0).all()
    assert wavelength[0] == pytest.approx(480, rel=0.3)
    assert 2 <= wavelength[-1] < 2.2


def test_a_blurred_forecast_lacks_power_at_small_scales(score: Any) -> None:
    rng = np.random.default_rng(4)
    true = rng.integers(71, 256, (1, 1, 32, 32)).astype(np.uint8)
    p = true / 255
    blurred = sum(np.roll(p, (dy, dx), (2, 3)) for dy in (-1, 0, 1) for dx in (-1, 0, 1)) / 9
    predicted, truth = mean_spectra(score(blurred.astype(np.float32), true, spectrum=True, km_per_pixel=1.0))
    assert predicted[0, -1] < 0.1 * truth[0, -1]
    assert predicted[0, 0] == pytest.approx(truth[0, 0], rel=0.1)


def test_a_missing_target_does_not_thin_the_spectrum(frames: Any, score: Any) -> None:
    predicted, true = frames(np.random.default_rng(5), 1, 1, 32, 32)
    options = {"spectrum": True, "km_per_pixel": 1.0}
    one = score(predicted, true, **options)
    gone = score(predicted, true, present=np.zeros((1, 1), bool), **options)
    for alone, beside in zip(mean_spectra(one), mean_spectra(concatenate([one, gone])), strict=True):
        assert beside.tolist() == alone.tolist()
    assert mean_spectra(gone)[0].mask.all()
