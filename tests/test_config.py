"""A config that exists has been checked; one that cannot work says which value and what to do."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nowcastlab.config import (
    DigitsData,
    RadarData,
    TrainConfig,
    departures,
    mnist_config,
    radar_config,
    with_changes,
)
from nowcastlab.errors import ConfigError, StoreError

DIGITS = DigitsData(digits="sklearn-digits", digest="d1", size=32)
RADAR = RadarData(store="work/a.zarr", digest="r1", height=60, width=60, interval_minutes=6)


def digits_run(**changes: Any) -> TrainConfig:
    given = {"data": DIGITS, "model": "traj-l5", "loss": "mse", "max_steps": 100, "validate_every": 50, **changes}
    return TrainConfig(**given)


def radar_run(**changes: Any) -> TrainConfig:
    given: dict[str, Any] = {
        "data": RADAR,
        "model": "convgru",
        "overrides": {"strides": (5, 3, 1), "filters": (2, 2, 2)},
        "loss": "b-mse+b-mae",
        "max_steps": 100,
        "validate_every": 50,
    }
    return TrainConfig(**{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # alone
        ({"learning_rate": -1e-4}, r"learning_rate \(=-0.0001\) must be a number above 0"),
        ({"learning_rate": float("nan")}, r"learning_rate \(=nan\)"),
        ({"learning_rate": "fast"}, r"learning_rate \(='fast'\) must be a number"),
        ({"beta1": 1.0}, r"beta1 \(=1\) would never forget"),
        ({"beta2": -0.1}, r"beta2 \(=-0.1\) must be a number from 0 to 1"),
        ({"epsilon": 0}, r"epsilon \(=0\) must be a number above 0"),
        ({"lr_decay": 1.5}, r"lr_decay \(=1.5\) must be a number above 0 to 1"),
        ({"clip_norm": 0}, r"clip_norm \(=0\)"),
        ({"loss_scale": 0}, r"loss_scale \(=0\)"),
        ({"seed": 2**63}, r"seed \(=9223372036854775808\) must be a whole number from 0 to 9223372036854775807"),
        ({"batch_size": 0}, r"batch_size \(=0\) must be a whole number from 1"),
        ({"batch_size": 2.5}, r"batch_size \(=2.5\) must be a whole number"),
        ({"batch_size": True}, r"batch_size \(=True\) must be a whole number"),
        ({"seed": -1}, r"seed \(=-1\) must be a whole number from 0"),
        ({"patience": -1}, r"patience \(=-1\)"),
        ({"threads": -2}, r"threads \(=-2\)"),
        ({"threads": 100_000}, r"threads \(=100000\) must be a whole number from 0 to 512"),
        ({"precision": "float16"}, r"precision \(='float16'\) is unknown. There are: float32, bfloat16"),
        ({"loss": "huber"}, r"loss \(='huber'\) is unknown. There are: b-mse\+b-mae"),
        ({"loss": ["mse"]}, r"loss \(=\['mse'\]\) is unknown"),
        ({"device": "tpu"}, r"device \(='tpu'\) must be auto, cpu, cuda"),
        ({"device": "1"}, r"device \(='1'\) must be auto, cpu, cuda"),
        ({"device": 1}, r"device \(=1\) must be auto, cpu, cuda"),
        ({"recompute": "yes"}, r"recompute \(='yes'\) must be true or false"),
        ({"overrides": [1]}, r"overrides \(=\[1\]\) must be a table"),
        ({"overrides": {"links": {1, 2}}}, r"overrides.links .* kept as JSON"),
        ({"data": {"store": "a"}}, r"must be one of: RadarData, DigitsData"),
        ({"model": ""}, r"model \(=''\) must be a word"),
        # against each other
        ({"validate_every": 101}, r"validate_every \(=101\) is more than max_steps \(=100\)"),
        ({"report_every": 500}, r"report_every \(=500\) is more than max_steps \(=100\)"),
        ({"lr_floor": 1e-3}, r"lr_floor \(=0.001\) is above learning_rate \(=0.0001\)"),
        ({"loss": "b-mse+b-mae"}, r"weighs rain rates, and digits have none. Use 'mse'"),
        # the network
        ({"model": "traj-gru"}, r"No model 'traj-gru' for mnist. The models are: conv-k3-d2"),
        ({"model": "trajgru"}, r"'trajgru' is a name of hko7"),
        ({"model": "last-frame"}, r"last-frame has nothing to train. The networks are: conv-k3-d2"),
        ({"overrides": {"lynx": 5}}, r"Unknown override lynx. This network takes: cell, filters"),
        ({"overrides": {"links": (5, 5)}}, r"links \(=\(5, 5\)\) must have one value for each of the 3 layers"),
        ({"data": replace(DIGITS, size=30)}, r"height \(=30\) does not fit strides \[1, 2, 2\]"),
        ({"model": "conv2d", "overrides": {"in_frames": 5}}, r"in_frames \(=5\) follows from data.in_frames \(=10\)"),
        ({"model": "conv3d", "data": replace(DIGITS, leads=30)}, r"turns 10 frames into \d+, not out_frames=30"),
        (
            {"model": "conv2d", "data": replace(DIGITS, size=16), "batch_size": 1},
            r"batch_size \(=1\) leaves batch norm one value a channel on the 1x1 grid",
        ),
    ],
)
def test_a_value_that_cannot_work_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        digits_run(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"in_frames": 0}, r"data.in_frames \(=0\) must be a whole number from 1"),
        ({"leads": 0}, r"data.leads \(=0\)"),
        ({"walk_stride": 0}, r"data.walk_stride \(=0\)"),
        ({"max_missing": 25}, r"data.max_missing \(=25\) would let a window of 25 frames be empty"),
        ({"valid_windows": 0}, r"data.valid_windows \(=0\)"),
        ({"store": ""}, r"data.store \(=''\)"),
    ],
)
def test_radar_data_are_checked_too(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(RADAR, **changes)


def test_a_grid_the_strides_do_not_divide_is_refused_with_its_numbers() -> None:
    with pytest.raises(ConfigError, match=r"height \(=50\) does not fit strides \[5, 3, 2\].* multiple of 30"):
        radar_run(data=replace(RADAR, height=50), overrides={})


def test_a_missing_store_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"No store at .*none\.zarr"):
        radar_config("convgru", store=str(tmp_path / "none.zarr"))


# --- plain form and identity


@pytest.mark.parametrize("config", [digits_run(), radar_run(), radar_run(clip_norm=5, data=replace(RADAR, leads=3))])
def test_a_config_survives_json_and_pickle(config: TrainConfig) -> None:
    assert TrainConfig.from_plain(json.loads(json.dumps(config.to_plain()))) == config
    assert pickle.loads(pickle.dumps(config)) == config  # Ray sends configs this way
    assert hash(config) == hash(replace(config))


def test_lists_and_tuples_and_whole_floats_are_one_setting() -> None:
    as_code = radar_run(overrides={"strides": (5, 3, 1), "filters": (2, 2, 2)}, clip_norm=50.0)
    as_file = radar_run(overrides={"filters": [2, 2, 2], "strides": [5, 3, 1]}, clip_norm=50)
    assert as_code == as_file
    assert as_code.identity == as_file.identity


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({"version": 99}, "version 99; this nowcastlab reads version 1"),
        ({"extra": 1}, "No setting 'extra'. The settings are: data, model"),
        ({"data": {"kind": "satellite"}}, "'satellite'"),
        ({"data": ["digits"]}, r"data \(=\['digits'\]\) must be a table"),
        ({"data": {"kind": "digits", "digits": "mnist", "digest": "d", "wind": 1}}, "No setting 'data.wind'"),
        ({"data": {"kind": "digits", "digits": "mnist"}}, "not complete: .*digest"),
    ],
)
def test_a_plain_form_that_is_not_one_is_refused(plain: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainConfig.from_plain({**digits_run().to_plain(), **plain})


def test_what_is_no_table_at_all_is_no_config() -> None:
    with pytest.raises(ConfigError, match=r"a config \(=\[\]\) must be a table"):
        TrainConfig.from_plain([])  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"overrides \(=5\) must be a table"):
        with_changes(digits_run(), {"overrides": 5})


@pytest.mark.parametrize(
    "changes",
    [{"seed": 1}, {"learning_rate": 2e-4}, {"data.leads": 5}, {"data.digest": "other"}, {"overrides.links": 3}],
)
def test_what_decides_the_result_is_in_the_identity(changes: dict[str, Any]) -> None:
    assert with_changes(digits_run(), changes).identity != digits_run().identity


@pytest.mark.parametrize("changes", [{"device": "cpu"}, {"threads": 2}, {"checkpoint_every": 7}, {"data.store": "b"}])
def test_where_a_run_computes_is_not_in_the_identity(changes: dict[str, Any]) -> None:
    changed = with_changes(radar_run(), changes)
    assert changed != radar_run()
    assert changed.identity == radar_run().identity


def test_the_identity_is_the_same_in_every_process() -> None:
    # Pinned: sweeps find their finished trials by it. It may change only together with VERSION.
    assert digits_run().identity == "92348f3a4c9d0d2580e90be73c6b476a5a1d75bad7efd81d7408789572f4fbc2"


def test_changes_may_need_each_other() -> None:
    changed = with_changes(digits_run(), {"max_steps": 10, "validate_every": 10, "report_every": 5})
    assert (changed.max_steps, changed.validate_every) == (10, 10)


def test_an_unknown_change_lists_the_known() -> None:
    with pytest.raises(
        ConfigError, match=r"No setting 'learning-rate'. Did you mean 'learning_rate'\? The settings are: data"
    ):
        with_changes(digits_run(), {"learning-rate": 1})
    with pytest.raises(ConfigError, match=r"No setting 'data.lead'. Did you mean 'data.leads'\?"):
        with_changes(digits_run(), {"data.lead": 1})


# --- the paper's numbers


@pytest.mark.parametrize(
    ("model", "preset", "expected"),
    [
        # Shi et al. 2017, section 4
        ("traj-l13", "paper", {"batch_size": 4, "max_steps": 200_000, "clip_norm": 10.0, "lr_decay": 1.0}),
        ("conv2d", "paper", {"batch_size": 32, "max_steps": 100_000, "clip_norm": 50.0, "lr_decay": 1.0}),
        # the configuration files of the authors' release
        ("traj-l13", "release", {"batch_size": 4, "max_steps": 200_000, "clip_norm": 1.0, "lr_decay": 0.7}),
        ("conv2d", "release", {"batch_size": 32, "max_steps": 80_000, "clip_norm": 50.0, "lr_floor": 1e-6}),
    ],
)
def test_moving_digits_at_paper_scale_are_the_papers(model: str, preset: str, expected: dict[str, Any]) -> None:
    config = mnist_config(model, scale="paper", preset=preset, digits="sklearn-digits")
    expected |= {"learning_rate": 1e-4, "beta1": 0.5, "loss": "mse", "loss_scale": 1.0}
    assert {name: getattr(config, name) for name in expected} == expected
    assert (config.data.size, config.data.count, config.data.frames) == (64, 3, 20)  # type: ignore[union-attr]
    assert config.overrides == ({"init": "xavier"} if (model, preset) == ("conv2d", "release") else {})


@pytest.fixture
def hko7_sized(tmp_path: Path) -> str:
    """An empty store on the paper's grid."""
    import datetime as dt

    from nowcastlab.store import StoreWriter

    path = tmp_path / "empty.zarr"
    with StoreWriter.create(
        path, dates=[dt.date(2015, 1, 1)], grid=(480, 480), interval_minutes=6, km_per_pixel=1.07, title="empty"
    ):
        pass
    return str(path)


@pytest.mark.parametrize(
    ("model", "loss", "preset", "expected"),
    [
        ("trajgru", "balanced", "paper", {"loss_scale": 1e-5, "batch_size": 4, "max_steps": 100_000, "patience": 3}),
        ("convgru", "plain", "paper", {"loss_scale": 5e-5, "loss": "mse+mae"}),
        ("conv3d", "balanced", "paper", {"loss_scale": 5e-5, "batch_size": 8, "max_steps": 80_000}),
        (
            "trajgru",
            "balanced",
            "release",
            {"lr_decay": 0.7, "lr_decay_every": 20_000, "lr_floor": 1e-6, "patience": 0},
        ),
    ],
)
def test_radar_at_paper_scale_is_the_papers(
    hko7_sized: str, model: str, loss: str, preset: str, expected: dict[str, Any]
) -> None:
    config = radar_config(model, store=hko7_sized, scale="paper", preset=preset, loss=loss)
    expected |= {"learning_rate": 1e-4, "beta1": 0.5, "clip_norm": 50.0, "validate_every": 10_000}
    assert {name: getattr(config, name) for name in expected} == pytest.approx(expected)
    assert (config.data.in_frames, config.data.leads) == (5, 20)


@pytest.mark.parametrize("scale", ["demo", "laptop", "paper"])
@pytest.mark.parametrize("baseline", ["last-frame", "rover", "rover-nonlinear"])
def test_a_baseline_has_nothing_to_train_at_any_scale(baseline: str, scale: str) -> None:
    with pytest.raises(ConfigError, match=f"{baseline} has nothing to train. The networks are: conv-k3-d2"):
        mnist_config(baseline, scale=scale, digits="sklearn-digits")


def test_an_unknown_scale_or_preset_lists_the_known() -> None:
    with pytest.raises(ConfigError, match=r"scale \(='huge'\) is unknown. There are: demo, laptop, paper"):
        mnist_config(scale="huge")
    with pytest.raises(ConfigError, match=r"preset \(='mine'\) is unknown. There are: paper, release"):
        mnist_config(preset="mine")


@pytest.mark.parametrize("scale", ["demo", "laptop"])
@pytest.mark.parametrize("model", ["trajgru", "convgru", "convlstm", "conv2d", "conv3d"])
def test_every_network_suits_a_small_store_at_a_small_scale(tiny_store: Path, model: str, scale: str) -> None:
    config = radar_config(model, store=str(tiny_store), scale=scale)
    # the loss is as large as on the paper's grid: 24 * 24 pixels are 1/400 of 480 * 480
    assert config.loss_scale == pytest.approx((5e-5 if model in ("conv2d", "conv3d") else 1e-5) * 400)


def test_a_config_tells_where_it_left_its_preset() -> None:
    assert departures(mnist_config(digits="sklearn-digits", seed=3, device="cpu")) == {}
    changed = mnist_config(digits="sklearn-digits", learning_rate=0.5, **{"data.leads": 5})
    named = mnist_config(digits="sklearn-digits").learning_rate
    assert departures(changed) == {"learning_rate": (named, 0.5), "data.leads": (10, 5)}


def test_a_shorter_run_is_shorter_in_all_its_parts() -> None:
    config = mnist_config(digits="sklearn-digits", max_steps=7)
    assert max(config.validate_every, config.report_every, config.checkpoint_every) <= 7
