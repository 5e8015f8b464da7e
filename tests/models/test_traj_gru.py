"""The trajectory GRU beside the convolutional GRU, of which it is the general case."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nowcastlab.models.conv_gru import ConvGRUCell, gru_step
from nowcastlab.models.initialise import initialise
from nowcastlab.models.traj_gru import TrajGRUCell


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def pinned(conv: ConvGRUCell, inputs: int, *, kernel: int, dilation: int) -> TrajGRUCell:
    """A TrajGRU whose flow net says the same everywhere: link l looks where tap l of a k x k convolution looks."""
    traj = TrajGRUCell(inputs, conv.filters, input_kernel=3, links=kernel**2, flow_filters=4)
    initialise(traj, seed=1)
    offsets = dilation * (torch.arange(kernel) - kernel // 2)
    v, u = torch.meshgrid(offsets, offsets, indexing="ij")
    with torch.no_grad():
        assert traj.flow.weight.abs().max() == 0, "the flow net's last layer starts at zero"
        traj.flow.bias.copy_(torch.cat([u.flatten(), v.flatten()]))
        # (3d, C, k, k) to (3d, k * k * C): the links one after another
        traj.state_to_state.weight.copy_(
            conv.state_to_state.weight.flatten(2).transpose(1, 2).flatten(1)[..., None, None]
        )
        traj.state_to_state.bias.copy_(conv.state_to_state.bias)
        traj.input_to_state.load_state_dict(conv.input_to_state.state_dict())
    return traj


@pytest.mark.parametrize(("kernel", "dilation"), [(3, 1), (3, 2), (5, 1)])
def test_links_pinned_to_a_grid_make_it_the_convolutional_gru(kernel: int, dilation: int) -> None:
    conv = ConvGRUCell(5, 6, input_kernel=3, state_kernel=kernel, state_dilation=dilation)
    initialise(conv, seed=0)
    traj = pinned(conv, 5, kernel=kernel, dilation=dilation)
    x, h = normal(2, 5, 9, 11), normal(2, 6, 9, 11, seed=1)

    (expected,) = conv(conv.read(x), (h,))
    (ours,) = traj(traj.read(x), (h,))
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-5)

    # and so do the gradients of what both have
    toward = normal(*h.shape, seed=2)
    (expected * toward).sum().backward()
    (ours * toward).sum().backward()
    torch.testing.assert_close(traj.input_to_state.weight.grad, conv.input_to_state.weight.grad, rtol=1e-4, atol=1e-4)
    links = traj.state_to_state.weight.grad.view(18, kernel**2, 6).transpose(1, 2)
    torch.testing.assert_close(links, conv.state_to_state.weight.grad.flatten(2), rtol=1e-4, atol=1e-4)


def test_links_that_are_not_pinned_make_it_another_network() -> None:
    conv = ConvGRUCell(5, 6, input_kernel=3, state_kernel=3, state_dilation=1)
    initialise(conv, seed=0)
    traj = pinned(conv, 5, kernel=3, dilation=1)
    with torch.no_grad():
        traj.flow.bias += 0.5
    x, h = normal(2, 5, 9, 11), normal(2, 6, 9, 11, seed=1)
    assert (traj(traj.read(x), (h,))[0] - conv(conv.read(x), (h,))[0]).abs().max() > 0.1


def test_at_first_every_link_looks_at_its_own_pixel() -> None:
    traj = TrajGRUCell(3, 4, input_kernel=3, links=5, flow_filters=4)
    initialise(traj, seed=0)
    assert traj.flows(normal(1, 3, 6, 6), normal(1, 4, 6, 6, seed=1)).abs().max() == 0
    # but its other layers are not zero, or the links could never learn to look elsewhere
    assert traj.state_to_flow.weight.abs().min() > 0
    assert traj.input_to_flow.weight.abs().min() > 0


@pytest.mark.parametrize("cell", [ConvGRUCell, TrajGRUCell])
def test_the_first_step_is_a_step_from_zeros(cell: type) -> None:
    how = {"links": 3, "flow_filters": 4} if cell is TrajGRUCell else {"state_kernel": 3, "state_dilation": 1}
    one = cell(3, 4, input_kernel=3, **how)
    initialise(one, seed=0)
    with torch.no_grad():
        one.state_to_state.bias.normal_(generator=torch.Generator().manual_seed(1))
    reading = one.read(normal(2, 3, 6, 6).contiguous(memory_format=torch.channels_last))
    zeros = torch.zeros(2, 4, 6, 6).contiguous(memory_format=torch.channels_last)
    assert torch.equal(one.begin(reading)[0], one(reading, (zeros,))[0])


@pytest.mark.parametrize("with_input", [True, False])
def test_the_gradients_of_the_gates_are_those_of_finite_differences(with_input: bool) -> None:
    from_state = normal(2, 6, 3, 3, seed=1, dtype=torch.float64).requires_grad_()
    h = normal(2, 2, 3, 3, seed=2, dtype=torch.float64).requires_grad_()
    from_input = normal(2, 6, 3, 3, dtype=torch.float64).requires_grad_() if with_input else None
    assert torch.autograd.gradcheck(gru_step, (from_input, from_state, h))
