"""What a run reports, what it leaves behind, and how it ends."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nowcastlab.config import TrainConfig, mnist_config, radar_config, with_changes
from nowcastlab.errors import ConfigError, StoreError, TrainingError
from nowcastlab.losses import radar_loss
from nowcastlab.models import build
from nowcastlab.store import StoreWriter, open_store
from nowcastlab.training import check, load_trained, read_config, read_history, train
from nowcastlab.training.machine import computing
from nowcastlab.training.radar import RadarTask
from nowcastlab.training.schedule import learning_rate
from nowcastlab.windows import walk

CPU = torch.device("cpu")
SMALL_GRU = {"overrides.filters": 2, "overrides.stem_filters": 2, "data.in_frames": 2, "data.leads": 2}


def test_reports_rise_in_step_and_come_at_most_once_a_step(tiny_run: TrainConfig, tmp_path: Path) -> None:
    reports: list[dict[str, Any]] = []
    train(tiny_run, reports.append, folder=tmp_path)
    assert [r["step"] for r in reports] == [2, 4, 6, 8, 10, 12]
    assert all(
        {"train/loss", "train/grad_norm", "train/learning_rate", "speed/frames_per_s"} <= set(r) for r in reports
    )
    assert [r["step"] for r in reports if "valid/score" in r] == [4, 8, 12]
    assert read_history(tmp_path) == reports


def test_the_reported_loss_is_the_mean_since_the_last_report(tiny_run: TrainConfig, tmp_path: Path) -> None:
    every, each = [dict[str, Any]()], [dict[str, Any]()]
    train(tiny_run, every.append, folder=tmp_path / "every-second")
    train(replace(tiny_run, report_every=1), each.append, folder=tmp_path / "each")
    for report in every[1:]:
        pair = [r["train/loss"] for r in each[1:] if r["step"] in (report["step"] - 1, report["step"])]
        assert report["train/loss"] == pytest.approx(sum(pair) / 2, rel=1e-12)


def test_a_network_learns_and_its_best_is_what_is_loaded(tiny_store: Path, tmp_path: Path) -> None:
    config = radar_config(
        "convgru", store=str(tiny_store), max_steps=25, validate_every=5, learning_rate=0.01, threads=1, **SMALL_GRU
    )
    result = train(config, lambda report: None, folder=tmp_path)
    scores = {r["step"]: r["valid/score"] for r in read_history(tmp_path) if "valid/score" in r}
    assert scores[25] < 0.8 * scores[5]
    assert result.best_score == min(scores.values()) == scores[result.best_step]

    trained = load_trained(tmp_path)
    assert trained.step == result.best_step
    assert trained.config == config == read_config(tmp_path)
    assert trained.data_digest == open_store(str(tiny_store)).digest
    # the weights are those that were scored
    assert isinstance(config.data.digest, str)
    task = RadarTask(config, config.data, CPU)  # type: ignore[arg-type]
    assert task.validate(trained.model)["valid/score"] == pytest.approx(result.best_score, rel=1e-6)


def test_moving_digits_are_learnt_too(tmp_path: Path) -> None:
    config = mnist_config(
        "traj-l5",
        digits="sklearn-digits",
        max_steps=8,
        validate_every=4,
        learning_rate=0.01,
        precision="bfloat16",
        **{"data.size": 16, "data.in_frames": 2, "data.leads": 2, "data.valid_sequences": 5},
        **{"overrides.filters": 2, "overrides.stem_filters": 2, "overrides.flow_filters": 2, "overrides.links": 2},
    )
    train(config, lambda report: None, folder=tmp_path)
    first, last = (r["valid/mse"] for r in read_history(tmp_path) if "valid/mse" in r)
    assert last < first


# --- data


def test_the_batch_of_a_step_depends_on_seed_and_step_alone(tiny_run: TrainConfig) -> None:
    one, other = (RadarTask(tiny_run, tiny_run.data, CPU) for _ in range(2))  # type: ignore[arg-type]
    for step in (1, 2, 3):
        one.batch(step)
    np.testing.assert_array_equal(one.batch(7).frames, other.batch(7).frames)
    reseeded = RadarTask(replace(tiny_run, seed=1), tiny_run.data, CPU)  # type: ignore[arg-type]
    assert (reseeded.batch(7).frames != other.batch(7).frames).any()


def test_validation_is_the_walk_scored_window_by_window(tiny_run: TrainConfig, tiny_store: Path) -> None:
    config = with_changes(tiny_run, {"data.valid_windows": None, "valid_batch_size": 3})
    model = build("last-frame")
    store = open_store(str(tiny_store))
    windows = [store.read(window.start + 6 * np.arange(4)) for window in walk(store.minutes("valid"), length=4)]
    sums = []
    for frames in windows:
        pixels = torch.from_numpy(frames.pixels)[None]
        arguments = (torch.from_numpy(store.excluded), torch.from_numpy(frames.present)[None, 2:])
        forecast = (pixels[:, 1:2].float() / 255).expand(-1, 2, -1, -1)
        sums.append(float(radar_loss("b-mse+b-mae")(forecast, pixels[:, 2:], *arguments)))
    task = RadarTask(config, config.data, CPU)  # type: ignore[arg-type]
    assert task.validate(model)["valid/score"] == pytest.approx(float(np.mean(sums)), rel=1e-5)
    # the frame that is missing is the target of a window, so it was met
    assert any(not frames.present[2:].all() for frames in windows)


def test_frames_of_another_split_are_not_trained_on(tiny_store: Path, tmp_path: Path) -> None:
    """A training window may run two frames past the last frame of its day: into a day of the test split, say."""
    dates = [dt.date(2015, 6, 1), dt.date(2015, 6, 2), dt.date(2015, 6, 4)]
    splits = dict(zip(dates, ("train", "test", "valid"), strict=True))
    with StoreWriter.create(
        tmp_path / "s.zarr", dates=dates, grid=(24, 24), interval_minutes=6, km_per_pixel=1, title="s", splits=splits
    ) as writer:
        for date in dates:
            midnight = (date - dt.date(1970, 1, 1)).days * 1440
            writer.commit(writer.write_day(date, midnight + 6 * np.arange(240), np.full((240, 24, 24), 200, np.uint8)))
    config = radar_config("convgru", store=str(tmp_path / "s.zarr"), **SMALL_GRU)
    task = RadarTask(config, config.data, CPU)  # type: ignore[arg-type]
    last = task.store.minutes("train")[-1:]
    frames, present = task._read("train", last - 6)  # the last two frames, then two of the test day
    assert present.tolist() == [[True, True, False, False]]
    assert frames[0, :, 0, 0].tolist() == [200, 200, 0, 0]


def test_a_store_without_windows_to_validate_on_is_refused(tiny_run: TrainConfig) -> None:
    with pytest.raises(StoreError, match=r"has no window of 62 frames in its valid split \(44 frames there"):
        check(with_changes(tiny_run, {"data.leads": 60}))


def test_a_device_that_is_not_here_is_refused(tiny_run: TrainConfig) -> None:
    with pytest.raises(ConfigError, match=r"device \(='cuda:7'\): this machine has \d+ CUDA devices"):
        check(replace(tiny_run, device="cuda:7"))


# --- how a run ends


def test_divergence_stops_with_the_step_and_what_to_try(tiny_run: TrainConfig, tmp_path: Path) -> None:
    wild = replace(tiny_run, learning_rate=1e9, clip_norm=None)
    with pytest.raises(
        TrainingError,
        match=r"diverged at step \d+: loss .* Try learning_rate=3.3e\+08 .*clip_norm=10.* folder of its own",
    ):
        train(wild, lambda report: None, folder=tmp_path)


def test_training_stops_when_validation_has_not_improved_for_patience_times(
    tiny_run: TrainConfig, tmp_path: Path
) -> None:
    # A rate that is too low to move float32 weights: every validation is the first one's equal, none is better.
    still = with_changes(tiny_run, {"learning_rate": 1e-20, "patience": 2, "validate_every": 2, "max_steps": 12})
    still = replace(still, model="convgru", overrides={"filters": 2, "stem_filters": 2, "strides": (4, 1, 1)})
    result = train(still, lambda report: None, folder=tmp_path)
    # best at 2, not better at 4 and 6
    assert (result.step, result.best_step, result.stopped_early, result.finished) == (6, 2, True, True)
    again = train(still, lambda report: pytest.fail("a finished run was trained on"), folder=tmp_path)
    assert (again.step, again.resumed_from) == (6, 6)


def test_a_run_asked_to_stop_is_saved_and_goes_on_later(tiny_run: TrainConfig, tmp_path: Path) -> None:
    seen: list[int] = []
    stopped = train(tiny_run, lambda r: seen.append(r["step"]), folder=tmp_path, stop=lambda: seen[-1:] == [6])
    assert (stopped.step, stopped.finished) == (6, False)
    done = train(tiny_run, lambda r: seen.append(r["step"]), folder=tmp_path)
    assert (done.step, done.finished, done.resumed_from) == (12, True, 6)
    assert seen == [2, 4, 6, 8, 10, 12]


def test_the_learning_rate_decays_in_steps_down_to_its_floor(tiny_run: TrainConfig) -> None:
    config = replace(tiny_run, learning_rate=1e-4, lr_decay=0.7, lr_decay_every=20_000, lr_floor=1e-6)
    assert learning_rate(config, 20_000) == 1e-4
    assert learning_rate(config, 20_001) == pytest.approx(0.7e-4)
    assert learning_rate(config, 100_000) == pytest.approx(1e-4 * 0.7**4)
    assert learning_rate(config, 10_000_000) == 1e-6


def test_threads_are_set_for_the_run_only(tiny_run: TrainConfig) -> None:
    before = torch.get_num_threads()
    with computing(replace(tiny_run, threads=before + 1)):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_nothing_is_loaded_from_a_folder_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"No run in .*: there is no config.json. Train one with"):
        load_trained(tmp_path)
    with pytest.raises(ConfigError, match=r"which \(='worst'\) must be best or last"):
        load_trained(tmp_path, "worst")
