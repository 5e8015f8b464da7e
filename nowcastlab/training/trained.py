"""What training left behind, for those who come after it.

run = load_trained("work/run")                # the best validation's weights; which="last" for the newest
run.model.predict(frames, leads=20)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from nowcastlab.config import TrainConfig
from nowcastlab.errors import ConfigError, TrainingError
from nowcastlab.models import Forecaster
from nowcastlab.training.checkpoints import Checkpoint, Checkpoints, DamagedCheckpoint
from nowcastlab.training.run_folder import read_config
from nowcastlab.training.trainer import Progress, build_model


@dataclass(frozen=True, kw_only=True, eq=False)
class Trained:
    model: Forecaster
    config: TrainConfig
    step: int
    data_digest: str
    path: Path  # of the checkpoint


def load_trained(folder: Path | str, which: str = "best", *, device: torch.device | str = "cpu") -> Trained:
    """A trained network, ready to forecast. Raises TrainingError if there is none, or none that is sound."""
    if which not in ("best", "last"):
        raise ConfigError(f"which (={which!r}) must be best or last.")
    config = read_config(folder)
    if config is None:
        raise TrainingError(
            f"No run in {folder}: there is no config.json. Train one with `nowcastlab train --out {folder}`."
        )
    checkpoint = _checkpoint(Path(folder), which)
    # The manifest's config is the one of these weights, and is sealed; config.json knows where the data lies today.
    model = build_model(TrainConfig.from_plain(checkpoint.facts["config"]))
    model.load_state_dict(checkpoint.state["model"])
    return Trained(
        model=model.to(device).eval(),
        config=config,
        step=checkpoint.step,
        data_digest=checkpoint.facts["data_digest"],
        path=checkpoint.path,
    )


def progress_of(folder: Path | str) -> Progress | None:
    """How far the run in a folder is, by its newest sound checkpoint; None before the first."""
    checkpoint = Checkpoints(folder).newest()
    return None if checkpoint is None else Progress(**checkpoint.state["progress"])


def _checkpoint(folder: Path, which: str) -> Checkpoint:
    checkpoints = Checkpoints(folder)
    # While a run is being saved there may be two best ones, and the newer counts.
    found = checkpoints.newest(with_best=False) if which == "last" else _best(checkpoints)
    if found is None:
        raise TrainingError(f"The run in {folder} has no {which} checkpoint yet. Train it until its first validation.")
    return found


def _best(checkpoints: Checkpoints) -> Checkpoint | None:
    steps = checkpoints.steps("best")
    try:
        return checkpoints.load("best", steps[0]) if steps else None
    except DamagedCheckpoint as problem:
        raise TrainingError(
            f"The best checkpoint in {checkpoints.folder} is damaged ({problem}). Use which='last', or train again in "
            "another folder."
        ) from None
