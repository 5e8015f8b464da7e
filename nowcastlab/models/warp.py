"""The warp: every pixel reads the field where its flow points, by bilinear sampling, zero outside.

field  (batch, C, H, W)     what is read
flow   (batch, 2, L, H, W)  U then V, in pixels, for each of L links: pixel (i, j) reads at (i + V, j + U)

    M[c, i, j] = sum over m, n of I[c, m, n] max(0, 1 - |i + V[i, j] - m|) max(0, 1 - |j + U[i, j] - n|)

which is the formula of Shi et al. 2017. Zero flow gives the field back unchanged.

TrajGRU never needs the warped fields themselves, only their product with the weights of the links. On a CPU the two are
one operation, a few thousand pixels at a time: gather what the links see (compiled, see `warp_kernel`), multiply. What
was seen is 13 times the state and is not kept; the backward pass gathers again, which costs less than 5% of a step.
Other devices, and a CPU without numba, sample with `grid_sample` and keep everything.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

try:
    from nowcastlab.models import warp_kernel
except ImportError:  # numba does not exist for every Python: the plain way gives the same numbers, slower
    warp_kernel = None  # type: ignore[assignment]

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
    if warp_kernel is None or field.device.type != "cpu" or field.dtype not in (torch.float32, torch.float64):
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
    # Normalised by (n - 1), so corners must be aligned: the default of grid_sample would move a field at rest.
    grid = torch.stack([2 * x / max(width - 1, 1) - 1, 2 * y / max(height - 1, 1) - 1], dim=-1)
    # The links are stacked along y: one call reads all of them and the field is not copied.
    grid = grid.reshape(batch, links * height, width, 2)
    seen = F.grid_sample(field.to(grid.dtype), grid, mode="bilinear", padding_mode="zeros", align_corners=True)
    by_channel = weight.view(-1, links, channels).transpose(1, 2).reshape_as(weight)
    return F.conv2d(seen.view(batch, channels * links, height, width), by_channel.to(seen.dtype), bias)


class _WarpAndProject(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, field: Tensor, flow: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        flow = flow.contiguous()
        ctx.save_for_backward(field, flow, weight)
        # Transposed once: the product runs 20% faster with both factors laid out along their rows.
        matrix = weight.flatten(1).t().contiguous()
        out = field.new_empty(field.shape[0], matrix.shape[1], field.shape[2] * field.shape[3])
        for image, padded in enumerate(_padded(field)):
            for start, seen in _chunks(field, flow):
                stop = start + seen.shape[0]
                warp_kernel.gather(padded.numpy(), flow[image].numpy(), seen.numpy(), start)
                out[image, :, start:stop] = torch.addmm(bias, seen.flatten(1), matrix).t()
        return out.view(field.shape[0], -1, *field.shape[2:])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        field, flow, weight = ctx.saved_tensors
        grad = grads[0].flatten(2)
        matrix = weight.flatten(1)
        grad_matrix = torch.zeros_like(matrix)
        grad_flow = torch.empty_like(flow)
        grad_padded = field.new_zeros(field.shape[0], field.shape[2] + 2, field.shape[3] + 2, field.shape[1])
        for image, padded in enumerate(_padded(field)):
            for start, seen in _chunks(field, flow):
                stop = start + seen.shape[0]
                to_gates = grad[image, :, start:stop]
                warp_kernel.gather(padded.numpy(), flow[image].numpy(), seen.numpy(), start)
                grad_matrix.addmm_(to_gates, seen.flatten(1))
                torch.mm(to_gates.t(), matrix, out=seen.flatten(1))
                warp_kernel.scatter(
                    padded.numpy(),
                    flow[image].numpy(),
                    seen.numpy(),
                    grad_padded[image].numpy(),
                    grad_flow[image].numpy(),
                    start,
                )
        grad_field = grad_padded[:, 1:-1, 1:-1].permute(0, 3, 1, 2).contiguous()
        return grad_field, grad_flow, grad_matrix.view_as(weight), grad.sum(dim=(0, 2))


def _padded(field: Tensor) -> Tensor:
    """Channels last, with a border of zeros: what the kernel reads."""
    batch, channels, height, width = field.shape
    padded = field.new_zeros(batch, height + 2, width + 2, channels)
    padded[:, 1:-1, 1:-1] = field.permute(0, 2, 3, 1)
    return padded


def _chunks(field: Tensor, flow: Tensor) -> list[tuple[int, Tensor]]:
    """Where each chunk of pixels starts, and room for what they see. The chunks of an image share the room."""
    pixels, links, channels = field.shape[2] * field.shape[3], flow.shape[2], field.shape[1]
    count = max(1, round(pixels * links * channels * field.element_size() / CHUNK_BYTES))
    size = -(-pixels // count)
    room = field.new_empty(size, links, channels)
    return [(start, room[: min(size, pixels - start)]) for start in range(0, pixels, size)]
