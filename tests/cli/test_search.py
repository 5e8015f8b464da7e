"""The command that a search prints for its best trial. Searches themselves: tests/sweep/test_search.py."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nowcastlab.cli import main_group
from nowcastlab.cli.search import train_command
from nowcastlab.config import TrainConfig, mnist_config, radar_config


def planned(command: str, folder: Path) -> TrainConfig:
    """What the command would train, by its own plan."""
    program, *words = shlex.split(command)
    assert program == "nowcastlab"
    result = CliRunner().invoke(main_group, [*words, "--out", str(folder), "--plan", "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return TrainConfig.from_plain(json.loads(result.stdout)["config"])


@pytest.mark.parametrize("preset", ["paper", "release"])
@pytest.mark.parametrize("loss", ["balanced", "plain", "b-mae"])
def test_the_command_for_radar_trains_the_very_config(tiny_store: Path, tmp_path: Path, preset: str, loss: str) -> None:
    changed: dict[str, Any] = {"learning_rate": 0.00123, "overrides.links": 3, "max_steps": 9}
    config = radar_config("trajgru", store=str(tiny_store), preset=preset, loss=loss, **changed)
    assert planned(train_command(config), tmp_path) == replace(config, seed=config.seed + 1)


@pytest.mark.parametrize("model", ["traj-l5", "conv2d"])
def test_the_command_for_digits_keeps_the_recipe_of_the_release(tmp_path: Path, model: str) -> None:
    config = mnist_config(model, preset="release", digits="sklearn-digits", learning_rate=0.00123)
    assert planned(train_command(config), tmp_path) == replace(config, seed=config.seed + 1)


def test_the_command_leaves_out_what_is_the_default(tiny_store: Path) -> None:
    command = train_command(radar_config("trajgru", store=str(tiny_store)))
    assert command == f"nowcastlab train --model trajgru --store {tiny_store} --scale demo --seed 1"
