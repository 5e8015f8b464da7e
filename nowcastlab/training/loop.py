"""Training: load, step, validate, save, until it is done.

    result = train(config, report, folder="work/run")

A run is a function of its config. Killed at any moment and called again with the same folder, it goes on from its
newest checkpoint and ends with the weights it would have had, to the bit on the same machine and thread count: what a
step sees depends on (seed, step), the learning rate on the step, and everything else is in the checkpoint. (All but a
TrajGRU on a GPU: torch adds up the gradient of its warp in no fixed order there, so no two runs share their last bits.)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nowcastlab.config import TrainConfig
from nowcastlab.metric_names import VALID_SCORE
from nowcastlab.training.ahead import read_ahead
from nowcastlab.training.history import History
from nowcastlab.training.machine import computing, pick_device
from nowcastlab.training.run_folder import claim, settle_config
from nowcastlab.training.task import open_task
from nowcastlab.training.trainer import Trainer

Report = Callable[[dict[str, Any]], object]


@dataclass(frozen=True, kw_only=True)
class TrainResult:
    folder: Path
    step: int
    finished: bool  # False: asked to stop
    stopped_early: bool
    best_step: int
    best_score: float
    resumed_from: int | None  # the step; None for a run that began here


def train(
    config: TrainConfig, report: Report, *, folder: Path | str, stop: Callable[[], bool] = lambda: False
) -> TrainResult:
    """Train, or go on training, in a folder of the run's own.

    report   called with {"step": 100, "train/loss": ..., ...}, at most once a step, rising; steps since the last
             checkpoint are reported again after a crash, with the same values but for speed. The folder's history.jsonl
             has each once.
    stop     asked after every step; when it says so, the run is saved and left to be resumed.
    """
    folder = Path(folder)
    with claim(folder), computing(config) as device:
        settle_config(folder, config)
        task = open_task(config, device)
        trainer = Trainer(config, task, device, folder)
        resumed_from = trainer.load()
        with History(folder) as history:
            clock = Clock(config, trainer.progress.step)
            for step, batch in read_ahead(task.batch, trainer.progress.step + 1, trainer.last_step):
                trainer.step(step, batch)
                metrics: dict[str, Any] = {}
                if step % config.report_every == 0 or step == config.max_steps:
                    metrics |= trainer.averages() | clock.speed(step)
                if step % config.validate_every == 0 or step == config.max_steps:
                    metrics |= trainer.validate()
                    clock.restart(step)
                if metrics:
                    # before the checkpoint: told twice is mended by the step number, never told is not
                    history.append({"step": step, **metrics})
                    report({"step": step, **metrics})
                stopping = trainer.progress.stopped_early or stop()
                if VALID_SCORE in metrics or step % config.checkpoint_every == 0 or stopping:
                    history.sync()
                    trainer.save()
                if stopping:
                    break
        progress = trainer.progress
        return TrainResult(
            folder=folder,
            step=progress.step,
            finished=progress.stopped_early or progress.step == config.max_steps,
            stopped_early=progress.stopped_early,
            best_step=progress.best_step,
            best_score=progress.best_score,
            resumed_from=resumed_from,
        )


class Clock:
    """Frames a second, validation not counted."""

    def __init__(self, config: TrainConfig, step: int) -> None:
        self._frames_per_step = config.batch_size * config.data.frames
        self.restart(step)

    def restart(self, step: int) -> None:
        self._step, self._seconds = step, time.perf_counter()

    def speed(self, step: int) -> dict[str, float]:
        """Since the last time it was asked, or a validation ended."""
        frames, seconds = (step - self._step) * self._frames_per_step, time.perf_counter() - self._seconds
        self.restart(step)
        return {"speed/frames_per_s": frames / seconds}


def check(config: TrainConfig) -> None:
    """Whether this machine can run a config: its data are here and what they were, with windows, and its device is."""
    open_task(config, pick_device(config.device))
