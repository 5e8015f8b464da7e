"""The convolutional GRU of Shi et al. 2017.

    Z = sigmoid(Wxz * X + Whz * H)
    R = sigmoid(Wxr * X + Whr * H)
    H' = f(Wxh * X + R o (Whh * H))
    H <- (1 - Z) o H' + Z o H

with biases, f the leaky ReLU. Note that R multiplies the convolved state, so that the three gates are one convolution.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from nowcastlab.models.cell import SLOPE, Cell, Reading, State, conv


class ConvGRUCell(Cell):
    def __init__(self, inputs: int, filters: int, *, input_kernel: int, state_kernel: int, state_dilation: int) -> None:
        super().__init__()
        self.filters = filters
        self.input_to_state: nn.Conv2d | None = conv(inputs, 3 * filters, input_kernel) if inputs else None
        self.state_to_state = conv(filters, 3 * filters, state_kernel, dilation=state_dilation)

    def read(self, x: Tensor) -> Reading:
        assert self.input_to_state is not None
        return (self.input_to_state(x),)

    def forward(self, reading: Reading, state: State) -> State:
        (h,) = state
        return (gru_step(reading[0] if reading else None, self.state_to_state(h), h),)


def gru_step(from_input: Tensor | None, from_state: Tensor, h: Tensor) -> Tensor:
    """The new state. Either side gives reset, update and new, in this order along the channels; the state keeps its
    precision under autocast."""
    return _GRUStep.apply(None if from_input is None else from_input.to(h.dtype), from_state.to(h.dtype), h)


class _GRUStep(torch.autograd.Function):
    """The gates by hand: 6 passes over memory forward and 9 backward, where autograd takes 11 and 19, and keeps twice
    as much. Small grids feel the passes, large ones the memory."""

    @staticmethod
    def forward(ctx: Any, from_input: Tensor | None, from_state: Tensor, h: Tensor) -> Tensor:
        d = h.shape[1]
        rz, s_new = from_state[:, : 2 * d], from_state[:, 2 * d :]
        if from_input is None:
            rz = rz.sigmoid()
            new = F.leaky_relu_(rz[:, :d] * s_new, SLOPE)
        else:
            rz = (rz + from_input[:, : 2 * d]).sigmoid_()
            new = F.leaky_relu_(torch.addcmul(from_input[:, 2 * d :], rz[:, :d], s_new), SLOPE)
        ctx.save_for_backward(rz, s_new, new, h)
        return torch.lerp(new, h, rz[:, d:])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        rz, s_new, new, h = ctx.saved_tensors
        grad, d = grads[0], h.shape[1]
        r, z = rz[:, :d], rz[:, d:]
        grad_h = grad * z
        # A leaky ReLU keeps the sign, so its slope can be told from its result.
        grad_new = torch.ops.aten.leaky_relu_backward(grad - grad_h, new, SLOPE, True)
        grad_state = h.new_empty(h.shape[0], 3 * d, *h.shape[2:])
        gates = grad_state[:, : 2 * d]
        torch.mul(grad_new, s_new, out=gates[:, :d])
        torch.mul(grad, h - new, out=gates[:, d:])
        torch.ops.aten.sigmoid_backward.grad_input(gates, rz, grad_input=gates)
        torch.mul(grad_new, r, out=grad_state[:, 2 * d :])
        grad_input = torch.cat([gates, grad_new], dim=1) if ctx.needs_input_grad[0] else None
        return grad_input, grad_state, grad_h
