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

    def begin(self, reading: Reading) -> State:
        return (first_gru_step(reading[0], self.state_to_state),)


def gru_step(from_input: Tensor | None, from_state: Tensor, h: Tensor) -> Tensor:
    """The new state. Either side gives reset, update and new, in this order along the channels; the state keeps its
    precision under autocast."""
    return _GRUStep.apply(None if from_input is None else from_input.to(h.dtype), from_state.to(h.dtype), h)


def first_gru_step(from_input: Tensor, state_to_state: nn.Conv2d) -> Tensor:
    """The step from a state of zeros, of which nothing but the convolution's bias reaches the gates."""
    bias = state_to_state.bias
    assert bias is not None
    batch, gates, height, width = from_input.shape
    h = from_input.new_zeros(batch, gates // 3, height, width, dtype=bias.dtype)
    return gru_step(from_input, bias[:, None, None].expand_as(from_input), h)


class _GRUStep(torch.autograd.Function):
    """The gates by hand, mostly for memory: autograd would keep more than these 4 tensors of the state's size a step.
    In time it gains a fifth on large grids and nothing on small ones."""

    @staticmethod
    def forward(ctx: Any, from_input: Tensor | None, from_state: Tensor, h: Tensor) -> Tensor:
        d = h.shape[1]
        from_state_rz, from_state_new = from_state.split([2 * d, d], dim=1)
        # r, z and the state's part of the new information, in tensors of their own: what gave them can go.
        s_new = torch.empty_like(h).copy_(from_state_new)
        if from_input is None:
            rz = from_state_rz.sigmoid()
            r, z = rz.chunk(2, dim=1)
            new = F.leaky_relu_(r * s_new, SLOPE)
        else:
            from_input_rz, from_input_new = from_input.split([2 * d, d], dim=1)
            rz = (from_input_rz + from_state_rz).sigmoid_()
            r, z = rz.chunk(2, dim=1)
            new = F.leaky_relu_(torch.addcmul(from_input_new, r, s_new), SLOPE)
        ctx.save_for_backward(rz, s_new, new, h)
        return torch.lerp(new, h, z)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        rz, s_new, new, h = ctx.saved_tensors
        grad = grads[0]
        r, z = rz.chunk(2, dim=1)
        grad_h = grad * z
        # A leaky ReLU keeps the sign, so its slope can be told from its result.
        grad_new = torch.ops.aten.leaky_relu_backward(grad - grad_h, new, SLOPE, True)
        gates = torch.empty_like(rz)
        grad_r, grad_z = gates.chunk(2, dim=1)
        torch.mul(grad_new, s_new, out=grad_r)
        torch.mul(grad, h - new, out=grad_z)
        torch.ops.aten.sigmoid_backward.grad_input(gates, rz, grad_input=gates)
        grad_state = torch.cat([gates, grad_new * r], dim=1)
        grad_input = torch.cat([gates, grad_new], dim=1) if ctx.needs_input_grad[0] else None
        return grad_input, grad_state, grad_h
