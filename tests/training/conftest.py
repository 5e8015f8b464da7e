"""A run small enough to be killed many times."""

from __future__ import annotations

from pathlib import Path

import pytest

from nowcastlab.config import TrainConfig, radar_config


@pytest.fixture(scope="session")
def tiny_run(tiny_store: Path) -> TrainConfig:
    """Twelve updates of a CNN (its batch norm has state of its own) with three validations, on one thread."""
    return radar_config(
        "conv2d",
        store=str(tiny_store),
        device="cpu",
        threads=1,
        batch_size=2,
        max_steps=12,
        validate_every=4,
        report_every=2,
        checkpoint_every=3,
        patience=0,
        **{"data.in_frames": 2, "data.leads": 2, "data.valid_windows": 4, "overrides.base_filters": 1},
    )
