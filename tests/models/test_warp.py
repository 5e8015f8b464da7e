"""The warp of TrajGRU: what it means, pinned down, for both ways of working it out."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from nowcastlab.bench.reference import load_reference
from nowcastlab.models import warp as way
from nowcastlab.models.warp import warp, warp_and_project

reference = load_reference()


@pytest.fixture(params=["kernel", "without oneDNN", "grid_sample"])
def any_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The compiled kernel, also with a torch without oneDNN, and what other devices and a Python without numba use."""
    if request.param == "grid_sample":
        monkeypatch.setattr(way, "warp_kernel", None)
    else:
        assert way.warp_kernel is not None, "numba is a dependency: its kernel should be there"
    if request.param == "without oneDNN":
        assert way._ONEDNN_LINEAR is not None, "torch for a CPU is built with oneDNN"
        monkeypatch.setattr(way, "_ONEDNN_LINEAR", None)
    return request.param


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def constant_flow(u: float, v: float, height: int, width: int, *, links: int = 1) -> Tensor:
    return torch.tensor([u, v]).view(1, 2, 1, 1, 1).expand(1, 2, links, height, width).contiguous()


@pytest.mark.usefixtures("any_way")
@pytest.mark.parametrize("grid", [(12, 17), (64, 64), (96, 96), (1, 5), (4, 1), (2, 480)])
def test_zero_flow_returns_the_field_unchanged_to_the_bit(grid: tuple[int, int]) -> None:
    field = normal(2, 5, *grid)
    seen = warp(field, torch.zeros(2, 2, 3, *grid))
    assert torch.equal(seen, field[:, :, None].expand_as(seen))


@pytest.mark.usefixtures("any_way")
@pytest.mark.parametrize(("u", "v"), [(1, 0), (0, 1), (-2, 3), (4, -1)])
@pytest.mark.parametrize("grid", [(9, 11), (96, 96), (5, 1)])
def test_a_whole_pixel_flow_reads_the_pixel_it_points_at(u: int, v: int, grid: tuple[int, int]) -> None:
    height, width = grid
    field = normal(1, 1, height, width)
    seen = warp(field, constant_flow(u, v, height, width))[0, 0, 0]
    for i, j in itertools.product(range(height), range(width)):
        inside = 0 <= i + v < height and 0 <= j + u < width
        assert seen[i, j] == (field[0, 0, i + v, j + u] if inside else 0)


@pytest.mark.usefixtures("any_way")
def test_half_a_pixel_is_the_mean_of_two() -> None:
    field = torch.tensor([[0.0, 2.0, 6.0]])[None, None]
    seen = warp(field, constant_flow(0.5, 0, 1, 3))[0, 0, 0]
    torch.testing.assert_close(seen, torch.tensor([[1.0, 4.0, 3.0]]))  # the last reads half outside, where all is 0


@pytest.mark.usefixtures("any_way")
def test_it_is_zero_outside() -> None:
    assert warp(normal(1, 2, 6, 6), constant_flow(100, 0, 6, 6)).abs().max() == 0


@pytest.mark.usefixtures("any_way")
def test_it_is_the_formula_of_the_paper() -> None:
    field = normal(2, 3, 7, 9, dtype=torch.float64)
    flow = 2.5 * normal(2, 2, 2, 7, 9, seed=1, dtype=torch.float64)
    seen = warp(field, flow)
    for image in range(2):
        for link in range(2):
            expected = reference.warp_by_the_formula(field[image], flow[image, 0, link], flow[image, 1, link])
            torch.testing.assert_close(seen[image, :, link], expected, rtol=0, atol=1e-6)


@pytest.mark.usefixtures("any_way")
def test_its_gradients_are_those_of_finite_differences() -> None:
    field = normal(2, 3, 4, 5, dtype=torch.float64).requires_grad_()
    flow = (1.5 * normal(2, 2, 2, 4, 5, seed=1, dtype=torch.float64)).requires_grad_()
    weight = normal(4, 6, 1, 1, seed=2, dtype=torch.float64).requires_grad_()
    bias = normal(4, seed=3, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(warp_and_project, (field, flow, weight, bias))


def outcome(field: Tensor, flow: Tensor, weight: Tensor, bias: Tensor) -> list[Tensor]:
    leaves = [x.clone().requires_grad_() for x in (field, flow, weight, bias)]
    projected = warp_and_project(*leaves)
    return [projected, *torch.autograd.grad((projected * projected.detach().cos()).sum(), leaves)]


def example(channels: int = 32, side: int = 24, links: int = 5) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return (
        normal(3, channels, side, side),
        2 * normal(3, 2, links, side, side, seed=1),
        normal(7, links * channels, 1, 1, seed=2) / (links * channels) ** 0.5,
        normal(7, seed=3),
    )


@pytest.mark.usefixtures("any_way")
def test_in_single_precision_values_and_gradients_are_those_of_double(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training is in single precision, where the products go another way than in double."""
    ours = outcome(*example())
    monkeypatch.setattr(way, "warp_kernel", None)
    for single, double in zip(ours, outcome(*(x.double() for x in example())), strict=True):
        torch.testing.assert_close(single.double(), double, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("chunk_bytes", [20_000, 200_000, 400_000, 1 << 30])
def test_the_size_of_a_chunk_changes_nothing(monkeypatch: pytest.MonkeyPatch, chunk_bytes: int) -> None:
    """One image seen by 5 links is 24 * 24 * 5 * 32 * 4 = 368,640 bytes: parts of one, one, and several at once."""
    expected = outcome(*example())
    monkeypatch.setattr(way, "CHUNK_BYTES", chunk_bytes)
    for ours, theirs in zip(outcome(*example()), expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("two_threads")
def test_two_threads_give_the_same_bits_every_time() -> None:
    first = outcome(*example())
    for _ in range(5):
        assert all(torch.equal(a, b) for a, b in zip(outcome(*example()), first, strict=True))


def test_the_number_of_threads_changes_rounding_at_most(two_threads: None) -> None:
    several = outcome(*example())
    torch.set_num_threads(1)
    for ours, theirs in zip(several, outcome(*example()), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_a_flow_that_is_not_a_number_is_not_hidden() -> None:
    """A diverged network must show it, or training would go on with links that see nothing."""
    flow = torch.zeros(1, 2, 1, 4, 4)
    flow[0, 0, 0, 1, 2] = float("nan")
    assert warp(normal(1, 1, 4, 4), flow)[0, 0, 0].isnan().nonzero().tolist() == [[1, 2]]


@pytest.mark.usefixtures("any_way")
def test_coordinates_keep_their_digits_under_autocast() -> None:
    """bfloat16, which a flow net gives under autocast, has 8 bits: the place 200.25 would become 200."""
    stripes = torch.arange(256.0) % 2
    field, flow = stripes.expand(1, 1, 2, 256).contiguous(), constant_flow(0.25, 0, 2, 256).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        seen = warp(field, flow)[0, 0, 0, 0]
    # A quarter of the way to the next stripe. bfloat16 has 0.25 and 0.75, so the product may be rounded to it.
    expected = 0.75 * stripes[:-1] + 0.25 * stripes[1:]
    torch.testing.assert_close(seen[:-1].float(), expected, rtol=0, atol=1e-3)
