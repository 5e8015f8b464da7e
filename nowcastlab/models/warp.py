"""The warp: every pixel reads the field where its flow points, by bilinear sampling, zero outside.

field  (batch, C, H, W)     what is read
flow   (batch, 2, L, H, W)  U then V, in pixels, for each of L links: pixel (i, j) reads at (i + V, j + U)

    M[c, i, j] = sum over m, n of I[c, m, n] max(0, 1 - |i + V[i, j] - m|) max(0, 1 - |j + U[i, j] - n|)

which is the formula of Shi et al. 2017. Zero flow gives the field back unchanged.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def warp(field: Tensor, flow: Tensor) -> Tensor:
    """The field as each link sees it: (batch, C, L, H, W)."""
    batch, channels, height, width = field.shape
    links = flow.shape[2]
    x = torch.arange(width, device=field.device, dtype=flow.dtype) + flow[:, 0]
    y = torch.arange(height, device=field.device, dtype=flow.dtype)[:, None] + flow[:, 1]
    # Normalised by (n - 1), so corners must be aligned: the default of grid_sample would move a field at rest.
    grid = torch.stack([2 * x / max(width - 1, 1) - 1, 2 * y / max(height - 1, 1) - 1], dim=-1)
    # The links are stacked along y: one call reads all of them and the field is not copied.
    grid = grid.reshape(batch, links * height, width, 2).to(field.dtype)
    sampled = F.grid_sample(field, grid, mode="bilinear", padding_mode="zeros", align_corners=True)
    return sampled.view(batch, channels, links, height, width)


def warp_and_project(field: Tensor, flow: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The sum over links of weight_l times the warped field: (batch, out, H, W).

    weight  (out, L * C, 1, 1), as of a 1x1 convolution of the L warped copies laid one after another
    """
    links, channels = flow.shape[2], field.shape[1]
    seen = warp(field, flow).flatten(1, 2)
    by_channel = weight.view(-1, links, channels).transpose(1, 2).reshape_as(weight)
    return F.conv2d(seen, by_channel, bias)
