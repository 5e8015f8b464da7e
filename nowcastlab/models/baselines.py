"""Persistence: what every nowcast must beat."""

from __future__ import annotations

import torch
from torch import Tensor

from nowcastlab.models.forecaster import Forecaster


class LastFrame(Forecaster):
    """It will look as it looks now, at every lead."""

    def forward(self, frames: Tensor, leads: int) -> Tensor:
        return frames[:, -1:].expand(-1, leads, -1, -1).contiguous()

    @torch.inference_mode()
    def predict(self, frames: Tensor, valid: Tensor | None = None, *, leads: int) -> Tensor:
        """The last frame as it came: unmasked and unclipped, as the benchmark scores it."""
        return self(frames, leads).float()
