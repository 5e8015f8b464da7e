"""The MovingMNIST++ test: mean squared error of every sequence and lead, predictions unclipped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from nowcastlab.config import DigitsData
from nowcastlab.models import Forecaster
from nowcastlab.moving_digits import MovingDigits, TestSet, generated_test, load_digits, official_test


def digits_test(data: DigitsData, *, official: Path | str | None = None, count: int = 10_000) -> TestSet:
    """The official test set where its parameter file is given, else one generated from a fixed seed."""
    source = MovingDigits(
        load_digits(data.digits), preset=data.preset, size=data.size, count=data.count, frames=data.frames
    )
    return official_test(source, official) if official else generated_test(source, count=count)


@torch.inference_mode()
def evaluate_digits(
    model: Forecaster,
    test: TestSet,
    *,
    frames_in: int,
    leads: int,
    batch_size: int = 16,
    device: torch.device | str = "cpu",
    watch: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> NDArray[np.float64]:
    """(sequence, lead): the mean over a frame's pixels. Its mean over both is the paper's Test MSE."""
    model = model.to(device).eval()
    errors = []
    for first in watch(range(0, len(test), batch_size)):
        frames = torch.from_numpy(test.batch(range(first, min(first + batch_size, len(test))))).to(device)
        forecast = model(frames[:, :frames_in], leads)
        squared = (forecast.double() - frames[:, frames_in : frames_in + leads].double()).square()
        errors.append(squared.mean((-2, -1)).cpu().numpy())
    return np.concatenate(errors)
