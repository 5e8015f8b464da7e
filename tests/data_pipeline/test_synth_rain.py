"""The rain itself: reproducible, moving, and as wet as it should be."""

from __future__ import annotations

import numpy as np
import pytest

from data_pipeline.synth.motion import Motion, MotionSettings
from data_pipeline.synth.rain import CALIBRATED, LARGEST_SIZE, Rain, _interpolation, _sample
from data_pipeline.synth.spectral import EvolvingField, Spectrum
from nowcastlab.errors import ConfigError

NOON = 23_315_760  # 2014-05-01 12:00


def spectrum(**changes: float) -> Spectrum:
    values = {"longest_km": 128.0, "std": 1.5, "slope": 2.5, "lifetime_minutes": 60.0, "lifetime_exponent": 1.0}
    return Spectrum(octaves=5, **{**values, **changes})


def field(cells: int = 128, cell_km: float = 4.0, **changes: float) -> EvolvingField:
    return EvolvingField(spectrum(**changes), cells=cells, cell_km=cell_km, seed=1, stream=1)


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a.ravel(), b.ravel())[0, 1])


def test_a_frame_is_the_same_whatever_was_asked_before() -> None:
    straight = Rain(seed=3, size=48)
    straight.pixels(NOON - 600)
    straight.pixels(NOON + 6)
    assert np.array_equal(straight.pixels(NOON), Rain(seed=3, size=48).pixels(NOON))


def test_another_seed_is_another_weather() -> None:
    assert correlation(Rain(seed=1, size=64).z(NOON), Rain(seed=2, size=64).z(NOON)) < 0.5


@pytest.mark.parametrize("cell_km", [4.0, 16.0])
def test_a_field_keeps_its_variance_at_any_time_and_on_any_grid(cell_km: float) -> None:
    """128 km down to 4 km: most octaves are too short for cells of 16 km, and none is lost."""
    evolving = field(cell_km=cell_km)
    for minutes in (0, 17, 30, 45):
        assert evolving.at(minutes).std() == pytest.approx(1.5, rel=0.1)


def test_long_waves_outlive_short_ones() -> None:
    def kept(longest_km: float) -> float:
        evolving = field(longest_km=longest_km)
        return correlation(evolving.at(0), evolving.at(12))

    assert kept(256.0) > kept(128.0) > kept(64.0)


def test_power_falls_with_the_slope_of_the_spectrum() -> None:
    evolving = EvolvingField(spectrum(slope=3.0), cells=256, cell_km=2.0, seed=1, stream=1)
    power = np.abs(np.fft.fft2(evolving.at(0))) ** 2
    wavenumber = np.hypot(*np.meshgrid(np.fft.fftfreq(256, 2.0), np.fft.fftfreq(256, 2.0)))
    long, short = ((wavenumber > 1 / b) & (wavenumber < 1 / a) for a, b in ((60, 68), (15, 17)))
    # four times shorter: 4 ** -3 of the power, in waves drawn at random
    assert np.log(power[short].mean() / power[long].mean()) / np.log(4) == pytest.approx(-3, abs=0.4)


def test_a_field_that_only_drifts_is_carried_along() -> None:
    """With nothing but drift, the frame an hour later is the frame before, moved by the drift."""
    motion = Motion(MotionSettings(drift_kmh=30, cells_kmh=0, shear_km=0), seed=1, stream=1)
    before, after = np.array(motion.drift_km(NOON)), np.array(motion.drift_km(NOON + 60))
    assert 30 * 0.5 <= after[0] - before[0] <= 30 * 1.5
    assert motion.cell_drift_km(NOON) == motion.drift_km(NOON)


def test_shear_and_turn_keep_distances_small_and_smooth() -> None:
    motion = Motion(MotionSettings(drift_kmh=30, cells_kmh=5, shear_km=10), seed=1, stream=1)
    x, y = np.meshgrid(np.linspace(-256, 256, 33), np.linspace(-256, 256, 33))
    now, later = (np.stack(motion.frame_coordinates(x, y, NOON + m)) for m in (0, 6))
    moved_km = np.hypot(*(later - now))
    assert 0 < moved_km.max() < 10  # in six minutes: under 100 km/h anywhere


def test_a_field_comes_round_after_one_turn_and_after_three() -> None:
    """Whole turns away lies the same sky: a library's own wrapping once smeared it into streaks."""
    evolving = field()
    around_km = evolving.cells * evolving.cell_km
    nodes_x, nodes_y = np.meshgrid(np.linspace(-256, 256, 33), np.linspace(-256, 256, 33))
    here, *turns = (
        _sample(
            evolving, NOON, (nodes_x + turn * around_km, nodes_y - turn * around_km), (10.0, 5.0), _interpolation(64)
        )
        for turn in (0, 1, 3, -2)
    )
    for there in turns:
        np.testing.assert_allclose(there, here, atol=0.01)


def test_stronger_z_is_never_weaker_rain() -> None:
    rain = Rain(seed=1, size=64)
    z, pixels = rain.z(NOON).ravel(), rain.pixels(NOON).ravel().astype(int)
    assert (np.diff(pixels[np.argsort(z)]) >= 0).all()


@pytest.mark.parametrize(
    ("threshold", "level"), list(zip(CALIBRATED.z_at_thresholds, (84, 118, 141, 158, 185), strict=True))
)
def test_the_map_puts_each_rain_rate_at_its_level(threshold: float, level: int) -> None:
    rain = Rain(seed=1, size=64)
    below, above = rain.pixels_from_z(np.array([threshold - 0.05, threshold + 0.05], np.float32))
    assert below <= level
    assert above >= level


def test_spells_are_shared_out_evenly() -> None:
    """Thirty days hold wet and dry alike: the mean over them is near none, whatever the seed."""
    for seed in range(5):
        rain = Rain(seed=seed, size=32)
        spells = [rain.spell(NOON + 30 * i) for i in range(48 * 30)]
        assert abs(np.mean(spells)) < 0.1
        assert np.std(spells) > 0.8


@pytest.mark.parametrize("size", [8, LARGEST_SIZE + 1])
def test_a_size_that_cannot_work_is_refused(size: int) -> None:
    with pytest.raises(ConfigError, match=rf"`size` \(={size}\) must be between 32 and 2048"):
        Rain(seed=1, size=size)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"`seed` \(=-1\)"):
        Rain(seed=-1, size=64)
