"""A sweep is checked before it costs anything, and knows itself again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nowcastlab.config import mnist_config, radar_config
from nowcastlab.errors import ConfigError
from nowcastlab.sweep import DIGITS, Arm, Radar, Sweep, Trial

RADAR = Radar(store="s.zarr", digest="d")


def arm(name: str = "Traj-L5", **changes: Any) -> Arm:
    config = mnist_config("traj-l5", digits="sklearn-digits", threads=1)
    return Arm(**{"name": name, "config": config, "settings": (DIGITS,), **changes})


def at_scale(name: str, scale: str) -> Arm:
    config = arm().config
    assert config is not None
    return arm(name, config=replace(config, scale=scale))


def sweep(**changes: Any) -> Sweep:
    values = {"name": "small", "question": "?", "scale": "demo", "arms": [arm("A"), arm("B")], **changes}
    return Sweep(**values)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"seeds": (1, 2, 1)}, "has seed 1 twice"),
        ({"arms": [arm("A"), arm("A")]}, "has arm A twice"),
        ({"arms": []}, "has 0 arms and 3 seeds"),
        ({"comparisons": [("A", "C")]}, r"compares with arm 'C', which it does not have. Its arms are: A, B"),
        ({"name": "no/good"}, "a name is letters, digits"),
        ({"arms": [Arm(name="R", baseline="rover")]}, "arm R is tested on radar; say on which store"),
        (
            {"arms": [arm("A"), Arm(name="R", baseline="rover")], "radar": RADAR},
            r"arms on moving digits \(A\) and on radar \(R\), which no table can hold",
        ),
        ({"scale": "paper"}, "arm A is set up at demo scale, and would be called paper. Make its config with scale="),
        ({"arms": [arm("A"), at_scale("B", "laptop")]}, "arm B is set up at laptop scale, and would be called demo"),
        ({"arms": [at_scale("A", "own")], "scale": "paper"}, "arm A is set up at own scale, and would be called paper"),
    ],
)
def test_an_impossible_sweep_is_refused(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        sweep(**changes)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"name": "two words"}, "a name is letters, digits"),
        ({"config": None}, "either a config or a baseline"),
        ({"baseline": "rover"}, "either a config or a baseline"),
        ({"config": None, "baseline": "rover", "settings": ("offline", "online")}, "rover does not learn"),
    ],
)
def test_an_impossible_arm_is_refused(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        arm(**changes)


def test_a_config_of_ones_own_may_stand_at_any_scale_but_the_papers() -> None:
    for scale in ("demo", "laptop"):
        assert sweep(arms=[at_scale("A", "own")], scale=scale).trials[0].scale == scale


def test_trials_come_seed_by_seed_and_a_baseline_comes_once(tiny_store: Path) -> None:
    network = Arm(name="A", config=radar_config("convgru", store=str(tiny_store)))
    arms = [network, Arm(name="Last", baseline="last-frame")]
    keys = [trial.key for trial in sweep(arms=arms, seeds=(4, 7), radar=RADAR).trials]
    assert keys == ["A-s4", "Last-s0", "A-s7"]


def test_its_table_follows_from_what_it_is_tested_on() -> None:
    assert sweep().table == "mnist"
    assert sweep(arms=[Arm(name="R", baseline="rover")], radar=RADAR).table == "hko7"


def test_a_trial_trains_with_its_own_seed() -> None:
    assert [trial.config.seed for trial in sweep(seeds=(4, 7)).trials if trial.config] == [4, 4, 7, 7]


def test_a_trial_survives_the_way_through_json() -> None:
    trial = sweep().trials[0]
    again = Trial.from_plain(trial.to_plain())
    assert again == trial
    assert again.identity == trial.identity


def test_identity_is_what_decides_the_result() -> None:
    first = sweep(radar=Radar(store="here.zarr", digest="d")).trials[0]
    moved = sweep(radar=Radar(store="there.zarr", digest="d")).trials[0]
    other = sweep(radar=Radar(store="here.zarr", digest="e")).trials[0]
    assert first.identity == moved.identity != other.identity
    assert first.config is not None
    assert replace(first, config=replace(first.config, device="cpu")).identity == first.identity
    assert replace(first, config=replace(first.config, learning_rate=0.5)).identity != first.identity
