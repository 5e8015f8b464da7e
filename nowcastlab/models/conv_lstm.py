"""The convolutional LSTM, without peepholes, as most who compare with it today build it.

I, F, O = sigmoid(Wx * X + Wh * H), G = tanh(Wxg * X + Whg * H)
C <- F o C + I o G
H <- O o tanh(C)
"""

from __future__ import annotations

from torch import Tensor, nn

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
        gates = self.state_to_state(h)
        return lstm_step(gates + reading[0] if reading else gates, c)

    def begin(self, reading: Reading) -> State:
        (from_input,) = reading
        bias = self.state_to_state.bias
        assert bias is not None
        c = from_input.new_zeros(from_input.shape[0], self.filters, *from_input.shape[2:], dtype=bias.dtype)
        return lstm_step(from_input + bias[:, None, None], c)


def lstm_step(gates: Tensor, c: Tensor) -> State:
    """gates (batch, 4d, H, W): input, forget, output, new. The cell keeps its precision under autocast."""
    sigmoids, new = gates.to(c.dtype).split([3 * c.shape[1], c.shape[1]], dim=1)
    i, f, o = sigmoids.sigmoid().chunk(3, dim=1)
    c = f * c + i * new.tanh()
    return o * c.tanh(), c
