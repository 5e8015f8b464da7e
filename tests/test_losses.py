"""The losses against the definition, pixel by pixel in Python."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from nowcastlab.errors import ConfigError
from nowcastlab.losses import LOSSES, frame_losses, mean_squared_error, radar_loss
from nowcastlab.units import mmh_from_pixel, p_from_mmh

BATCH, LEADS, HEIGHT, WIDTH = 2, 3, 5, 4


@pytest.fixture
def fields() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Forecasts beyond [0, 1], every kind of pixel, some excluded, one frame missing."""
    rng = torch.Generator().manual_seed(0)
    shape = (BATCH, LEADS, HEIGHT, WIDTH)
    edges = torch.tensor([0, 1, 70, 71, 83, 84, 117, 118, 140, 141, 157, 158, 184, 185, 255], dtype=torch.uint8)
    truth = edges[torch.randint(len(edges), shape, generator=rng)]
    present = torch.ones(BATCH, LEADS, dtype=torch.bool)
    present[1, 2] = False
    return (
        torch.rand(shape, generator=rng) * 1.4 - 0.2,
        truth,
        torch.rand(HEIGHT, WIDTH, generator=rng) < 0.3,
        present,
    )


def reference_weight(pixel: int) -> float:
    """The rain rate's weight as the paper words it."""
    p = pixel / 255
    for from_mmh, weight in ((30, 30.0), (10, 10.0), (5, 5.0), (2, 2.0)):
        if p >= p_from_mmh(from_mmh):
            return weight
    return 1.0


def reference(name: str, forecast: Tensor, truth: Tensor, excluded: Tensor, present: Tensor) -> list[list[float]]:
    sums = [[0.0] * LEADS for _ in range(BATCH)]
    for b, lead, y, x in product(range(BATCH), range(LEADS), range(HEIGHT), range(WIDTH)):
        pixel = int(truth[b, lead, y, x])
        if excluded[y, x] or not present[b, lead] or 0 < pixel < 71:
            continue
        weight = reference_weight(pixel) if name.startswith("b-") else 1.0
        error = float(forecast[b, lead, y, x]) - pixel / 255
        sums[b][lead] += weight * error**2 if "mse" in name else 0.0
        sums[b][lead] += weight * abs(error) if "mae" in name else 0.0
    return sums


@pytest.mark.parametrize("name", LOSSES)
def test_each_frame_sums_what_a_loop_over_pixels_sums(name: str, fields: tuple[Tensor, ...]) -> None:
    expected = torch.tensor(reference(name, *fields))
    torch.testing.assert_close(frame_losses(name)(*fields), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_the_loss_is_the_mean_over_leads_and_batch_missing_frames_included(
    name: str, fields: tuple[Tensor, ...]
) -> None:
    total = sum(sum(row) for row in reference(name, *fields))
    assert radar_loss(name)(*fields).item() == pytest.approx(total / (BATCH * LEADS), rel=1e-6)


def test_a_sum_of_losses_is_the_sum_of_the_losses(fields: tuple[Tensor, ...]) -> None:
    both = radar_loss("b-mse+b-mae")(*fields)
    torch.testing.assert_close(both, radar_loss("b-mse")(*fields) + radar_loss("b-mae")(*fields))


def test_gradients_agree_with_the_definition(fields: tuple[Tensor, ...]) -> None:
    forecast, truth, excluded, present = fields
    leaf = forecast.clone().requires_grad_()
    radar_loss("b-mse+b-mae")(leaf, truth, excluded, present).backward()
    assert leaf.grad is not None
    for b, lead, y, x in product(*map(range, truth.shape)):
        pixel = int(truth[b, lead, y, x])
        valid = bool(present[b, lead]) and not bool(excluded[y, x]) and not 0 < pixel < 71
        error = float(forecast[b, lead, y, x]) - pixel / 255
        # d/df of w e^2 + w |e|, over the six frames averaged
        slope = reference_weight(pixel) * (2 * error + (1 if error > 0 else -1)) / 6 if valid else 0.0
        assert leaf.grad[b, lead, y, x].item() == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_heavy_rain_weighs_thirty_times_no_rain() -> None:
    def loss_of(pixel: int) -> float:
        truth = torch.full((1, 1, 1, 1), pixel, dtype=torch.uint8)
        everywhere, present = torch.zeros(1, 1, dtype=torch.bool), torch.ones(1, 1, dtype=torch.bool)
        return radar_loss("b-mae")(truth / 255 + 0.1, truth, everywhere, present).item()

    assert mmh_from_pixel(184) < 30 <= mmh_from_pixel(185)
    assert loss_of(0) == pytest.approx(0.1)
    assert loss_of(184) == pytest.approx(1.0, rel=1e-5)
    assert loss_of(185) == pytest.approx(3.0, rel=1e-5)


def test_bfloat16_forecasts_are_summed_in_float32(fields: tuple[Tensor, ...]) -> None:
    forecast, *rest = fields
    rounded = forecast.bfloat16()
    loss = radar_loss("b-mse")(rounded, *rest)
    assert loss.dtype == torch.float32
    assert loss == radar_loss("b-mse")(rounded.float(), *rest)


def test_the_digits_loss_is_a_plain_mean_even_above_one() -> None:
    truth = torch.tensor([0.0, 1.6]).view(1, 1, 1, 2)
    forecast = torch.tensor([0.5, 1.0]).view(1, 1, 1, 2)
    assert mean_squared_error(forecast, truth).item() == pytest.approx((0.25 + 0.36) / 2)


def test_an_unknown_loss_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"No loss 'huber'.*b-mse\+b-mae, b-mse, b-mae, mse\+mae, mse, mae"):
        radar_loss("huber")


def test_float_truth_is_refused(fields: tuple[Tensor, ...]) -> None:
    forecast, truth, excluded, present = fields
    with pytest.raises(ConfigError, match=r"torch\.float32.*uint8"):
        radar_loss("mse")(forecast, truth / 255, excluded, present)


def test_shapes_that_would_broadcast_into_nonsense_are_refused(fields: tuple[Tensor, ...]) -> None:
    forecast, truth, excluded, present = fields
    with pytest.raises(ConfigError, match=r"forecast \(2, 1, 5, 4\) and truth \(2, 3, 5, 4\)"):
        radar_loss("mse")(forecast[:, :1], truth, excluded, present)
    with pytest.raises(ConfigError, match=r"forecast \(2, 1, 5, 4\)"):
        mean_squared_error(forecast[:, :1], truth / 255)
