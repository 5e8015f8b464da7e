"""The learning rate of an update, as a function of its number: nothing to save, nothing to restore."""

from __future__ import annotations

from nowcastlab.config import TrainConfig


def learning_rate(config: TrainConfig, step: int) -> float:
    """Of update `step`, the first being 1: multiplied by lr_decay after every lr_decay_every updates."""
    decays = (step - 1) // config.lr_decay_every
    return max(config.lr_floor, config.learning_rate * config.lr_decay**decays)
