"""What a report must know of a sweep beside its scores."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from nowcastlab.config import mnist_config
from nowcastlab.store import open_store
from nowcastlab.sweep import DIGITS, Arm, Radar, Sweep
from nowcastlab.sweep.facts import protocol_of, write_store_facts


def radar_sweep(store: Path, limit: int | None = None) -> Sweep:
    return Sweep(
        name="showers",
        question="?",
        scale="demo",
        arms=[Arm(name="Last-Frame", baseline="last-frame")],
        radar=Radar(store=str(store), digest=open_store(store).digest, limit=limit),
    )


def test_trials_tested_on_fewer_windows_have_another_protocol(tiny_store: Path) -> None:
    whole, few = (radar_sweep(tiny_store, limit).trials[0] for limit in (None, 12))
    assert protocol_of(whole) == "radar, test split, all windows"
    assert protocol_of(few) == "radar, test split, the first 12 windows"


def test_digits_say_how_many_were_tested_and_whose() -> None:
    arm = Arm(name="Traj-L5", config=mnist_config("traj-l5", digits="sklearn-digits"), settings=(DIGITS,))
    (trial,) = Sweep(name="d", question="?", scale="demo", arms=[arm], seeds=(1,), test_sequences=200).trials
    size = trial.config.data.height if trial.config else 0
    assert protocol_of(trial) == f"digits, 200 generated test sequences of {size}x{size}, 10 frames to 10"
    assert protocol_of(replace(trial, test_sequences=100)) != protocol_of(trial)
    assert protocol_of(replace(trial, official_test="x.npz")).startswith("digits, 200 official test sequences of ")


def test_the_store_tells_what_it_is(tiny_store: Path, tmp_path: Path) -> None:
    (path,) = write_store_facts(radar_sweep(tiny_store), tmp_path)
    facts = json.loads(path.read_text())
    assert (facts["title"], facts["synthetic"]) == ("two showers", False)
    assert facts["splits"]["valid"] == {"days": 1, "frames": 44}  # one of 45 is missing
