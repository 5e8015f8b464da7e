"""What every forecaster is, deep or not: frames in, frames out.

frames    (batch, time, y, x) float, p = pixel / 255, oldest first
valid     (batch, time, y, x) bool, the benchmark's mask; only optical flow looks at it
forecast  (batch, leads, y, x) float, p
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Forecaster(nn.Module):
    def forward(self, frames: Tensor, leads: int) -> Tensor:
        """The differentiable forecast, as it leaves the model: what losses see, unclipped."""
        raise NotImplementedError

    def check_grid(self, height: int, width: int) -> None:
        """Raise a ConfigError, with the numbers in it, if the model cannot work on such a grid."""

    def links(self, frames: Tensor) -> Tensor | None:
        """Where it has learnt to look, (batch, links, 2, h, w): dx, dy in cells. None for what has no links."""
        return None

    @torch.inference_mode()
    def predict(self, frames: Tensor, valid: Tensor | None = None, *, leads: int) -> Tensor:
        """The forecast as the benchmark scores it. Networks may leave [0, 1] and are clipped back.

        Batch norm uses its running statistics; the module is left in the mode it was found in.
        """
        was_training = self.training
        self.eval()
        try:
            return self(frames, leads).float().clamp(0, 1)
        finally:
            self.train(was_training)
