"""ROVER, the Hong Kong Observatory's optical flow: one flow from the last two frames, then advection along it.

The flow (u, v), in pixels a frame, minimises  w'Jw + alpha (|grad u|^2 + |grad v|^2),  w = (u, v, 1), where J is the
smoothed structure tensor of the two frames. It is relaxed from a coarse grid to the fine one; images are not warped in
between, so large motion comes out too small: a true (6, -3) gives about (4.3, -2.3). That is ROVER as Shi et al. 2017
ran it (parameters from the authors' release), and a baseline is not to be improved under its name. The one change:
sweeps go over a chessboard's red pixels and then its black ones, where the release goes pixel by pixel.

images (batch, y, x);  flow (batch, 2, y, x), u along x first;  tensor (batch, 5, y, x): J11 J12 J22 J13 J23
"""

from __future__ import annotations

import math
from types import ModuleType

import torch
from torch import Tensor
from torch.nn import functional as F

from nowcastlab.errors import ConfigError
from nowcastlab.models import rover_torch
from nowcastlab.models.forecaster import Forecaster
from nowcastlab.units import DBZ_MIN, DBZ_SPAN

try:
    from nowcastlab.models import rover_cpu
except ImportError:  # numba does not exist for every Python: the plain way gives the same forecast, slower
    rover_cpu = None  # type: ignore[assignment]

LEVELS = 7  # 480, 240, 120, 60, 30, 15, 7
SMALLEST_SIDE = 7  # of a level: a small grid gets fewer levels
BLUR_SIGMA = 4.5  # of the frames
TENSOR_SIGMA = 1.5  # rho, of the structure tensor
ALPHA = 2000.0  # smoothness
COARSEST_SWEEPS = 2
SWEEPS = 8

# The non-linear variant stretches the reflectivities around 33 dBZ and squeezes the rest.
CENTRE_DBZ = 33.0
SHARPNESS_DBZ = 4.0
ANGLE_MIN = math.atan((DBZ_MIN - CENTRE_DBZ) / SHARPNESS_DBZ)
ANGLE_SPAN = math.atan((DBZ_MIN + DBZ_SPAN - CENTRE_DBZ) / SHARPNESS_DBZ) - ANGLE_MIN


class Rover(Forecaster):
    """Optical flow and advection. `nonlinear` sees and moves the arctan-stretched reflectivity instead of p.

    On the CPU its loops are compiled, unless `compiled` is off; elsewhere they are plain torch.
    """

    def __init__(self, *, nonlinear: bool = False, compiled: bool = True) -> None:
        super().__init__()
        self.nonlinear = nonlinear
        self.compiled = compiled

    def check_grid(self, height: int, width: int) -> None:
        if min(height, width) < 2:
            raise ConfigError(f"ROVER needs a grid of at least 2 x 2 pixels, got {height} x {width}.")

    @torch.no_grad()
    def forward(self, frames: Tensor, leads: int) -> Tensor:
        """The forecast with every pixel taken as valid, in float32; no gradient passes through it."""
        return self._forecast(frames, None, leads)

    @torch.inference_mode()
    def predict(self, frames: Tensor, valid: Tensor | None = None, *, leads: int) -> Tensor:
        """The forecast as the benchmark scores it: clipped to [0, 1] if non-linear, as it is if linear."""
        forecast = self._forecast(frames, valid, leads)
        return forecast.clamp_(0, 1) if self.nonlinear else forecast

    @torch.no_grad()
    def flow(self, frames: Tensor, valid: Tensor | None = None) -> Tensor:
        """Pixels a frame, (batch, 2, y, x): u along x, then v along y."""
        before, now = self._last_two(frames, valid)
        return _flow(before, now, self._steps(frames.device))

    def _forecast(self, frames: Tensor, valid: Tensor | None, leads: int) -> Tensor:
        before, now = self._last_two(frames, valid)
        steps = self._steps(frames.device)
        forecast = steps.extrapolate(now, _flow(before, now, steps), leads)
        return unstretch(forecast) if self.nonlinear else forecast

    def _steps(self, device: torch.device) -> ModuleType:
        return rover_cpu if rover_cpu and self.compiled and device.type == "cpu" else rover_torch

    def _last_two(self, frames: Tensor, valid: Tensor | None) -> tuple[Tensor, Tensor]:
        """The two images the flow is made of: no echo where a pixel is not valid."""
        _, time, height, width = frames.shape
        self.check_grid(height, width)
        if time < 2:
            raise ConfigError(f"ROVER needs 2 input frames to see motion, got {time}.")
        images = frames[:, -2:].float()
        if valid is not None:
            if valid.shape != frames.shape:
                raise ConfigError(
                    f"`valid` {tuple(valid.shape)} must have the shape of `frames` {tuple(frames.shape)}."
                )
            images = images * valid[:, -2:]
        before, now = (stretch(images) if self.nonlinear else images).unbind(1)
        return before, now


def stretch(p: Tensor) -> Tensor:
    """The arctan of the reflectivity's distance from 33 dBZ, scaled so that p = 0 and 1 stay 0 and 1."""
    return (torch.atan((DBZ_SPAN * p + (DBZ_MIN - CENTRE_DBZ)) / SHARPNESS_DBZ) - ANGLE_MIN) / ANGLE_SPAN


def unstretch(stretched: Tensor) -> Tensor:
    distance = (stretched * ANGLE_SPAN).add_(ANGLE_MIN).tan_()  # in place: 20 frames are 18 MB
    return distance.mul_(SHARPNESS_DBZ / DBZ_SPAN).add_((CENTRE_DBZ - DBZ_MIN) / DBZ_SPAN)


def _flow(before: Tensor, now: Tensor, steps: ModuleType) -> Tensor:
    """Coarse to fine. A flow is in pixels of the finest grid at every level, so its values are never rescaled."""
    # In bfloat16 the differences would be noise, and in the TF32 of a GPU's convolutions coarse.
    exact = torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False)
    with torch.autocast(before.device.type, enabled=False), exact:
        finest = steps.structure_tensor(before * 255, now * 255, blur_sigma=BLUR_SIGMA, tensor_sigma=TENSOR_SIGMA)
        pyramid = [finest]
        while len(pyramid) < LEVELS and min(pyramid[-1].shape[-2:]) // 2 >= SMALLEST_SIDE:
            pyramid.append(_resize(pyramid[-1], [side // 2 for side in pyramid[-1].shape[-2:]]))
        coarsest = len(pyramid) - 1
        flow = finest.new_zeros(len(finest), 2, *pyramid[coarsest].shape[-2:])
        steps.relax(flow, pyramid[coarsest], stiffness=4**coarsest / ALPHA, sweeps=COARSEST_SWEEPS)
        for level in range(coarsest - 1, -1, -1):
            flow = _resize(flow, list(pyramid[level].shape[-2:]))
            steps.relax(flow, pyramid[level], stiffness=4**level / ALPHA, sweeps=SWEEPS)
        return flow


def _resize(fields: Tensor, size: list[int]) -> Tensor:
    return F.interpolate(fields, size=size, mode="bilinear", align_corners=False)
