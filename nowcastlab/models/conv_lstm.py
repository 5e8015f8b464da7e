"""The convolutional LSTM, without peepholes, as most who compare with it today build it.

I, F, O = sigmoid(Wx * X + Wh * H), G = tanh(Wxg * X + Whg * H)
C <- F o C + I o G
H <- O o tanh(C)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nowcastlab.models.cell import Cell, Reading, State, conv


class ConvLSTMCell(Cell):
    states = 2

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
        gates = self.state_to_state(h)
        if reading:
            gates = gates + reading[0]
        i, f, o = torch.sigmoid(gates[:, : 3 * self.filters]).chunk(3, dim=1)
        c = f * c + i * torch.tanh(gates[:, 3 * self.filters :])
        return o * torch.tanh(c), c
