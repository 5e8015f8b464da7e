"""The step of the convolutional LSTM, whose gradients are written by hand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nowcastlab.models.conv_lstm import ConvLSTMCell, lstm_step_
from nowcastlab.models.initialise import initialise


def normal(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize("wanted", ["h", "c", "both"])
def test_the_gates_gradients_agree_with_finite_differences(wanted: str) -> None:
    def step(gates: Tensor, c: Tensor) -> Tensor | tuple[Tensor, ...]:
        h, c = lstm_step_(gates.clone(), c)  # what it is given it uses up
        return {"h": h, "c": c, "both": (h, c)}[wanted]

    assert torch.autograd.gradcheck(step, (normal(2, 8, 3, 3, seed=0), normal(2, 2, 3, 3, seed=1)))


def test_two_steps_gradients_agree_with_finite_differences() -> None:
    """H and C of the first both reach the second, and there is a loss on either's H."""
    cell = ConvLSTMCell(1, 2, input_kernel=3, state_kernel=3, state_dilation=1).double()
    initialise(cell, seed=0)

    def run(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        first = cell.begin(cell.read(x))
        second = cell(cell.read(y), first)
        return first[0], second[0]

    assert torch.autograd.gradcheck(run, (normal(2, 1, 4, 3, seed=0), normal(2, 1, 4, 3, seed=1)))


def test_a_step_is_the_formula() -> None:
    gates, c = torch.tensor([1.0, -1.0, 0.5, 2.0]).view(1, 4, 1, 1), torch.full((1, 1, 1, 1), -0.7)
    i, f, o = (1 / (1 + torch.exp(-torch.tensor(gate))) for gate in (1.0, -1.0, 0.5))
    after = f * -0.7 + i * torch.tanh(torch.tensor(2.0))
    h, c = lstm_step_(gates, c)
    torch.testing.assert_close(c.squeeze(), after)
    torch.testing.assert_close(h.squeeze(), o * torch.tanh(after))
