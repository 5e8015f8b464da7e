"""The same pass for predictions that live on a GPU: plain torch, the same integers, no frame copied to the host.

Float sums are float64 too but in the device's own order, so they agree with the CPU's to about 1e-12, not to the bit.
One sequence at a time, so that the shape of each reduction, and with it the result, does not depend on the batch.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nowcastlab.skill.rule import Rule
from nowcastlab.units import NOISE_BELOW_PIXEL


def score_on_device(
    predicted: Tensor, true: Tensor, included: Tensor, present: Tensor, rule: Rule
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Counts (batch, lead, 4, threshold) and errors (batch, lead, 5); all tensors on the predictions' device."""
    frames = zip(predicted, true, present, strict=True)
    parts = [_score(p, t, included & here[:, None, None], rule) for p, t, here in frames]
    counts, errors = zip(*parts, strict=True)
    return torch.stack(counts).cpu().numpy(), torch.stack(errors).cpu().numpy()


def _score(predicted: Tensor, true: Tensor, included: Tensor, rule: Rule) -> tuple[Tensor, Tensor]:
    pixels = (-2, -1)
    valid = included & ((true == 0) | (true >= NOISE_BELOW_PIXEL))
    inside = valid.sum(pixels)
    counts = []
    for cut, start in zip(rule.first_p.tolist(), rule.first_level.tolist(), strict=True):
        # a Python float compared with a float32 tensor is compared in float32, and the cut is one
        forecast, observed = (predicted >= cut) & valid, (true >= start) & valid
        tp = (forecast & observed).sum(pixels)
        fn, fp = observed.sum(pixels) - tp, forecast.sum(pixels) - tp
        counts.append(torch.stack([tp, fn, fp, inside - tp - fn - fp], -1))

    t = true.double()
    q = torch.where(valid, 255.0 * predicted.double(), t)
    weight = torch.ones_like(t)
    for start, step in zip(rule.weight_level.tolist(), rule.weight_step.tolist(), strict=True):
        weight += step * (true >= start)
    absolute = (q - t).abs()
    squared = absolute * absolute
    gdl = _gradient_difference(q, t, valid, -2) + _gradient_difference(q, t, valid, -1)
    sums = [squared.sum(pixels), absolute.sum(pixels), (weight * squared).sum(pixels), (weight * absolute).sum(pixels)]
    scale = torch.tensor([255.0**2, 255.0, 255.0**2, 255.0, 255.0], dtype=torch.float64, device=predicted.device)
    return torch.stack(counts, -1), torch.stack([*sums, gdl], -1) / scale


def _gradient_difference(q: Tensor, t: Tensor, valid: Tensor, axis: int) -> Tensor:
    n = q.shape[axis] - 1
    both = valid.narrow(axis, 0, n) & valid.narrow(axis, 1, n)
    return ((q.diff(dim=axis).abs() - t.diff(dim=axis).abs()).abs() * both).sum((-2, -1))
