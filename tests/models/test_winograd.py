"""Convolutions by points: what torch gives, but for rounding, whatever the grid."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from nowcastlab.models import convolution, winograd
from nowcastlab.models.winograd import SIZES

GRIDS = [(8, 12), (7, 9), (13, 4), (1, 5), (24, 25)]  # whole tiles, parts of one, less than one


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def weights(inputs: int, outputs: int, kernel: int, *, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """As large as at the start of a training, and a bias."""
    weight = normal(outputs, inputs, kernel, kernel, dtype=dtype) * (2 / inputs / kernel**2) ** 0.5
    return weight.requires_grad_(), normal(outputs, seed=1, dtype=dtype).requires_grad_()


def by_points(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    way_back = convolution._WayBack()
    return convolution._Convolve.apply(way_back, weight.detach(), convolution._Points.apply(way_back, weight), bias, x)


def directly(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return F.conv2d(x, weight, bias, padding=weight.shape[2] // 2)


def outcome(way: object, x: Tensor, weight: Tensor, bias: Tensor) -> list[Tensor]:
    leaves = [tensor.clone().requires_grad_() for tensor in (x, weight, bias)]
    made = way(*leaves)  # type: ignore[operator]
    return [made, *torch.autograd.grad((made * made.detach().cos()).sum(), leaves)]


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("kernel", SIZES)
def test_values_and_gradients_are_those_of_torch(kernel: int, grid: tuple[int, int]) -> None:
    weight, bias = weights(5, 3, kernel, dtype=torch.float64)
    x = normal(2, 5, *grid, seed=2, dtype=torch.float64)
    both = (outcome(way, x, weight, bias) for way in (by_points, directly))
    for ours, theirs in zip(*both, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kernel", SIZES)
def test_its_gradients_are_those_of_finite_differences(kernel: int) -> None:
    weight, bias = weights(2, 3, kernel, dtype=torch.float64)
    x = normal(1, 2, 5, 7, seed=2, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(by_points, (x, weight, bias))


@pytest.mark.parametrize(("kernel", "channels"), [(3, 64), (3, 192), (5, 16), (5, 32), (5, 192)])
def test_in_single_precision_its_mean_error_is_below_a_hundred_thousandth(kernel: int, channels: int) -> None:
    """In the root mean square, of what results and gradients deviate by. Direct sums are off by some 5e-7."""
    weight, bias = weights(channels, 32, kernel)
    x = normal(2, channels, 32, 32, seed=2)
    assert winograd.saves(kernel, 32, 32, channels, 32)
    exact = outcome(directly, x.double(), weight.double(), bias.double())
    for ours, truth in zip(outcome(by_points, x, weight, bias), exact, strict=True):
        assert (ours.double() - truth).std() < 1e-5 * truth.std()


def test_without_a_bias_nothing_is_added() -> None:
    (weight, _), x = weights(4, 4, 5), normal(1, 4, 8, 8)
    torch.testing.assert_close(by_points(x, weight, None), directly(x, weight, None), rtol=1e-4, atol=1e-5)


def test_the_layout_of_what_it_is_given_does_not_matter() -> None:
    (weight, bias), x = weights(16, 16, 5), normal(2, 16, 16, 16)
    last = x.to(memory_format=torch.channels_last)
    assert torch.equal(by_points(x, weight, bias), by_points(last, weight, bias))


@pytest.mark.parametrize("chunk_bytes", [1, 200_000, 1 << 30])
def test_the_size_of_a_chunk_changes_nothing(monkeypatch: pytest.MonkeyPatch, chunk_bytes: int) -> None:
    """One row of tiles of 24 columns takes 64 * 6 * (16 + 16) * 8 = 98,304 bytes: a row each, two, and all in one."""
    (weight, bias), x = weights(16, 16, 5, dtype=torch.float64), normal(3, 16, 20, 24, dtype=torch.float64)
    expected = outcome(by_points, x, weight, bias)
    monkeypatch.setattr(winograd, "CHUNK_BYTES", chunk_bytes)
    for ours, before in zip(outcome(by_points, x, weight, bias), expected, strict=True):
        torch.testing.assert_close(ours, before, rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("two_threads")
def test_with_threads_it_gives_the_same_bits_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd, "CHUNK_BYTES", 1 << 30)
    (weight, bias), x = weights(16, 32, 5), normal(4, 16, 32, 32)  # 32 rows of tiles: 16 for each thread
    first = outcome(by_points, x, weight, bias)
    for _ in range(5):
        again = outcome(by_points, x, weight, bias)
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    torch.set_num_threads(1)
    for two, one in zip(first, outcome(by_points, x, weight, bias), strict=True):
        torch.testing.assert_close(two, one, rtol=1e-4, atol=1e-4 * one.abs().max().item())


def test_what_is_no_number_is_not_hidden() -> None:
    (weight, bias), x = weights(16, 16, 5), normal(1, 16, 16, 16)
    x[0, 3, 8, 8] = torch.nan
    assert by_points(x, weight, bias)[0, :, 6:11, 6:11].isnan().all()
