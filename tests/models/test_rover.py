"""ROVER against a slow reference written from its description, and against doing nothing."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from types import ModuleType

import cv2
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import ndimage
from torch import Tensor

from nowcastlab.errors import ConfigError
from nowcastlab.models import rover_cpu, rover_torch
from nowcastlab.models.baselines import LastFrame
from nowcastlab.models.rover import Rover, stretch, unstretch
from nowcastlab.units import p_from_mmh, valid_pixels

Field = NDArray[np.float64]

both_variants = pytest.mark.parametrize("nonlinear", [False, True], ids=["linear", "nonlinear"])
both_ways = pytest.mark.parametrize("steps", [rover_cpu, rover_torch], ids=["compiled", "torch"])


def rain(seed: int, height: int, width: int, *, scale: float = 8) -> Field:
    """Smooth blobs in [0, 1], about half of the field dry."""
    noise = ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=(height, width)), scale, mode="wrap")
    return np.clip(0.3 * noise / noise.std(), 0, 1)


def moving_rain(count: int, side: int, *, u: int, v: int, seed: int = 0) -> Tensor:
    """(1, count, side, side): blobs that move by (u, v) whole pixels a frame and wrap around."""
    field = rain(seed, side, side)
    frames = np.stack([np.roll(field, (v * t, u * t), axis=(0, 1)) for t in range(count)])
    return torch.tensor(frames, dtype=torch.float32)[None]


def csi(forecast: Tensor, truth: Tensor, valid: Tensor, threshold_mmh: float) -> float:
    """The mean over leads of hits / (hits + misses + false alarms); axes (window, lead, y, x)."""
    wet, really = ((p >= p_from_mmh(threshold_mmh)) & valid for p in (forecast, truth))
    return float(((wet & really).sum((0, 2, 3)) / (wet | really).sum((0, 2, 3))).mean())


# --- the reference: float64, pixel by pixel


def reference_flow(before: Field, now: Field) -> Field:
    a, b = (ndimage.gaussian_filter(255 * image, 4.5, mode="nearest", truncate=4) for image in (before, now))
    dx, dy = (ndimage.correlate1d(a, np.array([1, -8, 0, 8, -1]) / 12, axis=axis, mode="nearest") for axis in (1, 0))
    dt = b - a
    products = np.stack([dx * dx, dx * dy, dy * dy, dx * dt, dy * dt])
    pyramid = [np.stack([ndimage.gaussian_filter(j, 1.5, mode="nearest", truncate=4) for j in products])]
    while len(pyramid) < 7 and min(pyramid[-1].shape[1:]) // 2 >= 7:
        _, height, width = pyramid[-1].shape
        pyramid.append(np.stack([cv2.resize(j, (width // 2, height // 2)) for j in pyramid[-1]]))
    flow = np.zeros((2, *pyramid[-1].shape[1:]))
    for level in reversed(range(len(pyramid))):
        _, height, width = pyramid[level].shape
        flow = np.stack([cv2.resize(part, (width, height)) for part in flow])
        for _ in range(2 if level == len(pyramid) - 1 else 8):
            reference_sweep(flow, pyramid[level], 2**level)
    return flow


def reference_sweep(flow: Field, tensor: Field, spacing: int) -> None:
    u, v = flow
    _, height, width = flow.shape
    c = spacing**2 / 2000
    for colour in (0, 1):
        for y, x in np.ndindex(height, width):
            if (y + x) % 2 == colour:
                around = [(y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)]
                inside = [(i, j) for i, j in around if 0 <= i < height and 0 <= j < width]
                j11, j12, j22, j13, j23 = tensor[:, y, x]
                u[y, x] = (sum(u[q] for q in inside) - c * (j12 * v[y, x] + j13)) / (len(inside) + c * j11)
                v[y, x] = (sum(v[q] for q in inside) - c * (j12 * u[y, x] + j23)) / (len(inside) + c * j22)


def reference_move(image: Field, flow: Field) -> Field:
    height, width = image.shape
    moved = np.zeros_like(image)
    for y, x in np.ndindex(height, width):
        from_x, from_y = x - flow[0, y, x], y - flow[1, y, x]
        for i, j in np.ndindex(height, width):
            moved[y, x] += image[i, j] * max(0, 1 - abs(from_y - i)) * max(0, 1 - abs(from_x - j))
    return moved


# --- the flow


@both_ways
def test_the_flow_agrees_with_a_slow_reference(steps: ModuleType) -> None:
    before, now = rain(1, 30, 33, scale=4), np.roll(rain(1, 30, 33, scale=4), (1, -2), axis=(0, 1))
    frames = torch.tensor(np.stack([before, now]), dtype=torch.float32)[None]
    flow = Rover(compiled=steps is rover_cpu).flow(frames)[0].numpy()
    expected = reference_flow(before, now)  # levels 30 x 33, 15 x 16, 7 x 8
    assert abs(expected).max() > 0.5
    np.testing.assert_allclose(flow, expected, atol=1e-4)


def test_a_translation_is_found_and_underestimated() -> None:
    """Images are not warped between levels, so ROVER sees too little of a motion of (6, -3)."""
    u, v = Rover().flow(moving_rain(2, 240, u=6, v=-3))[0].numpy()
    wet = rain(0, 240, 240) > 0.1
    assert 0.6 * 6 < u[wet].mean() < 0.95 * 6
    assert 0.6 * 3 < -v[wet].mean() < 0.95 * 3


@both_variants
def test_without_motion_the_image_stays(nonlinear: bool) -> None:
    frames = moving_rain(5, 64, u=0, v=0)
    forecast = Rover(nonlinear=nonlinear).predict(frames, leads=20)
    assert forecast.shape == (1, 20, 64, 64)
    torch.testing.assert_close(forecast, frames[:, -1:].expand(1, 20, 64, 64), rtol=0, atol=1e-5 if nonlinear else 0)


def test_an_empty_sky_stays_empty() -> None:
    assert not Rover().predict(torch.zeros(1, 5, 48, 48), leads=3).any()


# --- the extrapolation


@both_ways
def test_a_whole_pixel_flow_moves_every_pixel_exactly(steps: ModuleType) -> None:
    image = torch.rand(1, 12, 14, generator=torch.Generator().manual_seed(0))
    flow = torch.tensor([2.0, -1.0]).view(1, 2, 1, 1).expand(1, 2, 12, 14)
    forecast = steps.extrapolate(image, flow, 3)
    for lead in (1, 2, 3):
        moved = torch.zeros(12, 14)
        moved[: 12 - lead, 2 * lead :] = image[0, lead:, : 14 - 2 * lead]  # zero comes in from outside
        assert torch.equal(forecast[0, lead - 1], moved)


@both_ways
def test_each_lead_is_the_bilinear_move_of_the_one_before(steps: ModuleType) -> None:
    rng = np.random.default_rng(2)
    image, flow = rng.random((9, 8)), rng.normal(scale=3, size=(2, 9, 8))  # many reads cross the border
    forecast = steps.extrapolate(*(torch.tensor(a, dtype=torch.float32)[None] for a in (image, flow)), 2)[0]
    once = reference_move(image, flow)
    np.testing.assert_allclose(forecast, np.stack([once, reference_move(once, flow)]), atol=2e-6)


@both_ways
def test_a_flow_that_is_no_number_reads_nothing(steps: ModuleType) -> None:
    flow = torch.zeros(1, 2, 3, 3)
    flow[0, 0, 1] = torch.tensor([torch.nan, torch.inf, -torch.inf])
    forecast = steps.extrapolate(torch.ones(1, 3, 3), flow, 1)[0, 0]
    assert forecast.tolist() == [[1, 1, 1], [0, 0, 0], [1, 1, 1]]


# --- the forecast


@both_variants
def test_compiled_and_plain_forecasts_agree(nonlinear: bool) -> None:
    frames = torch.cat([moving_rain(3, 120, u=3, v=1), moving_rain(3, 120, u=-2, v=2, seed=1)])[..., :97]
    valid = torch.rand(frames.shape, generator=torch.Generator().manual_seed(0)) < 0.9
    forecasts = [
        Rover(nonlinear=nonlinear, compiled=compiled).predict(frames, valid, leads=5) for compiled in (False, True)
    ]
    torch.testing.assert_close(*forecasts, rtol=0, atol=1e-4)


@both_variants
def test_a_batch_is_its_forecasts_one_by_one(nonlinear: bool) -> None:
    frames = torch.cat([moving_rain(5, 60, u=u, v=1, seed=abs(u)) for u in (-2, 0, 3)])
    rover = Rover(nonlinear=nonlinear)
    together = rover.predict(frames, leads=4)
    assert torch.equal(together, torch.cat([rover.predict(frames[i : i + 1], leads=4) for i in range(3)]))


def test_only_the_last_two_frames_count() -> None:
    frames = moving_rain(5, 40, u=1, v=1)
    assert torch.equal(Rover().predict(frames, leads=2), Rover().predict(frames[:, -2:], leads=2))


def test_pixels_that_are_not_valid_hold_no_echo() -> None:
    frames = moving_rain(5, 40, u=1, v=1)
    valid = torch.ones_like(frames, dtype=torch.bool)
    valid[..., 10:20, :] = False
    masked = Rover().predict(frames, valid, leads=2)
    assert torch.equal(masked, Rover().predict(frames * valid, leads=2))
    assert not torch.equal(masked, Rover().predict(frames, leads=2))


def test_the_nonlinear_transform_is_inverted() -> None:
    p = torch.linspace(0, 1, 256)
    torch.testing.assert_close(unstretch(stretch(p)), p, rtol=0, atol=1e-5)


def test_the_nonlinear_transform_keeps_the_ends_and_is_steepest_at_33_dbz() -> None:
    p = torch.linspace(0, 1, 701, dtype=torch.float64)  # steps of 0.1 dBZ
    stretched = stretch(p)
    torch.testing.assert_close(stretched[[0, -1]], torch.tensor([0.0, 1.0], dtype=torch.float64))
    steepest_dbz = 70 * float(p[stretched.diff().argmax()]) - 10
    assert steepest_dbz == pytest.approx(33, abs=0.1)


def test_the_linear_forecast_is_not_clipped_and_the_nonlinear_one_is() -> None:
    frames = 1.2 * torch.ones(1, 2, 16, 16)
    assert Rover().predict(frames, leads=1).max() == pytest.approx(1.2)
    assert Rover(nonlinear=True).predict(frames, leads=1).max() == 1


@pytest.mark.parametrize(("height", "width"), [(2, 2), (5, 9), (13, 14), (15, 40), (33, 31)])
def test_small_and_odd_grids_work(height: int, width: int) -> None:
    frames = torch.rand(1, 2, height, width, generator=torch.Generator().manual_seed(0))
    forecasts = [Rover(compiled=compiled).predict(frames, leads=2) for compiled in (False, True)]
    assert forecasts[0].shape == (1, 2, height, width)
    torch.testing.assert_close(*forecasts, rtol=0, atol=1e-4)


def test_autocast_does_not_touch_the_flow() -> None:
    frames = moving_rain(2, 40, u=1, v=1)
    for rover in (Rover(), Rover(compiled=False)):
        plain = rover(frames, 2)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert torch.equal(rover(frames, 2), plain)


def test_what_cannot_work_is_refused_with_its_numbers() -> None:
    with pytest.raises(ConfigError, match="2 input frames to see motion, got 1"):
        Rover().predict(torch.zeros(1, 1, 8, 8), leads=1)
    with pytest.raises(ConfigError, match="at least 2 x 2 pixels, got 1 x 8"):
        Rover().predict(torch.zeros(1, 2, 1, 8), leads=1)
    with pytest.raises(ConfigError, match=r"`valid` \(1, 1, 8, 8\) must have the shape of `frames` \(1, 2, 8, 8\)"):
        Rover().predict(torch.zeros(1, 2, 8, 8), torch.ones(1, 1, 8, 8, dtype=torch.bool), leads=1)


# --- the forecast's worth


@both_variants
@pytest.mark.parametrize("name", ["fmi_20160928", "mch_20160711"])
def test_real_rain_is_forecast_better_than_by_the_last_frame(shared_data: Path, name: str, nonlinear: bool) -> None:
    with np.load(shared_data / "radar" / f"{name}.npz") as file:
        pixels, excluded = file["frames"], file["mask"] == 0
    starts = np.arange(0, 16, 5)[:, None] + np.arange(25)
    frames = torch.tensor(pixels[starts], dtype=torch.float32) / 255
    valid = torch.tensor(valid_pixels(pixels, excluded)[starts])
    arguments = frames[:, :5], valid[:, :5]
    moved, still = (model.predict(*arguments, leads=20) for model in (Rover(nonlinear=nonlinear), LastFrame()))
    truth = frames[:, 5:15], valid[:, 5:15]  # leads 1 to 10
    for threshold_mmh in (0.5, 2.0):
        assert csi(moved[:, :10], *truth, threshold_mmh) > csi(still[:, :10], *truth, threshold_mmh) + 0.03


@both_variants
def test_advected_rain_is_forecast_better_than_by_the_last_frame(nonlinear: bool) -> None:
    frames = moving_rain(15, 160, u=3, v=-1)
    moved, still = (model.predict(frames[:, :5], leads=10) for model in (Rover(nonlinear=nonlinear), LastFrame()))
    truth = frames[:, 5:], torch.ones_like(frames[:, 5:], dtype=torch.bool)
    for threshold_mmh in (0.5, 2.0):
        assert csi(moved, *truth, threshold_mmh) > csi(still, *truth, threshold_mmh) + 0.03


def test_synthetic_rain_is_forecast_better_than_by_the_last_frame() -> None:
    days = pytest.importorskip("data_pipeline.synth.days", reason="the synthetic archive is not part of this install")
    plan = days.SyntheticPlan(start=dt.date(2015, 5, 3), days=1, size=240, seed=2)
    sky = days.Sky(plan)
    midnight = int(plan.minutes(plan.start)[0])
    hours = (2, 6, 10, 14, 18)  # rain comes and goes: some of these are dry
    pixels = np.stack([np.stack(list(sky.frames(midnight + 60 * hour + 6 * np.arange(15)))) for hour in hours])
    frames, valid = torch.tensor(pixels) / 255, torch.tensor(valid_pixels(pixels, sky.exclusion.excluded))
    truth = frames[:, 5:], valid[:, 5:]
    still = LastFrame().predict(frames[:, :5], leads=10)
    for rover in (Rover(), Rover(nonlinear=True)):
        moved = rover.predict(frames[:, :5], valid[:, :5], leads=10)
        for threshold_mmh in (0.5, 2.0):
            assert csi(moved, *truth, threshold_mmh) > csi(still, *truth, threshold_mmh) + 0.02
