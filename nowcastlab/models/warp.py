"""The warp: every pixel reads the field where its flow points, by bilinear sampling, zero outside.

field  (batch, C, H, W)     what is read
flow   (batch, 2, L, H, W)  U then V, in pixels, for each of L links: pixel (i, j) reads at (i + V, j + U)

    M[c, i, j] = sum over m, n of I[c, m, n] max(0, 1 - |i + V[i, j] - m|) max(0, 1 - |j + U[i, j] - n|)

which is the formula of Shi et al. 2017. Zero flow gives the field back unchanged.

TrajGRU never needs the warped fields themselves, only their product with the weights of the links. On a CPU the two are
one operation, a few thousand pixels at a time: gather what the links see (compiled, see `warp_kernel`), multiply. What
was seen is 13 times the state and is not kept; the backward pass gathers again, which costs less than 5% of a step
(measured at 64 channels on 64 x 64, one core). Where all of it fits in one chunk it is kept.
Other devices, and a CPU without numba, sample with `grid_sample` and keep everything.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from nowcastlab.models.threads import in_parallel, parts, share

try:
    from nowcastlab.models import warp_kernel
except ImportError:  # numba does not exist for every Python: the plain way gives the same numbers, slower
    warp_kernel = None  # type: ignore[assignment]

# What torch.compile uses for a linear layer on a CPU; not in a build of torch without oneDNN.
_ONEDNN_LINEAR: Any = (
    torch.ops.mkldnn._linear_pointwise.default if hasattr(torch.ops.mkldnn, "_linear_pointwise") else None
)
CHUNK_BYTES = 4 << 20  # what the links see at a time: stays in cache between gathering and multiplying


def warp(field: Tensor, flow: Tensor) -> Tensor:
    """The field as each link sees it: (batch, C, L, H, W)."""
    links, channels = flow.shape[2], field.shape[1]
    apart = torch.eye(links * channels, device=field.device, dtype=field.dtype)[..., None, None]
    return warp_and_project(field, flow, apart, None).unflatten(1, (links, channels)).transpose(1, 2)


def warp_and_project(field: Tensor, flow: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The sum over links of weight_l times the warped field: (batch, out, H, W).

    weight  (out, L * C, 1, 1), as of a 1x1 convolution of the L warped copies laid one after another
    """
    # Coordinates need their digits: under autocast a flow net's output has 8 bits.
    flow = flow.to(torch.promote_types(flow.dtype, torch.float32))
    # On the meta device, where networks are counted, grid_sample takes 30 ms and ours none.
    ours = field.device.type in ("cpu", "meta") and field.dtype in (torch.float32, torch.float64)
    if warp_kernel is None or not ours:
        return project_by_grid_sample(field, flow, weight, bias)
    if bias is None:
        bias = weight.new_zeros(weight.shape[0])
    return _WarpAndProject.apply(field, flow.to(field.dtype), weight.to(field.dtype), bias.to(field.dtype))


def project_by_grid_sample(field: Tensor, flow: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The same in plain torch, for any device."""
    batch, channels, height, width = field.shape
    links = flow.shape[2]
    x = torch.arange(width, device=field.device, dtype=flow.dtype) + flow[:, 0]
    y = torch.arange(height, device=field.device, dtype=flow.dtype)[:, None] + flow[:, 1]
    # grid_sample takes places as shares of a side. On sides that are powers of two that rounds no whole pixel; on 96 a
    # field at rest would move by some 1e-6 of a pixel. What is added is zero, as everything outside.
    wide, high = (1 << (side - 1).bit_length() for side in (width, height))
    room = F.pad(field.to(flow.dtype), (0, wide - width, 0, high - height))
    grid = torch.stack([(2 * x + 1) / wide - 1, (2 * y + 1) / high - 1], dim=-1)
    # The links are stacked along y: one call reads all of them.
    grid = grid.reshape(batch, links * height, width, 2)
    seen = F.grid_sample(room, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    by_channel = weight.view(-1, links, channels).transpose(1, 2).reshape_as(weight)
    seen = seen.view(batch, channels * links, height, width)
    return F.conv2d(seen, by_channel.to(seen.dtype), None if bias is None else bias.to(seen.dtype))


class _WarpAndProject(torch.autograd.Function):
    """Inside, everything is channels last: what a pixel sees is one row of a matrix."""

    @staticmethod
    def forward(ctx: Any, field: Tensor, flow: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        matrix = weight.flatten(1)
        padded, flow = _padded(field), flow.permute(0, 3, 4, 1, 2).contiguous()
        batch, height, width = flow.shape[:3]
        chunks, rows = _chunks(padded, flow), []
        for images, start, seen in chunks:
            _gather(padded[images], flow[images], seen, start)
            rows.append(product(seen.view(-1, matrix.shape[1]), matrix, bias))
        out = torch.cat(rows) if len(rows) > 1 else rows[0]
        # What was seen is kept where it is small: there a second gathering would cost more than the memory.
        kept = chunks[0][2] if len(chunks) == 1 else None
        ctx.save_for_backward(padded, flow, weight, kept)
        return out.view(batch, height, width, -1).permute(0, 3, 1, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        padded, flow, weight, kept = ctx.saved_tensors
        batch, height, width = flow.shape[:3]
        matrix = weight.flatten(1)
        grad = grads[0].permute(0, 2, 3, 1).reshape(batch, height * width, -1)
        grad_padded, grad_flow = torch.zeros_like(padded), torch.empty_like(flow)
        grad_matrix = torch.zeros_like(matrix)
        for images, start, seen in _chunks(padded, flow) if kept is None else [(slice(batch), 0, kept)]:
            if kept is None:
                _gather(padded[images], flow[images], seen, start)
            to_gates = grad[images, start : start + seen.shape[1]].reshape(-1, matrix.shape[0])
            grad_matrix += product(to_gates.t(), seen.view(-1, matrix.shape[1]).t())
            grad_seen = product(to_gates, matrix.t()).view_as(seen)
            _scatter(padded[images], flow[images], grad_seen, grad_padded[images], grad_flow[images], start)
        grad_field = grad_padded[:, 1:-1, 1:-1].permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
        return grad_field, grad_flow.permute(0, 3, 4, 1, 2), grad_matrix.view_as(weight), grad.sum(dim=(0, 1))


def product(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    """left @ right.t() + bias, through oneDNN where that can be had. torch sends plain products to MKL, which on an AMD
    EPYC has less than half oneDNN's rate: 120 against 265 GFLOP/s on one core, (1024, 832) by (832, 192)."""
    if _ONEDNN_LINEAR is not None and left.dtype == torch.float32 and not left.is_meta:
        return _ONEDNN_LINEAR(left, right, bias, "none", [], "")
    out = left.new_empty(left.shape[0], right.shape[0])  # given a place, autocast does not lower the precision
    return torch.mm(left, right.t(), out=out) if bias is None else torch.addmm(bias, left, right.t(), out=out)


def _padded(field: Tensor) -> Tensor:
    """Channels last, with a border of zeros: what the kernel reads."""
    batch, channels, height, width = field.shape
    padded = field.new_zeros(batch, height + 2, width + 2, channels)
    padded[:, 1:-1, 1:-1] = field.permute(0, 2, 3, 1)
    return padded


def _chunks(padded: Tensor, flow: Tensor) -> list[tuple[slice, int, Tensor]]:
    """Which images, the first pixel, and room for what these pixels see, (images, pixels, L, C).

    As many whole images as fit, or else parts of one. The room is the same for all.
    """
    batch, height, width, _, links = flow.shape
    pixels, channels = height * width, padded.shape[3]
    image_bytes = pixels * links * channels * padded.element_size()
    if image_bytes > CHUNK_BYTES:
        size = -(-pixels // round(image_bytes / CHUNK_BYTES))
        room = padded.new_empty(1, size, links, channels)
        starts = range(0, pixels, size)
        return [(slice(b, b + 1), at, room[:, : pixels - at]) for b in range(batch) for at in starts]
    images = min(batch, CHUNK_BYTES // image_bytes)
    room = padded.new_empty(images, pixels, links, channels)
    return [(slice(b, b + images), 0, room[: batch - b]) for b in range(0, batch, images)]


def _gather(padded: Tensor, flow: Tensor, seen: Tensor, start: int) -> None:
    if padded.is_meta:
        return
    share(seen.shape[1], warp_kernel.gather, padded.numpy(), flow.numpy(), seen.numpy(), start, at_least=256)


def _scatter(
    padded: Tensor, flow: Tensor, grad_seen: Tensor, grad_padded: Tensor, grad_flow: Tensor, start: int
) -> None:
    if padded.is_meta:
        return
    arrays = padded.numpy(), flow.numpy(), grad_seen.numpy(), grad_padded.numpy()
    shares = parts(padded.shape[3], at_least=16)
    # Every part has its own room for the flow's gradient, and they are added in order: the same bits every time.
    others = [torch.empty_like(grad_flow) for _ in shares[1:]]
    rooms = [grad_flow, *others]
    in_parallel(
        [
            partial(warp_kernel.scatter, *arrays, room.numpy(), start, first, last)
            for room, (first, last) in zip(rooms, shares, strict=True)
        ]
    )
    pixels = slice(start, start + grad_seen.shape[1])
    for other in others:
        grad_flow.flatten(1, 2)[:, pixels] += other.flatten(1, 2)[:, pixels]
