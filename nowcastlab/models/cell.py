"""What the encoder-forecaster asks of a recurrent cell: one step, no memory of its own.

C channels of the input, d of the state; a state is a tuple of tensors whose first is H, the one others see.
"""

from __future__ import annotations

from torch import Tensor, nn

from nowcastlab.models.convolution import Conv2d

State = tuple[Tensor, ...]
Reading = tuple[Tensor, ...]

SLOPE = 0.2  # of every leaky ReLU (Shi et al. 2017)


class Cell(nn.Module):
    """One step of a recurrent layer. What depends on the input alone is worked out for many steps at once: `read`."""

    filters: int

    def read(self, x: Tensor) -> Reading:
        """The input-to-state part of any number of steps: (n, C, H, W) to tensors (n, ..., H, W)."""
        raise NotImplementedError

    def forward(self, reading: Reading, state: State) -> State:
        """The next state. A cell built without input is given an empty reading, and does no work for it."""
        raise NotImplementedError

    def begin(self, reading: Reading) -> State:
        """The state after the first step, which starts from zeros: `forward` without the products with zero."""
        raise NotImplementedError


def conv(inputs: int, outputs: int, kernel: int, *, dilation: int = 1) -> Conv2d:
    """A convolution that keeps the grid. Its values are set by `initialise`, so none are drawn here."""
    return nn.utils.skip_init(Conv2d, inputs, outputs, kernel, padding=dilation * (kernel // 2), dilation=dilation)
