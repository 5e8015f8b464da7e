"""Training on a store: random windows of the train split, validation by the benchmark's walk over the valid split."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nowcastlab.config import RadarData, TrainConfig
from nowcastlab.errors import StoreError
from nowcastlab.losses import frame_losses, radar_loss
from nowcastlab.models import Forecaster
from nowcastlab.store import Store, open_store
from nowcastlab.training.task import Batch, autocast
from nowcastlab.windows import training_starts, valid_starts, walk

SCORES = {"bmse": "b-mse", "bmae": "b-mae", "mse": "mse", "mae": "mae"}


class RadarTask:
    def __init__(self, config: TrainConfig, data: RadarData, device: torch.device) -> None:
        self.config, self.data, self.device = config, data, device
        self.store = open_store(data.store)
        if self.store.digest != data.digest:
            raise StoreError(
                f"{data.store} is not the data this run was set up with: its digest is {self.store.digest}, the run's "
                f"{data.digest}. Put that store back, or start a new run on this one."
            )
        self._starts = _training_windows(self.store, data)
        self._validation = _validation_windows(self.store, data)
        self._excluded = torch.from_numpy(self.store.excluded).to(device)
        self._loss = radar_loss(config.loss)

    @property
    def digest(self) -> str:
        return self.store.digest

    def batch(self, step: int) -> Batch:
        config = self.config
        return self._read(training_starts(self._starts, seed=config.seed, step=step, batch_size=config.batch_size))

    def loss(self, model: Forecaster, batch: Batch) -> tuple[Tensor, Tensor]:
        inputs, truth, present = self._on_device(batch)
        with autocast(self.config, self.device):
            forecast = model(inputs, self.data.leads)
        return self._loss(forecast, truth, self._excluded, present) * self.config.loss_scale, forecast

    def validate(self, model: Forecaster) -> dict[str, float]:
        """Errors in p units, summed over a frame's valid pixels, averaged over windows and leads: the benchmark's.

        One window at a time would give the same numbers but for the last bits; the sums are in float64.
        """
        sums = dict.fromkeys(SCORES, 0.0)
        losses = {name: frame_losses(loss) for name, loss in SCORES.items()}
        for batch in self._validation_batches():
            inputs, truth, present = self._on_device(batch)
            forecast = model.predict(inputs, leads=self.data.leads)
            for name, per_frame in losses.items():
                sums[name] += per_frame(forecast, truth, self._excluded, present).double().sum().item()
        frames = len(self._validation) * self.data.leads
        scores = {f"valid/{name}": total / frames for name, total in sums.items()}
        return {"valid/score": scores["valid/bmse"] + scores["valid/bmae"], **scores}

    def _validation_batches(self) -> Iterator[Batch]:
        size = self.config.valid_batch_size
        for first in range(0, len(self._validation), size):
            yield self._read(self._validation[first : first + size])

    def _read(self, starts: NDArray[np.int64]) -> Batch:
        stamps = starts[:, None] + self.data.interval_minutes * np.arange(self.data.frames)
        frames = self.store.read(stamps.ravel())
        return Batch(
            frames.pixels.reshape(*stamps.shape, *self.store.grid),
            frames.present.reshape(stamps.shape),
        )

    def _on_device(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs as p (networks see them unmasked), the truth as bytes, and whether there is any."""
        pixels = torch.from_numpy(batch.frames).to(self.device)
        present = torch.from_numpy(batch.present).to(self.device)
        split = self.data.in_frames
        return pixels[:, :split].float().div_(255), pixels[:, split:], present[:, split:]


def _training_windows(store: Store, data: RadarData) -> NDArray[np.int64]:
    minutes = store.minutes("train")
    starts = minutes[:0]
    if len(minutes):
        starts = valid_starts(
            minutes, length=data.frames, interval_minutes=data.interval_minutes, max_missing=data.max_missing
        )
    if not len(starts):
        raise StoreError(_no_windows(store, data, "train", len(minutes)))
    return starts


def _validation_windows(store: Store, data: RadarData) -> NDArray[np.int64]:
    minutes = store.minutes("valid")
    windows = walk(
        minutes,
        length=data.frames,
        stride=data.walk_stride,
        interval_minutes=data.interval_minutes,
        max_missing=data.max_missing,
    )
    if not windows:
        raise StoreError(_no_windows(store, data, "valid", len(minutes)))
    starts = np.array([window.start for window in windows], np.int64)
    if data.valid_windows is not None and data.valid_windows < len(starts):
        starts = starts[np.linspace(0, len(starts) - 1, data.valid_windows).round().astype(int)]
    return starts


def _no_windows(store: Store, data: RadarData, split: str, frames: int) -> str:
    return (
        f"{data.store} has no window of {data.frames} frames in its {split} split ({frames} frames there, "
        f"{len(store.minutes())} in all). Give more days to that split, or ask for shorter windows with data.leads."
    )
