"""The convolutional LSTM, without peepholes, as most who compare with it today build it.

I, F, O = sigmoid(Wx * X + Wh * H), G = tanh(Wxg * X + Whg * H)
C <- F o C + I o G
H <- O o tanh(C)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nowcastlab.models.cell import Cell, Reading, State, conv


class ConvLSTMCell(Cell):
    def __init__(self, inputs: int, filters: int, *, input_kernel: int, state_kernel: int, state_dilation: int) -> None:
        super().__init__()
        self.filters = filters
        self.input_to_state: nn.Conv2d | None = conv(inputs, 4 * filters, input_kernel) if inputs else None
        self.state_to_state = conv(filters, 4 * filters, state_kernel, dilation=state_dilation)

    def read(self, x: Tensor) -> Reading:
        assert self.input_to_state is not None
        return (self.input_to_state(x),)

    def forward(self, reading: Reading, state: State) -> State:
        h, c = state
        gates = self.state_to_state(h).to(c.dtype)
        return lstm_step_(gates.add_(reading[0]) if reading else gates, c)

    def begin(self, reading: Reading) -> State:
        (from_input,) = reading
        bias = self.state_to_state.bias
        assert bias is not None
        c = from_input.new_zeros(from_input.shape[0], self.filters, *from_input.shape[2:], dtype=bias.dtype)
        return lstm_step_(from_input + bias[:, None, None], c)


def lstm_step_(gates: Tensor, c: Tensor) -> State:
    """The new H and C. Gates are (batch, 4d, H, W): input, forget, output, new; their memory is used for what is kept
    of the step. The cell keeps its precision under autocast."""
    h, c, _ = _LSTMStep.apply(gates, c)
    return h, c


class _LSTMStep(torch.autograd.Function):
    """By hand, for memory: a step keeps its gates where the convolution left them, in one piece, and its states.
    tanh(C) is worked out again. Left to autograd, gates in pieces would leave holes between them."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, before: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        ctx.mark_dirty(gates)
        sigmoids, new = gates.split([3 * before.shape[1], before.shape[1]], dim=1)
        i, f, o = sigmoids.sigmoid_().chunk(3, dim=1)
        c = torch.mul(f, before).addcmul_(i, new.tanh_())
        ctx.save_for_backward(gates, before, c)
        return c.tanh().mul_(o), c, gates

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        gates, before, c = ctx.saved_tensors
        grad_h, grad_c, _ = grads
        if grad_h is None and grad_c is None:
            return None, None
        i, f, o, new = gates.chunk(4, dim=1)
        grad_gates = torch.empty_like(gates)
        grad_sigmoids, grad_new = grad_gates.split([3 * before.shape[1], before.shape[1]], dim=1)
        grad_i, grad_f, grad_o = grad_sigmoids.chunk(3, dim=1)
        if grad_h is None:
            assert grad_c is not None
            total = grad_c
            grad_o.zero_()
        else:
            tanh = c.tanh()
            torch.mul(grad_h, tanh, out=grad_o)
            total = torch.ops.aten.tanh_backward(grad_h * o, tanh)
            if grad_c is not None:
                total += grad_c
        torch.mul(total, new, out=grad_i)
        torch.mul(total, before, out=grad_f)
        torch.ops.aten.sigmoid_backward.grad_input(
            grad_sigmoids, gates[:, : grad_sigmoids.shape[1]], grad_input=grad_sigmoids
        )
        torch.ops.aten.tanh_backward.grad_input(total * i, new, grad_input=grad_new)
        return grad_gates, total * f
