"""The dynamic filter network as Shi et al. 2017 compare it: the encoder-forecaster gives, for each lead and pixel, a
local filter (softmax over 11 x 11) that is applied to the previous forecast, at first to the last input frame."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from nowcastlab.models.encoder_forecaster import EncoderForecaster


class DynamicFilterNetwork(EncoderForecaster):
    def build_head(self) -> nn.Module:
        """fconv4 gives the filters themselves: no bias, and nothing after it."""
        spec = self.spec
        return nn.utils.skip_init(
            nn.Conv2d, spec.filters[0], spec.local_filter**2, spec.head.kernel, padding=spec.head.pad, bias=False
        )

    def forward(self, frames: Tensor, leads: int) -> Tensor:
        self.check_grid(*frames.shape[-2:])
        frame, forecast = frames[:, -1:], []
        # Filter by filter: those of all leads at once would be the largest tensor of the model by far.
        for h in self.features(frames, leads):
            # in the frame's precision: under autocast 121 weights of 8 bits would not sum to one
            filters = self.head(h).to(frames.dtype).softmax(dim=1)
            # Patches are as large as the filters, and sooner made again than kept.
            frame = checkpoint(filtered, frame, filters, use_reentrant=False, preserve_rng_state=False)
            forecast.append(frame)
        return torch.cat(forecast, dim=1)


def filtered(frame: Tensor, filters: Tensor) -> Tensor:
    """Every pixel by a filter of its own: frame (B, 1, H, W), filters (B, size * size, H, W)."""
    size = math.isqrt(filters.shape[1])
    patches = F.unfold(frame, size, padding=size // 2)
    return (filters.flatten(2) * patches).sum(dim=1).view_as(frame)
