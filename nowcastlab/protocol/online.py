"""The online setting: a network that goes on learning from what it has just seen.

Segments of 5 frames arrive; five of them in a row are one sample, the first the input, the other four the target of one
AdaGrad step. A new episode empties the buffer; weights and optimiser live on.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nowcastlab.errors import ConfigError, StoreError, TrainingError
from nowcastlab.losses import radar_loss
from nowcastlab.models import Forecaster
from nowcastlab.protocol.benchmark import Benchmark
from nowcastlab.protocol.environment import Environment, Observation
from nowcastlab.protocol.offline import forecast_from
from nowcastlab.skill import SequenceScores
from nowcastlab.training.checkpoints import Checkpoints


@dataclass(frozen=True, kw_only=True)
class FineTuning:
    """How a network learns online."""

    learning_rate: float = 1e-4
    loss: str = "b-mse+b-mae"
    loss_scale: float = 1e-5  # as in training; AdaGrad hardly feels it
    lag: int = 0  # segments the update is behind

    def __post_init__(self) -> None:
        if not self.learning_rate > 0:
            raise ConfigError(f"`learning_rate` (={self.learning_rate}) must be positive.")
        if self.lag not in (0, 1):
            raise ConfigError(f"`lag` (={self.lag}) must be 0 (store, update, predict) or 1 (update, store, predict).")


# Shi et al. 2017, Algorithm 1, stores, updates, predicts. The authors' release updates before it looks at the next
# segment: the same updates, one segment later, and an episode's last one when the next episode has begun.
PRESETS = {"paper": FineTuning(), "release": FineTuning(lag=1)}


class FineTuner:
    """A network in Algorithm 1: store, update, predict."""

    def __init__(
        self,
        model: Forecaster,
        excluded: NDArray[np.bool_],
        benchmark: Benchmark,
        settings: FineTuning = PRESETS["paper"],
        *,
        device: torch.device | str = "cpu",
    ) -> None:
        if benchmark.stride != benchmark.frames_in or benchmark.leads % benchmark.frames_in:
            raise ConfigError(
                f"Online segments must follow each other and make up the target: stride (={benchmark.stride}) must be "
                f"frames_in (={benchmark.frames_in}), and leads (={benchmark.leads}) a multiple of it."
            )
        if not any(True for _ in model.parameters()):
            raise ConfigError(
                f"{type(model).__name__} has no weights to fine-tune: it is the same online as offline. "
                "Score it in the offline setting."
            )
        # Batch norm keeps the statistics of its training: one sample has none of its own.
        self.model = model.to(device).eval()
        self._excluded, self._benchmark, self._settings, self._device = excluded, benchmark, settings, device
        self._loss = radar_loss(settings.loss)
        self._excluded_there = torch.from_numpy(excluded).to(device)
        self.optimiser = torch.optim.Adagrad(self.model.parameters(), lr=settings.learning_rate)
        self._needed = 1 + benchmark.leads // benchmark.frames_in
        self._buffer: deque[tuple[NDArray[np.uint8], NDArray[np.bool_]]] = deque(maxlen=self._needed)
        self.updates = 0

    def learn(self, observation: Observation) -> None:
        """Store and update, in the order of the settings."""
        if self._settings.lag:
            self.update()
        self.store(observation)
        if not self._settings.lag:
            self.update()

    def store(self, observation: Observation) -> None:
        if observation.new_episode:
            self._buffer.clear()
        self._buffer.append((observation.pixels, observation.present))

    def update(self) -> None:
        """One step on the newest sample, if there is one. Then its oldest segment makes room."""
        if len(self._buffer) < self._needed:
            return
        pixels = torch.from_numpy(np.concatenate([segment for segment, _ in self._buffer])[None]).to(self._device)
        present = torch.from_numpy(np.concatenate([there for _, there in self._buffer])[None]).to(self._device)
        cut = self._benchmark.frames_in
        forecast = self.model(pixels[:, :cut].float().div_(255), self._benchmark.leads)
        loss = self._loss(forecast, pixels[:, cut:], self._excluded_there, present[:, cut:])
        self.optimiser.zero_grad()
        (loss * self._settings.loss_scale).backward()
        if not torch.isfinite(loss):
            raise TrainingError(
                f"Fine-tuning diverged at update {self.updates + 1}: the loss is {loss.item()}. "
                f"Try a learning rate below {self._settings.learning_rate:g}."
            )
        self.optimiser.step()
        self.updates += 1
        self._buffer.popleft()

    def predict(self) -> Tensor:
        """The forecast (leads, y, x) from the newest segment."""
        pixels, present = self._buffer[-1]
        return forecast_from(
            self.model, pixels[None], present[None], self._excluded, self._benchmark.leads, self._device
        )[0]

    def state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "pixels": [torch.from_numpy(pixels) for pixels, _ in self._buffer],
            "present": [torch.from_numpy(present) for _, present in self._buffer],
            "updates": self.updates,
        }

    def load(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        segments = zip(state["pixels"], state["present"], strict=True)
        self._buffer.clear()
        self._buffer.extend((pixels.numpy(), present.numpy()) for pixels, present in segments)
        self.updates = state["updates"]


def run_online(
    environment: Environment,
    learner: FineTuner,
    *,
    facts: dict[str, Any],
    folder: Path | None = None,
    save_every: int = 200,
    watch: Any = None,
    keep: Callable[[int, Tensor], object] = lambda row, forecast: None,
) -> SequenceScores:
    """Algorithm 1, online. With a folder it goes on where it was stopped, to the same scores, on a CPU to the bit.

    facts   what run this is (model, data, settings); a checkpoint with other facts is refused
    watch   a tqdm bar, moved on with every forecast
    keep    called with the window's number and its forecast (leads, y, x), for who wants to see some: weights change,
            so a forecast cannot be made again later
    """
    facts = json.loads(json.dumps(facts))  # as a checkpoint gives them back
    checkpoints = Checkpoints(folder) if folder else None
    if checkpoints and (found := checkpoints.newest_of("online")):
        if found.facts != facts:
            changed = sorted(k for k in facts.keys() | found.facts.keys() if facts.get(k) != found.facts.get(k))
            raise StoreError(
                f"{folder} holds another online run (its {', '.join(changed)} differ). Choose another folder."
            )
        learner.load(found.state["learner"])
        environment.go_on(SequenceScores(**{name: array.numpy() for name, array in found.state["scores"].items()}))
        if watch is not None:
            watch.update(environment.done)
    while not environment.end:
        observation = environment.next()
        learner.learn(observation)
        forecast = learner.predict()
        keep(environment.done, forecast)
        environment.upload(forecast)
        if watch is not None:
            watch.update()
        if checkpoints and environment.done % save_every == 0 and not environment.end:
            scores = {name: torch.from_numpy(array) for name, array in environment.scores().arrays().items()}
            state = {"learner": learner.state(), "scores": scores}
            checkpoints.save("online", environment.done, state, facts)
            checkpoints.keep_newest("online")
    return environment.scores()
