"""ROVER, the Hong Kong Observatory's optical flow: one flow from the last two frames, then advection along it.

The flow (u, v), in pixels a frame, minimises  w'Jw + alpha (|grad u|^2 + |grad v|^2),  w = (u, v, 1), where J is the
smoothed structure tensor of the two frames. It is relaxed from a coarse grid to the fine one; images are not warped in
between, so large motion comes out too small: a true (6, -3) gives about (4.3, -2.3). That is ROVER as Shi et al. 2017
ran it (parameters from the authors' release), and a baseline is not to be improved under its name.

image, flow parts      (batch, y, x) float32
tensor (J11, J12, J22, J13, J23) (batch, 5, y, x);  flow (batch, 2, y, x), u along x first
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from nowcastlab.errors import ConfigError
from nowcastlab.models.forecaster import Forecaster
from nowcastlab.units import DBZ_MIN, DBZ_SPAN

LEVELS = 7  # 480, 240, 120, 60, 30, 15, 7
SMALLEST_SIDE = 7  # of a level: smaller grids get fewer levels
BLUR_SIGMA = 4.5  # of the frames
TENSOR_SIGMA = 1.5  # rho, of the structure tensor
ALPHA = 2000.0  # smoothness
COARSEST_SWEEPS = 2
SWEEPS = 8

# The non-linear variant stretches the reflectivities around 33 dBZ, where convective rain begins.
CENTRE_DBZ = 33.0
SHARPNESS_DBZ = 4.0
ANGLE_MIN = math.atan((DBZ_MIN - CENTRE_DBZ) / SHARPNESS_DBZ)
ANGLE_SPAN = math.atan((DBZ_MIN + DBZ_SPAN - CENTRE_DBZ) / SHARPNESS_DBZ) - ANGLE_MIN


class Rover(Forecaster):
    """Optical flow and advection; `nonlinear` sees and moves the arctan-stretched reflectivity instead of p."""

    def __init__(self, *, nonlinear: bool = False) -> None:
        super().__init__()
        self.nonlinear = nonlinear

    def check_grid(self, height: int, width: int) -> None:
        if min(height, width) < 2:
            raise ConfigError(f"ROVER needs a grid of at least 2 x 2 pixels, got {height} x {width}")

    @torch.no_grad()
    def forward(self, frames: Tensor, leads: int) -> Tensor:
        return self._forecast(frames, None, leads)

    @torch.inference_mode()
    def predict(self, frames: Tensor, valid: Tensor | None = None, *, leads: int) -> Tensor:
        """The forecast as the benchmark scores it: the non-linear variant clipped to [0, 1], the linear one as it is."""
        forecast = self._forecast(frames, valid, leads)
        return forecast.clamp_(0, 1) if self.nonlinear else forecast

    @torch.no_grad()
    def flow(self, frames: Tensor, valid: Tensor | None = None) -> Tensor:
        """Pixels a frame, (batch, 2, y, x): u along x, then v along y."""
        return _flow(*self._last_two(frames, valid))

    def _forecast(self, frames: Tensor, valid: Tensor | None, leads: int) -> Tensor:
        before, now = self._last_two(frames, valid)
        forecast = extrapolate(now, _flow(before, now), leads)
        return unstretch(forecast) if self.nonlinear else forecast

    def _last_two(self, frames: Tensor, valid: Tensor | None) -> tuple[Tensor, Tensor]:
        """The images the flow is made of, (batch, y, x): no echo where a pixel is not valid."""
        _, time, height, width = frames.shape
        self.check_grid(height, width)
        if time < 2:
            raise ConfigError(f"ROVER needs 2 input frames to see motion, got {time}")
        images = frames[:, -2:].float()
        if valid is not None:
            if valid.shape != frames.shape:
                raise ConfigError(f"`valid` {tuple(valid.shape)} must have the shape of `frames` {tuple(frames.shape)}")
            images = images * valid[:, -2:]
        if self.nonlinear:
            images = stretch(images)
        before, now = images.unbind(1)
        return before, now


def stretch(p: Tensor) -> Tensor:
    """The arctan of the reflectivity about 33 dBZ, scaled so that p = 0 and 1 stay 0 and 1."""
    return (torch.atan((DBZ_SPAN * p + (DBZ_MIN - CENTRE_DBZ)) / SHARPNESS_DBZ) - ANGLE_MIN) / ANGLE_SPAN


def unstretch(stretched: Tensor) -> Tensor:
    angle = stretched * ANGLE_SPAN + ANGLE_MIN
    return (torch.tan(angle) * SHARPNESS_DBZ + (CENTRE_DBZ - DBZ_MIN)) / DBZ_SPAN


def _flow(before: Tensor, now: Tensor) -> Tensor:
    with torch.autocast(before.device.type, enabled=False):  # a flow in bfloat16 would be noise
        return flow_from_tensor(structure_tensor(before * 255, now * 255))


def structure_tensor(before: Tensor, now: Tensor) -> Tensor:
    """J of two images on the byte scale."""
    before, now = gaussian_blur(torch.stack((before, now), 1), BLUR_SIGMA).unbind(1)
    five_point = torch.tensor([1.0, -8.0, 0.0, 8.0, -1.0], device=before.device, dtype=before.dtype) / 12
    dx = _along_x(before[:, None], five_point)[:, 0]
    dy = _along_y(before[:, None], five_point)[:, 0]
    dt = now - before
    return gaussian_blur(torch.stack((dx * dx, dx * dy, dy * dy, dx * dt, dy * dt), 1), TENSOR_SIGMA)


def gaussian_blur(images: Tensor, sigma: float) -> Tensor:
    """Each (y, x) plane smoothed; cut off at 4 sigma, edge pixels repeated outwards."""
    radius = round(4 * sigma)
    offset = torch.arange(-radius, radius + 1, device=images.device, dtype=images.dtype)
    weights = torch.exp(-(offset**2) / (2 * sigma**2))
    weights = weights / weights.sum()
    return _along_y(_along_x(images, weights), weights)


def _along_x(images: Tensor, weights: Tensor) -> Tensor:
    """Each plane correlated with `weights` along its rows."""
    batch, channels, height, width = images.shape
    reach = len(weights) // 2
    planes = F.pad(images.reshape(batch * channels, 1, height, width), (reach, reach, 0, 0), mode="replicate")
    return F.conv2d(planes, weights[None, None, None, :]).view(images.shape)


def _along_y(images: Tensor, weights: Tensor) -> Tensor:
    batch, channels, height, width = images.shape
    reach = len(weights) // 2
    planes = F.pad(images.reshape(batch * channels, 1, height, width), (0, 0, reach, reach), mode="replicate")
    return F.conv2d(planes, weights[None, None, :, None]).view(images.shape)


def flow_from_tensor(tensor: Tensor) -> Tensor:
    """Coarse to fine. Flows are in pixels of the finest grid at every level, so they are never rescaled."""
    pyramid = [tensor]
    while len(pyramid) < LEVELS and min(pyramid[-1].shape[-2:]) // 2 >= SMALLEST_SIDE:
        height, width = pyramid[-1].shape[-2:]
        pyramid.append(_resize(pyramid[-1], (height // 2, width // 2)))
    flow = tensor.new_zeros(tensor.shape[0], 2, *pyramid[-1].shape[-2:])
    relax(flow, pyramid[-1], 4.0 ** (len(pyramid) - 1) / ALPHA, COARSEST_SWEEPS)
    for level in range(len(pyramid) - 2, -1, -1):
        flow = _resize(flow, pyramid[level].shape[-2:])
        relax(flow, pyramid[level], 4.0**level / ALPHA, SWEEPS)
    return flow


def _resize(fields: Tensor, size: tuple[int, ...]) -> Tensor:
    return F.interpolate(fields, size=size, mode="bilinear", align_corners=False)


def relax(flow: Tensor, tensor: Tensor, stiffness: float, sweeps: int) -> None:
    """Gauss-Seidel sweeps in place, `stiffness` = spacing^2 / alpha.

    u <- (sum of the neighbours' u - stiffness (J12 v + J13)) / (number of neighbours + stiffness J11), then v likewise.
    Red and black pixels in turn, as on a chessboard: each colour depends on the other alone and is done at once.
    """
    height, width = flow.shape[-2:]
    u, v = flow.unbind(1)
    j11, j12, j22, j13, j23 = (tensor * stiffness).unbind(1)
    y, x = torch.arange(height, device=flow.device)[:, None], torch.arange(width, device=flow.device)
    neighbours = ((y > 0).float() + (y < height - 1)) + ((x > 0).float() + (x < width - 1))
    u_scale, v_scale = 1 / (neighbours + j11), 1 / (neighbours + j22)
    red = (y + x) % 2 == 0
    for _ in range(sweeps):
        for colour in (red, ~red):
            u.copy_(torch.where(colour, (_neighbour_sum(u) - j12 * v - j13) * u_scale, u))
            v.copy_(torch.where(colour, (_neighbour_sum(v) - j12 * u - j23) * v_scale, v))


def _neighbour_sum(field: Tensor) -> Tensor:
    padded = F.pad(field, (1, 1, 1, 1))
    return padded[:, :-2, 1:-1] + padded[:, 2:, 1:-1] + padded[:, 1:-1, :-2] + padded[:, 1:-1, 2:]


def extrapolate(image: Tensor, flow: Tensor, leads: int) -> Tensor:
    """`leads` times  im <- bilinear(im, x - flow(x)),  each on the one before; zero outside."""
    batch, height, width = image.shape
    y = torch.arange(height, device=image.device)[:, None] - flow[:, 1]
    x = torch.arange(width, device=image.device) - flow[:, 0]
    top, weight_top, weight_bottom = _cell(y, height)
    left, weight_left, weight_right = _cell(x, width)
    corner = (top * width + left).flatten(1)  # the flow is fixed, so these serve every lead
    weights = [(a * b).flatten(1) for a in (weight_top, weight_bottom) for b in (weight_left, weight_right)]
    corners = [corner, corner + 1, corner + width, corner + width + 1]
    forecast = image.new_empty(batch, leads, height * width)
    now = image.flatten(1)
    for lead in range(leads):
        now = torch.stack([w * now.gather(1, c) for w, c in zip(weights, corners, strict=True)]).sum(0)
        forecast[:, lead] = now
    return forecast.view(batch, leads, height, width)


def _cell(position: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Where a position lies between pixels: the lower of two neighbours and the weights of both.

    Pixels outside the image weigh nothing. The pair always lies inside it, so that reading needs no checks; a flow that
    is not a number reads zero too.
    """
    position = position.nan_to_num(nan=-2.0).clamp(-2, size + 1)
    floor = position.floor()
    upper = position - floor
    lower = 1 - upper
    first = floor.clamp(0, size - 2)
    shift = floor - first  # 0 inside; -1 or less left of the image, 1 or more right of it
    zero = torch.zeros_like(upper)
    weight_first = torch.where(shift == 0, lower, torch.where(shift == -1, upper, zero))
    weight_second = torch.where(shift == 0, upper, torch.where(shift == 1, lower, zero))
    return first.long(), weight_first, weight_second
