"""The recurrent networks written plainly, with the parameters of ours: step by step, gate by gate, link by link.

Nothing here is clever, so that it can be read beside the formulas of Shi et al. 2017. Tests demand that ours agree with
it in values and gradients, and `nowcastlab bench models` says how much faster ours are.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from nowcastlab.models.cell import Cell
from nowcastlab.models.conv_gru import ConvGRUCell
from nowcastlab.models.conv_lstm import ConvLSTMCell
from nowcastlab.models.dfn import DynamicFilterNetwork
from nowcastlab.models.encoder_forecaster import EncoderForecaster
from nowcastlab.models.traj_gru import TrajGRUCell


def leaky(x: Tensor) -> Tensor:
    return F.leaky_relu(x, 0.2)


def warp_one_link(field: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """field (B, C, H, W), u and v (B, H, W) in pixels."""
    _, _, height, width = field.shape
    i = torch.arange(height, dtype=field.dtype)[:, None]
    j = torch.arange(width, dtype=field.dtype)
    x = 2 * (j + u) / (width - 1) - 1
    y = 2 * (i + v) / (height - 1) - 1
    return F.grid_sample(field, torch.stack([x, y], dim=-1), padding_mode="zeros", align_corners=True)


def warp_by_the_formula(field: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """The paper's double sum for one image, pixel by pixel: field (C, H, W), u and v (H, W)."""
    _, height, width = field.shape
    m, n = torch.arange(height)[:, None], torch.arange(width)
    warped = torch.zeros_like(field)
    for i in range(height):
        for j in range(width):
            near = (1 - (i + v[i, j] - m).abs()).clamp(min=0) * (1 - (j + u[i, j] - n).abs()).clamp(min=0)
            warped[:, i, j] = (field * near).sum(dim=(1, 2))
    return warped


def gates_from_input(cell: Cell, x: Tensor | None, count: int) -> list[Tensor]:
    """One convolution a gate; nothing where there is no input."""
    if x is None:
        return [torch.zeros(()) for _ in range(count)]
    layer = cell.input_to_state
    pairs = zip(layer.weight.chunk(count), layer.bias.chunk(count), strict=True)
    return [F.conv2d(x, weight, bias, padding=layer.padding) for weight, bias in pairs]


def gates_from_state(cell: Cell, h: Tensor, count: int) -> list[Tensor]:
    layer = cell.state_to_state
    pairs = zip(layer.weight.chunk(count), layer.bias.chunk(count), strict=True)
    return [F.conv2d(h, weight, bias, padding=layer.padding, dilation=layer.dilation) for weight, bias in pairs]


def plain_conv(layer: torch.nn.Conv2d, x: Tensor) -> Tensor:
    return F.conv2d(x, layer.weight, layer.bias, padding=layer.padding)


def gru(x_gates: list[Tensor], h_gates: list[Tensor], h: Tensor) -> Tensor:
    r = torch.sigmoid(x_gates[0] + h_gates[0])
    z = torch.sigmoid(x_gates[1] + h_gates[1])
    new = leaky(x_gates[2] + r * h_gates[2])
    return (1 - z) * new + z * h


def step(cell: Cell, x: Tensor | None, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    h = state[0]
    if isinstance(cell, ConvGRUCell):
        return (gru(gates_from_input(cell, x, 3), gates_from_state(cell, h, 3), h),)
    if isinstance(cell, TrajGRUCell):
        hidden = plain_conv(cell.state_to_flow, h)
        if x is not None:
            hidden = hidden + plain_conv(cell.input_to_flow, x)
        flow = plain_conv(cell.flow, leaky(hidden))
        links = cell.links
        warped = torch.cat([warp_one_link(h, flow[:, k], flow[:, links + k]) for k in range(links)], dim=1)
        return (gru(gates_from_input(cell, x, 3), gates_from_state(cell, warped, 3), h),)
    assert isinstance(cell, ConvLSTMCell)
    pairs = zip(gates_from_input(cell, x, 4), gates_from_state(cell, h, 4), strict=True)
    i, f, o, g = [a + b for a, b in pairs]
    c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def forecast(model: EncoderForecaster, frames: Tensor, leads: int) -> Tensor:
    """What model(frames, leads) should be."""
    batch, steps, height, width = frames.shape
    x = torch.linspace(-1, 1, width, dtype=frames.dtype).expand(batch, height, width)
    y = torch.linspace(-1, 1, height, dtype=frames.dtype)[:, None].expand(batch, height, width)
    states: list[tuple[Tensor, ...] | None] = [None] * len(model.encoder)
    for t in range(steps):
        below = torch.stack([frames[:, t], x, y, torch.ones_like(x)], dim=1)
        for k, cell in enumerate(model.encoder):
            below = leaky(model.stem(below) if k == 0 else model.downs[k - 1](below))
            if states[k] is None:
                states[k] = tuple(
                    below.new_zeros(batch, cell.filters, *below.shape[2:])
                    for _ in range(2 if isinstance(cell, ConvLSTMCell) else 1)
                )
            states[k] = step(cell, below, states[k])
            below = states[k][0]
    states = states[::-1]
    frame, frames_ahead = frames[:, -1:], []
    for _ in range(leads):
        above = None
        for k, cell in enumerate(model.forecaster):
            if k > 0:
                above = leaky(model.ups[k - 1](above))
            states[k] = step(cell, above, states[k])
            above = states[k][0]
        if isinstance(model, DynamicFilterNetwork):
            frame = filtered(frame, model.head(above).softmax(dim=1))
        else:
            frame = model.head(above)
        frames_ahead.append(frame)
    return torch.cat(frames_ahead, dim=1)


def filtered(frame: Tensor, filters: Tensor) -> Tensor:
    """Every pixel its own k x k filter, by k * k shifted copies: frame (B, 1, H, W), filters (B, k * k, H, W)."""
    k = round(filters.shape[1] ** 0.5)
    height, width = frame.shape[2:]
    wide = F.pad(frame, (k // 2,) * 4)
    out = torch.zeros_like(frame)
    for i in range(k):
        for j in range(k):
            out = out + filters[:, i * k + j, None] * wide[:, :, i : i + height, j : j + width]
    return out
