"""ROVER's three steps in plain torch: what a GPU runs, and what the compiled loops of `rover_cpu` must agree with.

images  (batch, y, x) float;  flow (batch, 2, y, x), u along x first;  tensor (batch, 5, y, x): J11 J12 J22 J13 J23
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def structure_tensor(before: Tensor, now: Tensor, *, blur_sigma: float, tensor_sigma: float) -> Tensor:
    """Products of the derivatives of the blurred images, smoothed again."""
    before, now = gaussian_blur(torch.stack((before, now), 1), blur_sigma).unbind(1)
    five_point = torch.tensor([1.0, -8.0, 0.0, 8.0, -1.0], device=before.device, dtype=before.dtype) / 12
    dx = _correlate(before[:, None], five_point, axis=-1)[:, 0]
    dy = _correlate(before[:, None], five_point, axis=-2)[:, 0]
    dt = now - before
    return gaussian_blur(torch.stack((dx * dx, dx * dy, dy * dy, dx * dt, dy * dt), 1), tensor_sigma)


def gaussian_weights(sigma: float) -> Tensor:
    """Cut off at 4 sigma, of sum 1."""
    offset = torch.arange(-round(4 * sigma), round(4 * sigma) + 1, dtype=torch.float64)
    weights = torch.exp(-(offset**2) / (2 * sigma**2))
    return weights / weights.sum()


def gaussian_blur(images: Tensor, sigma: float) -> Tensor:
    """Each (y, x) plane of (batch, channel, y, x) smoothed, its edge pixels repeated outwards."""
    weights = gaussian_weights(sigma).to(images)
    return _correlate(_correlate(images, weights, axis=-2), weights, axis=-1)


def _correlate(images: Tensor, weights: Tensor, axis: int) -> Tensor:
    batch, channels, height, width = images.shape
    reach = len(weights) // 2
    pad, kernel = ((reach, reach, 0, 0), weights[None, :]) if axis == -1 else ((0, 0, reach, reach), weights[:, None])
    planes = F.pad(images.reshape(batch * channels, 1, height, width), pad, mode="replicate")
    return F.conv2d(planes, kernel[None, None]).view(images.shape)


def relax(flow: Tensor, tensor: Tensor, *, stiffness: float, sweeps: int) -> None:
    """Gauss-Seidel sweeps in place, `stiffness` = spacing^2 / alpha.

    u <- (sum of the neighbours' u - stiffness (J12 v + J13)) / (number of neighbours + stiffness J11), then v likewise.
    Red and black pixels in turn, as on a chessboard: each colour depends on the other alone and is done at once.
    """
    height, width = flow.shape[-2:]
    u, v = flow.unbind(1)
    j11, j12, j22, j13, j23 = (tensor * stiffness).unbind(1)
    y, x = torch.arange(height, device=flow.device)[:, None], torch.arange(width, device=flow.device)
    neighbours = ((y > 0).to(flow) + (y < height - 1)) + ((x > 0).to(flow) + (x < width - 1))
    u_scale, v_scale = 1 / (neighbours + j11), 1 / (neighbours + j22)
    red = (y + x) % 2 == 0
    for _ in range(sweeps):
        for colour in (red, ~red):
            u.copy_(torch.where(colour, (_neighbour_sum(u) - j12 * v - j13) * u_scale, u))
            v.copy_(torch.where(colour, (_neighbour_sum(v) - j12 * u - j23) * v_scale, v))


def _neighbour_sum(field: Tensor) -> Tensor:
    padded = F.pad(field, (1, 1, 1, 1))
    return padded[:, :-2, 1:-1] + padded[:, 2:, 1:-1] + (padded[:, 1:-1, :-2] + padded[:, 1:-1, 2:])


def extrapolate(image: Tensor, flow: Tensor, leads: int) -> Tensor:
    """`leads` times  im <- bilinear(im, x - flow(x)),  each on the one before; zero outside.

    `grid_sample` would do, but its coordinates in [-1, 1] round: here a whole-pixel flow moves a pixel exactly.
    """
    batch, height, width = image.shape
    top, top_weight, bottom_weight = _cell(torch.arange(height, device=image.device)[:, None] - flow[:, 1], height)
    left, left_weight, right_weight = _cell(torch.arange(width, device=image.device) - flow[:, 0], width)
    # The flow is fixed, so where to read and how much of it serves every lead.
    corner = (top * width + left).flatten(1)
    corners = (corner, corner + 1, corner + width, corner + width + 1)
    weights = [(a * b).flatten(1) for a in (top_weight, bottom_weight) for b in (left_weight, right_weight)]
    forecast = image.new_empty(batch, leads, height * width)
    now = image.flatten(1)
    for lead in range(leads):
        now = sum((w * now.gather(1, c) for w, c in zip(weights, corners, strict=True)), torch.zeros_like(now))
        forecast[:, lead] = now
    return forecast.view(batch, leads, height, width)


def _cell(position: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Where a position lies between pixels: the lower of its two neighbours, and the weights of both.

    The pair is moved inside the image where one of them is outside, the outer one weighing nothing. A flow that is not
    a number reads zero.
    """
    position = position.nan_to_num(nan=-2.0).clamp(-2, size + 1)
    floor = position.floor()
    upper = position - floor
    lower, nothing = 1 - upper, torch.zeros_like(upper)
    first = floor.clamp(0, size - 2)
    shift = floor - first  # 0 inside, -1 across the lower edge, 1 across the upper, 2 in size beyond them
    first_weight = torch.where(shift == 0, lower, torch.where(shift == -1, upper, nothing))
    second_weight = torch.where(shift == 0, upper, torch.where(shift == 1, lower, nothing))
    return first.long(), first_weight, second_weight
