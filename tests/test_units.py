"""Units and the benchmark's constants, against the figures of Shi et al. 2017."""

from __future__ import annotations

import numpy as np
import pytest

from nowcastlab import units


@pytest.mark.parametrize(
    ("rate_mmh", "dbz", "p", "level"),
    [
        (0.5, 12.978, 0.328253, 84),
        (2, 22.370, 0.462426, 118),
        (5, 28.578, 0.551110, 141),
        (10, 33.274, 0.618197, 158),
        (30, 40.717, 0.724527, 185),
    ],
)
def test_thresholds_are_the_benchmarks(rate_mmh: float, dbz: float, p: float, level: int) -> None:
    assert units.dbz_from_mmh(rate_mmh) == pytest.approx(dbz, abs=5e-4)
    assert units.p_from_mmh(rate_mmh) == pytest.approx(p, abs=5e-7)
    assert units.level_from_mmh(rate_mmh) == level


def test_the_first_level_is_the_first_byte_at_or_above_the_rate() -> None:
    rates = units.mmh_from_pixel(np.arange(256))
    for threshold in units.THRESHOLDS_MMH:
        level = units.level_from_mmh(threshold)
        assert rates[level] >= threshold > rates[level - 1]


def test_a_byte_survives_the_way_to_rain_rate_and_back() -> None:
    every = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(units.pixel_from_mmh(units.mmh_from_pixel(every)), every)


def test_no_rain_and_no_number_are_pixel_zero() -> None:
    np.testing.assert_array_equal(units.pixel_from_mmh([0.0, -1.0]), [0, 0])
    np.testing.assert_array_equal(units.pixel_from_dbz([np.nan, -np.inf, np.inf]), [0, 0, 255])


def test_small_echoes_and_excluded_places_are_not_valid_but_zero_is() -> None:
    pixels = np.array([0, 1, 70, 71, 255, 255], np.uint8)
    excluded = np.array([False, False, False, False, False, True])
    np.testing.assert_array_equal(units.valid_pixels(pixels, excluded), [True, False, False, True, True, False])
