"""What is learnt from, as the loop sees it: batches by step number, a loss, a validation.

Frames travel as the source has them (radar: uint8, a quarter of the bytes) and become p on the device.

B batch, T frames in and out, H, W grid.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nowcastlab.config import RadarData, TrainConfig
from nowcastlab.models import Forecaster


class Batch(NamedTuple):
    frames: NDArray[Any]  # (B, T, H, W), uint8 pixels or float32 p
    present: NDArray[np.bool_]  # (B, T), False where the archive has no frame


class Task(Protocol):
    @property
    def digest(self) -> str:
        """What the data is."""

    def batch(self, step: int) -> Batch:
        """Of update `step`: a function of (seed, step) alone."""

    def loss(self, model: Forecaster, batch: Batch) -> tuple[Tensor, Tensor]:
        """The scaled loss of a batch, and the forecast it was computed from."""

    def validate(self, model: Forecaster) -> dict[str, float]:
        """Scores on the validation data, `valid/score` among them: the one that is to fall."""


def open_task(config: TrainConfig, device: torch.device) -> Task:
    if isinstance(config.data, RadarData):
        from nowcastlab.training.radar import RadarTask

        return RadarTask(config, config.data, device)
    from nowcastlab.training.digits import DigitsTask

    return DigitsTask(config, config.data, device)


def autocast(config: TrainConfig, device: torch.device) -> torch.autocast:
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=config.precision == "bfloat16")
