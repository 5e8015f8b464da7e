"""What networks are trained on: the balanced losses of Shi et al. 2017 for radar, plain MSE for moving digits.

    B-MSE = sum over valid pixels of w (forecast - p)^2        B-MAE = sum over valid pixels of w |forecast - p|

of one frame, w = 1, 2, 5, 10, 30 by the true rain rate, averaged over leads and batch. A missing frame adds nothing and
still counts as a frame. The scale that keeps these sums near one (1e-5 in the authors' release) is the caller's.

forecast  (batch, leads, y, x) float, p, unclipped
truth     (batch, leads, y, x) uint8 pixels
excluded  (y, x) bool, never scored
present   (batch, leads) bool, False where the archive has no frame
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from nowcastlab.errors import ConfigError
from nowcastlab.units import NOISE_BELOW_PIXEL, WEIGHT_FROM_MMH, WEIGHTS, level_from_mmh

RadarLoss = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

# name: (balanced, squared part, absolute part)
LOSSES: dict[str, tuple[bool, bool, bool]] = {
    "b-mse+b-mae": (True, True, True),  # the benchmark's
    "b-mse": (True, True, False),
    "b-mae": (True, False, True),
    "mse+mae": (False, True, True),  # ConvGRU-nobal's
    "mse": (False, True, False),
    "mae": (False, False, True),
}

_NOISE = 1  # a level of no weight, which excluded pixels are set to


def radar_loss(name: str) -> RadarLoss:
    """A scalar of (forecast, truth, excluded, present), by name.

    >>> loss = radar_loss("b-mse+b-mae")
    >>> loss(torch.full((1, 1, 1, 1), 0.5), torch.full((1, 1, 1, 1), 255, dtype=torch.uint8),
    ...      torch.zeros(1, 1, dtype=torch.bool), torch.ones(1, 1, dtype=torch.bool))
    tensor(22.5000)
    """
    per_frame = frame_losses(name)

    def loss(forecast: Tensor, truth: Tensor, excluded: Tensor, present: Tensor) -> Tensor:
        return per_frame(forecast, truth, excluded, present).mean()

    return loss


def frame_losses(name: str) -> RadarLoss:
    """The same before it is averaged: (batch, leads), each the sum over one frame's valid pixels."""
    if name not in LOSSES:
        raise ConfigError(f"No loss '{name}'. The losses are: {', '.join(LOSSES)}.")
    balanced, squared, absolute = LOSSES[name]
    tables = {torch.device("cpu"): _weight_of_level(balanced)}  # by device: sending it each time would wait for a GPU

    def losses(forecast: Tensor, truth: Tensor, excluded: Tensor, present: Tensor) -> Tensor:
        _check_shapes(forecast, truth, excluded, present)
        if truth.device not in tables:
            tables[truth.device] = tables[torch.device("cpu")].to(truth.device)
        weight = pixel_weights(truth, excluded, tables[truth.device])
        # Sums over 200,000 pixels want float32 whatever autocast gave.
        error = forecast.float() - truth.float().div_(255)
        weighted = weight * error
        sums = torch.zeros((), device=forecast.device)
        if squared:
            sums = sums + (weighted * error).sum((-2, -1))
        if absolute:
            sums = sums + weighted.abs().sum((-2, -1))
        return sums * present

    return losses


def pixel_weights(truth: Tensor, excluded: Tensor, table: Tensor) -> Tensor:
    """Weight and mask in one, float32: zero where a pixel is excluded or a small echo.

    One table of 256 numbers, read by index_select. Measured for 20 frames of 480x480 on one core, the lookup alone:
    6 ms; take 14, indexing with [] 16 to 32, embedding 18, comparisons summed in uint8 28 and in float32 42, bucketize
    78. (How the sums are written made no difference that could be told from noise.)
    """
    level = truth.masked_fill(excluded, _NOISE).flatten().int()
    return table.index_select(0, level).view(truth.shape)


def mean_squared_error(forecast: Tensor, truth: Tensor) -> Tensor:
    """MovingMNIST++'s loss and score: the mean over pixels, frames and batch. Truth is float and may exceed 1."""
    if forecast.shape != truth.shape:
        raise ConfigError(f"forecast {tuple(forecast.shape)} and truth {tuple(truth.shape)} must have one shape.")
    return (forecast.float() - truth.float()).square().mean()


def _weight_of_level(balanced: bool) -> Tensor:
    weight = torch.ones(256)
    if balanced:
        for from_mmh, value in zip(WEIGHT_FROM_MMH, WEIGHTS, strict=True):
            weight[level_from_mmh(from_mmh) :] = value
    weight[1:NOISE_BELOW_PIXEL] = 0
    return weight


def _check_shapes(forecast: Tensor, truth: Tensor, excluded: Tensor, present: Tensor) -> None:
    if truth.dtype != torch.uint8:
        raise ConfigError(f"truth is {truth.dtype}; radar losses take the uint8 pixels the store holds.")
    if truth.shape != forecast.shape or excluded.shape != truth.shape[-2:] or present.shape != truth.shape[:2]:
        raise ConfigError(
            f"forecast {tuple(forecast.shape)} and truth {tuple(truth.shape)} must be (batch, leads, y, x), "
            f"excluded {tuple(excluded.shape)} (y, x) and present {tuple(present.shape)} (batch, leads)."
        )
