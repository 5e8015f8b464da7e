"""A network in training: load, step, validate, save."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from nowcastlab.config import TrainConfig
from nowcastlab.errors import StoreError, TrainingError
from nowcastlab.metric_names import TRAIN_LOSS, VALID_BEST_STEP, VALID_SCORE
from nowcastlab.models import Forecaster, build
from nowcastlab.training.checkpoints import Checkpoints, CheckpointWarning
from nowcastlab.training.machine import machine_facts
from nowcastlab.training.schedule import learning_rate
from nowcastlab.training.task import Batch, Task

# p is at most 1 for radar and 1.67 for digits; a network that forecasts this has lost its way for good.
HOPELESS_P = 1e4


@dataclass(kw_only=True)
class Progress:
    """How far a run is, all that is not a tensor."""

    step: int = 0  # updates made
    best_step: int = 0  # 0: not validated yet
    best_score: float = math.inf
    validations_since_best: int = 0
    stopped_early: bool = False
    # since the last report
    loss_sum: float = 0.0
    norm_sum: float = 0.0
    steps_summed: int = 0


class Trainer:
    """A network, its optimiser and its progress; the four verbs."""

    def __init__(self, config: TrainConfig, task: Task, device: torch.device, folder: Path) -> None:
        self.config, self.task, self.device, self.folder = config, task, device, folder
        self.checkpoints = Checkpoints(folder)
        self.progress = Progress()
        self.model = build_model(config).to(device).train()
        self.optimiser = torch.optim.Adam(
            self.model.parameters(),
            lr=config.learning_rate,
            betas=(config.beta1, config.beta2),
            eps=config.epsilon,
            fused=True,  # a third of the time, and with many small layers that is felt
        )

    @property
    def last_step(self) -> int:
        return self.progress.step if self.progress.stopped_early else self.config.max_steps

    def load(self) -> int | None:
        """Go on from the newest sound checkpoint; its step, or None where there is none."""
        checkpoint = self.checkpoints.newest()
        if checkpoint is None:
            return None
        self._check_same(checkpoint.facts)
        self.checkpoints.drop_after(checkpoint.step)
        self.model.load_state_dict(checkpoint.state["model"])
        self.optimiser.load_state_dict(checkpoint.state["optimiser"])
        self.progress = Progress(**checkpoint.state["progress"])
        return self.progress.step

    def step(self, step: int, batch: Batch) -> None:
        """One update, or TrainingError before the weights are harmed."""
        rate = learning_rate(self.config, step)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        loss, forecast = self.task.loss(self.model, batch)
        self.optimiser.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm or math.inf)
        # one transfer for the three, so one wait for a GPU
        loss_now, norm_now, peak = torch.stack([loss.detach(), norm, forecast.detach().float().abs().max()]).tolist()
        self._refuse_divergence(step, loss_now, norm_now, peak)
        self.optimiser.step()
        self.progress.step = step
        self.progress.loss_sum += loss_now
        self.progress.norm_sum += norm_now
        self.progress.steps_summed += 1

    def averages(self) -> dict[str, float]:
        """Loss and gradient norm (before clipping) since the last report, which this is."""
        progress = self.progress
        metrics = {
            TRAIN_LOSS: progress.loss_sum / progress.steps_summed,
            "train/grad_norm": progress.norm_sum / progress.steps_summed,
            "train/learning_rate": self.optimiser.param_groups[0]["lr"],
        }
        progress.loss_sum = progress.norm_sum = 0.0
        progress.steps_summed = 0
        return metrics

    def validate(self) -> dict[str, float]:
        """Score the validation data; note a new best, or that patience has run out."""
        progress = self.progress
        scores = self.task.validate(self.model)
        score = scores[VALID_SCORE]
        if not math.isfinite(score):
            raise TrainingError(f"The validation score is {score} at step {progress.step}. {self._advice()}")
        if score < progress.best_score:
            progress.best_step, progress.best_score, progress.validations_since_best = progress.step, score, 0
        else:
            progress.validations_since_best += 1
            progress.stopped_early = 0 < self.config.patience <= progress.validations_since_best
        return {**scores, "valid/best_score": progress.best_score, VALID_BEST_STEP: progress.best_step}

    def save(self) -> None:
        """The best first, so that a checkpoint never speaks of a best that is not there."""
        facts = {
            "identity": self.config.identity,
            "config": self.config.to_plain(),
            "data_digest": self.task.digest,
            "machine": machine_facts(self.device),
            "best_step": self.progress.best_step,
        }
        progress, weights = self.progress, self.model.state_dict()
        if progress.best_step == progress.step:
            best = {"model": weights, "score": progress.best_score}
            self.checkpoints.save("best", progress.step, best, facts)
        state = {"model": weights, "optimiser": self.optimiser.state_dict(), "progress": asdict(progress)}
        self.checkpoints.save("step", progress.step, state, facts)
        self.checkpoints.tidy()

    def _check_same(self, facts: Mapping[str, Any]) -> None:
        """That a checkpoint is of this run and data; a warning where another machine may round otherwise."""
        if facts["identity"] != self.config.identity:
            raise TrainingError(
                f"The checkpoints in {self.folder} are another run's ({facts['identity'][:12]}, this is "
                f"{self.config.identity[:12]}). Choose another folder."
            )
        if facts["data_digest"] != self.task.digest:
            raise StoreError(
                f"The data changed under the run in {self.folder}: it began on digest {facts['data_digest']}, now it "
                f"is {self.task.digest}. Put the data back as it was, or train in another folder."
            )
        here = machine_facts(self.device)
        changed = [
            f"{name} was {was}, now {here.get(name)}" for name, was in facts["machine"].items() if here.get(name) != was
        ]
        if changed:
            warnings.warn(
                f"Going on in {self.folder} under other conditions: {'; '.join(changed)}. The result may differ in the "
                "last bits from that of a run left alone.",
                CheckpointWarning,
                stacklevel=2,
            )

    def _refuse_divergence(self, step: int, loss: float, norm: float, peak: float) -> None:
        if not (math.isfinite(loss) and math.isfinite(norm) and peak <= HOPELESS_P):
            raise TrainingError(
                f"Training diverged at step {step}: loss {loss:.4g}, gradient norm {norm:.4g}, forecasts up to "
                f"{peak:.4g} where pixels end near 1. {self._advice()}"
            )

    def _advice(self) -> str:
        config = self.config
        clip = f"a smaller clip_norm than {config.clip_norm:g}" if config.clip_norm else "clip_norm=10"
        narrow = ", precision=float32" if config.precision != "float32" else ""
        return (
            f"Try learning_rate={config.learning_rate / 3:.2g} (it was {config.learning_rate:g}), {clip}{narrow}, or "
            "another seed, each in a folder of its own."
        )


def build_model(config: TrainConfig) -> Forecaster:
    return build(
        config.model,
        config.data.dataset,
        seed=config.seed,
        checkpointing=config.recompute,
        **config.network_overrides,
    )
