"""Floating point operations of a forecast, counted rather than estimated."""

from __future__ import annotations

import copy

import torch
from torch.utils.flop_counter import FlopCounterMode

from nowcastlab.models.forecaster import Forecaster


def count_flops(
    model: Forecaster, *, frames: int, leads: int, height: int, width: int, batch: int = 1, backward: bool = False
) -> int:
    """FLOPs of one forward pass, with `backward` of a forward and a backward pass.

    Counted are convolutions and matrix products, two operations a multiply-add; not counted are sampling, gates and
    activations, nor anything done a second time to save memory. The pass runs on the meta device: shapes flow, nothing
    is computed, so the HKO-7 models are counted in a moment.
    """
    ghost = copy.deepcopy(model).to("meta")
    sequence = torch.empty(batch, frames, height, width, device="meta")
    with FlopCounterMode(display=False) as counter, torch.set_grad_enabled(backward):
        forecast = ghost(sequence, leads)
        if backward:
            forecast.sum().backward()
    return counter.get_total_flops()
