"""Every algorithm of Shi et al. 2017 through the commands a user types: train, evaluate, predict."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result

from nowcastlab.cli import main_group
from nowcastlab.skill import load_scores
from nowcastlab.store import StoreWriter
from nowcastlab.units import pixel_from_mmh

NETWORKS = ("conv2d", "conv3d", "convgru", "trajgru", "convlstm")
BASELINES = ("last-frame", "rover", "rover-nonlinear")
SMALL = (
    *("--set", "max_steps=2", "--set", "data.valid_windows=2", "--set", "batch_size=2", "--set", "threads=1"),
    *("--set", "checkpoint_every=2"),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two showers that drift over 24x24 pixels: 40 frames to train on, 30 to validate, 60 to test: 8 windows."""
    dates = [dt.date(2015, 6, day) for day in (1, 3, 5)]
    splits = dict(zip(dates, ("train", "valid", "test"), strict=True))
    path = tmp_path_factory.mktemp("stores") / "showers.zarr"
    y, x = np.mgrid[:24, :24]
    with StoreWriter.create(
        path, dates=dates, grid=(24, 24), interval_minutes=6, km_per_pixel=4.0, title="showers", splits=splits
    ) as writer:
        for date, count in zip(dates, (40, 30, 60), strict=True):
            time = np.arange(count)[:, None, None]
            rate_mmh = 45 * np.exp(-(((x - 0.5 * time) % 24 - 12) ** 2 + (y - 10) ** 2) / 20)
            rate_mmh += 6 * np.exp(-((x - 15) ** 2 + ((y + 0.4 * time) % 24 - 8) ** 2) / 30)
            midnight = (date - dt.date(1970, 1, 1)).days * 1440
            writer.commit(writer.write_day(date, midnight + 6 * np.arange(count), pixel_from_mmh(rate_mmh)))
    return path


@pytest.fixture(scope="module")
def runs(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every network, trained for two steps; ConvGRU also with the plain loss, as ConvGRU-nobal."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("runs")
    for model, loss in [*((name, "balanced") for name in NETWORKS), ("convgru", "plain")]:
        name = model if loss == "balanced" else f"{model}-nobal"
        nowcastlab("train", "--model", model, "--store", store, "--loss", loss, "--out", folder / name, *SMALL)
    return folder


def nowcastlab(*arguments: object, fails: bool = False) -> Result:
    result = CliRunner().invoke(main_group, [str(a) for a in arguments])
    if not fails and result.exit_code != 0:
        raise AssertionError(f"{arguments}: {result.output}\n{result.exception!r}")
    return result


@pytest.mark.parametrize("setting", ["offline", "online"])
@pytest.mark.parametrize("name", [*NETWORKS, "convgru-nobal"])
def test_every_network_is_scored_in_both_settings(runs: Path, name: str, setting: str, tmp_path: Path) -> None:
    out = json.loads(
        nowcastlab("evaluate", runs / name, "--setting", setting, "--out", tmp_path, "--pictures", 0, "--json").stdout
    )
    assert out["sequences"] == 8
    assert len(out["csi"]) == 5
    assert out["bmse"] > 0
    scores = load_scores(tmp_path / f"scores-{setting}.npz")
    assert scores.mse.shape == (8, 20)


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_is_scored_offline(store: Path, name: str, tmp_path: Path) -> None:
    result = nowcastlab("evaluate", name, "--store", store, "--out", tmp_path, "--pictures", 0, "--json")
    assert json.loads(result.stdout)["sequences"] == 8


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_has_no_online_setting(store: Path, name: str) -> None:
    result = nowcastlab("evaluate", name, "--store", store, "--setting", "online", fails=True)
    assert result.exit_code == 2
    assert "no weights to fine-tune" in result.output


def test_online_and_offline_part_at_the_first_update(runs: Path, tmp_path: Path) -> None:
    """Five segments are 25 frames: from the fifth forecast on the weights are others, and the scores too."""
    for setting in ("offline", "online"):
        nowcastlab("evaluate", runs / "convgru", "--setting", setting, "--out", tmp_path, "--pictures", 0)
    offline, online = (load_scores(tmp_path / f"scores-{setting}.npz") for setting in ("offline", "online"))
    np.testing.assert_allclose(offline.mae[:4], online.mae[:4], rtol=1e-5)
    assert (offline.mae[4:] != online.mae[4:]).any()


def test_the_whole_way_with_pictures(runs: Path, store: Path, tmp_path: Path) -> None:
    out = tmp_path / "evaluation"
    said = nowcastlab("evaluate", runs / "trajgru", "--store", store, "--out", out, "--pictures", 2).output
    assert "CSI" in said
    assert "Next:\n  nowcastlab scores" in said
    assert sorted(path.suffix for path in out.iterdir()) == [".gif", ".gif", ".json", ".npz", ".png", ".png"]
    again = nowcastlab("evaluate", runs / "trajgru", "--store", store, "--out", out).output
    assert "Scored before" in again
    said = nowcastlab(
        "predict", runs / "trajgru", "--store", store, "--at", "2015-06-05 00:24", "--out", tmp_path / "f"
    ).output
    assert "20 frames, 6 to 120 minutes after 2015-06-05 00:24" in said


def test_a_slower_online_rate_leaves_a_network_closer_to_what_it_was(runs: Path, tmp_path: Path) -> None:
    nowcastlab("evaluate", runs / "convgru", "--pictures", "0", "--out", tmp_path / "offline")
    for rate in ("1e-3", "1e-5"):
        options = ("--setting", "online", "--online-rate", rate, "--pictures", "0", "--out", tmp_path / rate)
        nowcastlab("evaluate", runs / "convgru", *options)
    offline = load_scores(tmp_path / "offline" / "scores-offline.npz")
    fast, slow = (load_scores(tmp_path / rate / "scores-online.npz") for rate in ("1e-3", "1e-5"))
    assert 0 < np.abs(slow.mae - offline.mae).max() < 0.1 * np.abs(fast.mae - offline.mae).max()
