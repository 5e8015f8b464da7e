"""The trajectory GRU of Shi et al. 2017: a GRU whose connections are learnt, for each pixel and each step.

    U, V = flow net of (X, H)                              L links, each a flow field
    gates from H = sum over links of W_l * warp(H, U_l, V_l)

and otherwise the convolutional GRU.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from nowcastlab.models.cell import SLOPE, Cell, Reading, State, conv
from nowcastlab.models.conv_gru import first_gru_step, gru_step
from nowcastlab.models.convolution import Conv2d
from nowcastlab.models.warp import warp_and_project

FLOW_KERNEL = 5


class TrajGRUCell(Cell):
    def __init__(self, inputs: int, filters: int, *, input_kernel: int, links: int, flow_filters: int) -> None:
        super().__init__()
        self.filters = filters
        self.links = links
        self.input_to_state: nn.Conv2d | None = conv(inputs, 3 * filters, input_kernel) if inputs else None
        self.state_to_state = conv(links * filters, 3 * filters, 1)
        self.input_to_flow: Conv2d | None = conv(inputs, flow_filters, FLOW_KERNEL) if inputs else None
        self.state_to_flow = conv(filters, flow_filters, FLOW_KERNEL)
        self.flow = conv(flow_filters, 2 * links, FLOW_KERNEL)

    def read(self, x: Tensor) -> Reading:
        assert self.input_to_state is not None
        return self.input_to_state(x), x

    def flows(self, x: Tensor | None, h: Tensor) -> Tensor:
        """The flow net: where each link of each pixel looks, (batch, 2, L, H, W), linear and unbounded."""
        # X's part could be worked out for all steps at once. Beside H's it is done in the same pass, which takes a
        # tenth off the step of a network of 8 channels and less off wider ones (one core of an AMD EPYC).
        hidden = self.state_to_flow(h) if x is None else self.state_to_flow(h, (self.input_to_flow, x))
        return self.flow(F.leaky_relu_(hidden, SLOPE)).unflatten(1, (2, self.links))

    def forward(self, reading: Reading, state: State) -> State:
        (h,) = state
        to_gates, x = reading if reading else (None, None)
        from_state = warp_and_project(h, self.flows(x, h), self.state_to_state.weight, self.state_to_state.bias)
        return (gru_step(to_gates, from_state, h),)

    def begin(self, reading: Reading) -> State:
        return (first_gru_step(reading[0], self.state_to_state),)
