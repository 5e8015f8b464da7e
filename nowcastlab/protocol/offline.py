"""The offline setting: every window on its own, so in batches, and in parts that may run anywhere.

The batches are the same however the run is cut into parts, so a run spread over a cluster gives the same scores, to the
bit, as one in this process with the same number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from nowcastlab.models import Forecaster
from nowcastlab.protocol.benchmark import Benchmark, Sequences
from nowcastlab.skill import Scorer, SequenceScores, concatenate
from nowcastlab.store import Store
from nowcastlab.units import valid_pixels


@dataclass(frozen=True, kw_only=True, eq=False)
class OfflineRun:
    """A forecaster, and the windows it is to be scored on."""

    model: Forecaster
    store: Store
    sequences: Sequences
    benchmark: Benchmark
    scorer: Scorer
    batch_size: int = 4
    device: torch.device | str = "cpu"

    @property
    def batches(self) -> int:
        return -(-len(self.sequences) // self.batch_size)

    def scores(self, *, watch: Callable[[Iterable[int]], Iterable[int]] = iter) -> SequenceScores:
        """Of the whole run, in this process. `watch` wraps the batches, for a progress bar."""
        return self.part(0, self.batches, watch=watch)

    def part(self, first: int, end: int, *, watch: Callable[[Iterable[int]], Iterable[int]] = iter) -> SequenceScores:
        """Of the batches first, ..., end - 1. Parts in order, concatenated, are the whole."""
        return concatenate([self._batch(i) for i in watch(range(first, end))])

    def _batch(self, i: int) -> SequenceScores:
        rows = slice(i * self.batch_size, (i + 1) * self.batch_size)
        starts = self.sequences.start[rows]
        pixels, present = self.sequences.read_windows(self.store, starts, self.benchmark.length)
        cut = self.benchmark.frames_in
        forecast = forecast_from(
            self.model, pixels[:, :cut], present[:, :cut], self.store.excluded, self.benchmark.leads, self.device
        )
        return self.scorer.score(
            forecast, pixels[:, cut:], present=present[:, cut:], start=starts, episode=self.sequences.episode[rows]
        )


def forecast_from(
    model: Forecaster, pixels: Any, present: Any, excluded: Any, leads: int, device: torch.device | str
) -> torch.Tensor:
    """The forecast (batch, leads, y, x) from observed bytes (batch, time, y, x), as the benchmark scores it."""
    valid = valid_pixels(pixels, excluded) & present[..., None, None]
    frames = torch.from_numpy(pixels).to(device).float().div_(255)
    return model.predict(frames, torch.from_numpy(valid).to(device), leads=leads)
