"""Training on a store: random windows of the train split, validation by the benchmark's walk over the valid split."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nowcastlab.config import RadarData, TrainConfig
from nowcastlab.errors import StoreError
from nowcastlab.losses import radar_loss
from nowcastlab.metric_names import VALID, VALID_SCORE, radar_metrics
from nowcastlab.models import Forecaster
from nowcastlab.skill import Scorer, concatenate, summarize
from nowcastlab.store import Store
from nowcastlab.store.local_copy import open_once
from nowcastlab.training.task import Batch, autocast
from nowcastlab.windows import training_starts, valid_starts, walk


class RadarTask:
    def __init__(self, config: TrainConfig, data: RadarData, device: torch.device) -> None:
        self.config, self.data, self.device = config, data, device
        self.store = open_once(data.store, data.digest)
        self._training = _training_windows(self.store, data)
        self._validation = _validation_windows(self.store, data)
        lead_minutes = data.interval_minutes * np.arange(1, data.leads + 1)
        self._scorer = Scorer(excluded=self.store.excluded, lead_minutes=lead_minutes)
        self._excluded = torch.from_numpy(self.store.excluded).to(device)
        self._loss = radar_loss(config.loss)

    @property
    def digest(self) -> str:
        return self.store.digest

    def batch(self, step: int) -> Batch:
        config = self.config
        return self._read(
            "train", training_starts(self._training, seed=config.seed, step=step, batch_size=config.batch_size)
        )

    def loss(self, model: Forecaster, batch: Batch) -> tuple[Tensor, Tensor]:
        """Inputs are p, unmasked; the truth goes to the loss as the bytes it is."""
        pixels = torch.from_numpy(batch.frames).to(self.device)
        present = torch.from_numpy(batch.present).to(self.device)
        cut = self.data.in_frames
        with autocast(self.config, self.device):
            forecast = model(pixels[:, :cut].float().div_(255), self.data.leads)
        loss = self._loss(forecast, pixels[:, cut:], self._excluded, present[:, cut:])
        return loss * self.config.loss_scale, forecast

    def validate(self, model: Forecaster) -> dict[str, float]:
        """The benchmark's scores; B-MSE + B-MAE is the one that decides. A threshold never reached has no CSI."""
        cut, parts = self.data.in_frames, []
        for first in range(0, len(self._validation), self.config.valid_batch_size):
            starts = self._validation[first : first + self.config.valid_batch_size]
            frames, present = self._read("valid", starts)
            inputs = torch.from_numpy(frames[:, :cut]).to(self.device).float().div_(255)
            forecast = model.predict(inputs, leads=self.data.leads)
            parts.append(
                self._scorer.score(
                    forecast, frames[:, cut:], present=present[:, cut:], start=starts, episode=np.zeros(len(starts))
                )
            )
        table = summarize(concatenate(parts))
        return {VALID_SCORE: table["bmse"] + table["bmae"], **radar_metrics(VALID, table, skill=("csi",))}

    def _read(self, split: str, starts: NDArray[np.int64]) -> Batch:
        stamps = starts[:, None] + self.data.interval_minutes * np.arange(self.data.frames)
        pixels, present = self.store.read(stamps.ravel(), split=split)
        return Batch(pixels.reshape(*stamps.shape, *self.store.grid), present.reshape(stamps.shape))


def _training_windows(store: Store, data: RadarData) -> NDArray[np.int64]:
    starts = valid_starts(
        store.minutes("train"),
        length=data.frames,
        interval_minutes=data.interval_minutes,
        max_missing=data.max_missing,
    )
    return _some(starts, "train", store, data)


def _validation_windows(store: Store, data: RadarData) -> NDArray[np.int64]:
    windows = walk(
        store.minutes("valid"),
        length=data.frames,
        stride=data.walk_stride,
        interval_minutes=data.interval_minutes,
        max_missing=data.max_missing,
    )
    starts = _some(np.array([window.start for window in windows], np.int64), "valid", store, data)
    if data.valid_windows is not None and data.valid_windows < len(starts):
        starts = starts[np.linspace(0, len(starts) - 1, data.valid_windows).round().astype(int)]
    return starts


def _some(starts: NDArray[np.int64], split: str, store: Store, data: RadarData) -> NDArray[np.int64]:
    if not len(starts):
        raise StoreError(
            f"{data.store} has no window of {data.frames} frames in its {split} split ({len(store.minutes(split))} "
            f"frames there, {len(store.minutes())} in all). Give that split more days, or ask for fewer data.leads."
        )
    return starts
