"""The convolutional GRU of Shi et al. 2017.

    Z = sigmoid(Wxz * X + Whz * H)
    R = sigmoid(Wxr * X + Whr * H)
    H' = f(Wxh * X + R o (Whh * H))
    H <- (1 - Z) o H' + Z o H

with biases, f the leaky ReLU. Note that R multiplies the convolved state, so that the three gates are one convolution.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nowcastlab.models.cell import SLOPE, Cell, Reading, State, conv


def gru_step(from_input: Tensor | None, from_state: Tensor, h: Tensor) -> Tensor:
    """The gates (reset, update, new along the channels, as each side gives them) and the new state."""
    r, z, new = from_state.chunk(3, dim=1)
    if from_input is not None:
        xr, xz, xnew = from_input.chunk(3, dim=1)
        r, z = r + xr, z + xz
        new = xnew + torch.sigmoid(r) * new
    else:
        new = torch.sigmoid(r) * new
    z = torch.sigmoid(z)
    return z * h + (1 - z) * F.leaky_relu(new, SLOPE)


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
