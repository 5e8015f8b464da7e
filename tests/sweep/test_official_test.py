"""Moving digits tested on the authors' own sequences: only where the task is theirs, and that is found out early."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nowcastlab.config import mnist_config
from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.store import open_store
from nowcastlab.sweep import DIGITS, Arm, Radar, Sweep, Trial, run_trial


@pytest.fixture
def official(tmp_path: Path) -> str:
    """Five sequences in the form of the authors' file."""
    path, per_digit = tmp_path / "official.npz", (5, 3)
    np.savez(
        path,
        digit_indices=np.zeros(per_digit, int),
        affine_transforms_multipliers=np.full((*per_digit, 2), 0.5),
        init_velocity_angle=np.full(per_digit, 0.5),
        init_velocity_magnitude=np.ones(per_digit),
        base_rotation_angle=np.zeros(per_digit),
        scale_variation=np.ones(per_digit),
        appearance_mult=np.full(5, 0.8),
    )
    return str(path)


def sweep(**options: Any) -> Sweep:
    settings: dict[str, Any] = {"data.size": 16, "data.count": 1, "data.valid_sequences": 2}
    settings |= {"max_steps": 1, "validate_every": 1, "threads": 1}
    arm = Arm(name="Conv", config=mnist_config("conv-k3-d1", digits="sklearn-digits", **settings), settings=(DIGITS,))
    return Sweep(name="one", question="?", scale="demo", arms=[arm], seeds=(1,), **{"test_sequences": 5, **options})


def trial(official_test: str | None) -> Trial:
    return replace(sweep().trials[0], official_test=official_test)


def test_networks_made_for_another_task_are_refused_before_they_are_trained(official: str) -> None:
    text = r"The official test set is 20 frames 64x64, 3 digits of 'mnist', preset 'release'"
    with pytest.raises(ConfigError, match=text):
        sweep(official_test=official)


def test_a_file_that_is_not_there_is_named_before_anything_is_trained(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"No test parameters at .*nowhere\.npz"):
        sweep(official_test=str(tmp_path / "nowhere.npz"))


def test_radar_has_no_official_digits(tiny_store: Path, official: str) -> None:
    radar = Radar(store=str(tiny_store), digest=open_store(tiny_store).digest)
    with pytest.raises(ConfigError, match="official_test= is of moving digits, and its arms are on radar"):
        Sweep(
            name="one",
            question="?",
            scale="demo",
            arms=[Arm(name="Last-Frame", baseline="last-frame")],
            radar=radar,
            official_test=official,
        )


def test_a_trial_is_tested_on_the_file_it_was_given(official: str, tmp_path: Path) -> None:
    """These digits cannot be, and the trial says so: it did not fall back on sequences of its own."""
    result = run_trial(trial(official), tmp_path / "trial")
    assert result["status"] == "failed"
    assert "The official test set is 20 frames 64x64" in result["error"]


def test_which_test_set_is_part_of_a_trials_identity_and_where_it_lies_is_not() -> None:
    assert trial("here.npz").identity == trial("/there/here.npz").identity != trial(None).identity
    assert Trial.from_plain(trial("here.npz").to_plain()).official_test == "here.npz"


def test_a_trial_on_generated_sequences_is_what_it_was_before_there_was_a_choice() -> None:
    """Sweeps that were begun then go on: their record has no such entry, and the identity is of what they have."""
    plain = trial(None).to_plain()
    del plain["official_test"]
    assert Trial.from_plain(plain).identity == trial(None).identity
