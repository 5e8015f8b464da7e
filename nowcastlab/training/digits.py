"""Training on MovingMNIST++: new sequences at every step, validation on a fixed set that no training seed reaches."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nowcastlab.config import DigitsData, TrainConfig
from nowcastlab.errors import StoreError
from nowcastlab.losses import mean_squared_error
from nowcastlab.metric_names import VALID, VALID_SCORE, metric_name
from nowcastlab.models import Forecaster
from nowcastlab.moving_digits import MovingDigits, load_digits
from nowcastlab.training.task import Batch, autocast

VALIDATION_SEED = 0  # one validation set for all runs, whatever their seed


class DigitsTask:
    def __init__(self, config: TrainConfig, data: DigitsData, device: torch.device) -> None:
        self.config, self.data, self.device = config, data, device
        digits = load_digits(data.digits)
        if digits.digest != data.digest:
            raise StoreError(
                f"The digits '{data.digits}' here are not those this run was set up with: their digest is "
                f"{digits.digest}, the run's {data.digest}. Use the same digits on every machine."
            )
        self.source = MovingDigits(digits, preset=data.preset, size=data.size, count=data.count, frames=data.frames)

    @property
    def digest(self) -> str:
        return self.source.digest

    def batch(self, step: int) -> Batch:
        # steps count from 1, sequences from 0
        return _whole(self.source.training_batch(self.config.seed, step - 1, self.config.batch_size))

    def loss(self, model: Forecaster, batch: Batch) -> tuple[Tensor, Tensor]:
        inputs, truth = self._on_device(batch)
        with autocast(self.config, self.device):
            forecast = model(inputs, self.data.leads)
        return mean_squared_error(forecast, truth) * self.config.loss_scale, forecast

    @torch.inference_mode()
    def validate(self, model: Forecaster) -> dict[str, float]:
        """The mean squared error as the paper has it, predictions unclipped: the light of a digit may exceed 1."""
        was_training = model.training
        model.eval()
        total, count, size = 0.0, self.data.valid_sequences, self.config.valid_batch_size
        for first in range(0, count, size):
            indices = range(first, min(first + size, count))
            inputs, truth = self._on_device(_whole(self.source.batch(VALIDATION_SEED, indices, split="valid")))
            total += mean_squared_error(model(inputs, self.data.leads), truth).double().item() * len(indices)
        model.train(was_training)
        return {VALID_SCORE: total / count, metric_name(VALID, "mse"): total / count}

    def _on_device(self, batch: Batch) -> tuple[Tensor, Tensor]:
        frames = torch.from_numpy(batch.frames).to(self.device)
        return frames[:, : self.data.in_frames], frames[:, self.data.in_frames :]


def _whole(frames: np.ndarray) -> Batch:
    return Batch(frames, np.ones(frames.shape[:2], bool))
