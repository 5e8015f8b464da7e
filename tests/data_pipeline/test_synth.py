"""The synthetic archive and store: what is planted, what is missing, and that both are one data."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import CliRunner

from data_pipeline import archive_layout as layout
from data_pipeline.synth.clutter import Clutter, out_of_range, planted_clutter
from data_pipeline.synth.command import command
from data_pipeline.synth.days import Sky, SyntheticPlan
from data_pipeline.synth.describe import Figure, Measurement, describe_plan, table
from data_pipeline.synth.write import write_archive, write_store
from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.store import open_store
from nowcastlab.units import valid_pixels

MAY = dt.date(2014, 5, 1)
NOON = 23_315_760  # 2014-05-01 12:00


def plan(**changes: object) -> SyntheticPlan:
    return SyntheticPlan(**{"start": MAY, "days": 3, "size": 40, "interval_minutes": 30, **changes})  # type: ignore[arg-type]


# --- what is planted -------------------------------------------------------------------------------------------------


def test_beyond_the_range_of_the_radar_lies_a_fifth_of_the_square() -> None:
    assert out_of_range(480).mean() == pytest.approx(1 - np.pi / 4, abs=0.002)
    assert not Clutter(seed=1, size=480).add(np.full((480, 480), 99, np.uint8), NOON)[out_of_range(480)].any()


@pytest.mark.parametrize("size", [60, 120, 480])
def test_a_little_over_one_percent_of_the_places_is_cluttered(size: int) -> None:
    planted = planted_clutter(1, size)
    assert planted.ground.any()
    assert planted.spike.any()
    assert not (planted.ground & planted.spike).any()
    assert not (planted.places & out_of_range(size)).any()
    assert 0.008 < planted.places.sum() / (~out_of_range(size)).sum() < 0.03


def test_ground_clutter_stays_near_its_own_level() -> None:
    clutter = Clutter(seed=1, size=120)
    empty = np.zeros((120, 120), np.uint8)
    frames = np.stack([clutter.add(empty, NOON + 6 * i) for i in range(30)]).astype(int)
    ground = clutter.planted.ground
    shown = frames[:, ground]
    assert 0.25 < (shown >= 71).mean() < 0.5  # below 71 it is sea clutter
    assert (np.abs(shown - clutter.planted.level[ground])[shown >= 71] <= 1).all()


def test_the_spike_shows_at_its_hours_only() -> None:
    clutter = Clutter(seed=1, size=120)
    empty, spike = np.zeros((120, 120), np.uint8), clutter.planted.spike
    assert (clutter.add(empty, NOON + 6 * 60)[spike] > 0).all()  # 18:00
    assert (clutter.add(empty, NOON)[spike] >= 71).sum() == 0


def test_sea_clutter_is_too_weak_to_be_rain_and_never_twice_the_same() -> None:
    clutter = Clutter(seed=1, size=120)
    first, second = (clutter.add(np.zeros((120, 120), np.uint8), NOON + m) for m in (0, 6))
    speckle = (first > 0) & ~clutter.planted.places
    assert 0 < speckle.sum() < 0.03 * first.size
    assert first[speckle].max() < 71
    assert not np.array_equal(first[speckle], second[speckle])
    assert not speckle[:60].any()  # the sea is in the south


def test_clutter_never_hides_stronger_rain() -> None:
    rain = np.full((120, 120), 255, np.uint8)
    assert (Clutter(seed=1, size=120).add(rain, NOON + 6 * 60)[~out_of_range(120)] == 255).all()


# --- days ------------------------------------------------------------------------------------------------------------


def test_gaps_come_single_double_and_long() -> None:
    lengths = set()
    lost = 0
    for date in plan(days=200, interval_minutes=6).dates:
        steps = np.diff(plan(interval_minutes=6).minutes(date)) // 6 - 1
        lengths |= set(steps[steps > 0].tolist())
        lost += 240 - len(plan(interval_minutes=6).minutes(date))
    assert {1, 2} <= lengths
    assert max(lengths) > 2
    assert 0.002 < lost / (200 * 240) < 0.015


def test_every_split_has_its_share() -> None:
    splits = list(plan(days=60).splits.values())
    assert splits.count("test") == 10
    assert splits[-10:] == ["test"] * 10
    assert splits.count("valid") == 8  # days 4, 10, ... of the first fifty
    assert splits.count("train") == 42


@pytest.mark.parametrize(("days", "splits"), [(1, ["train"]), (2, ["train", "test"]), (3, ["train", "valid", "test"])])
def test_few_days_are_split_as_well_as_they_can_be(days: int, splits: list[str]) -> None:
    assert list(plan(days=days).splits.values()) == splits


def test_a_day_is_the_same_in_a_longer_plan() -> None:
    alone = Sky(plan(days=1, start=MAY + dt.timedelta(days=1))).day(MAY + dt.timedelta(days=1))
    sky = Sky(plan(days=3))
    sky.day(MAY)
    among = sky.day(MAY + dt.timedelta(days=1))
    assert np.array_equal(alone.frames, among.frames)
    assert alone.gauge_mm == among.gauge_mm


def test_the_weather_goes_on_over_midnight() -> None:
    """The last frame of a day is as near to the first of the next as any two neighbours."""
    sky = Sky(plan(size=64))
    midnight = layout.first_minute(MAY + dt.timedelta(days=1))
    stamps = midnight + np.arange(-18, 18, 6)
    z = [sky._rain.z(int(m)) for m in stamps]
    steps = [float(np.abs(b - a).mean()) for a, b in itertools.pairwise(z)]
    assert steps[2] == pytest.approx(np.mean(steps), rel=0.3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"days": 0}, r"`days` \(=0\)"),
        ({"interval_minutes": 7}, r"`interval_minutes` \(=7\) must divide"),
        ({"start": dt.date(1999, 1, 1)}, r"`start` \(=1999-01-01\)"),
        ({"interval_minutes": 1, "off_grid": True}, "a minute late is the next frame"),
    ],
)
def test_a_plan_that_cannot_work_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        plan(**changes)


# --- on disk ---------------------------------------------------------------------------------------------------------


def test_archive_and_store_hold_the_same_frames(tmp_path: Path) -> None:
    write_archive(plan(), tmp_path / "archive")
    write_store(plan(), tmp_path / "store.zarr")
    store = open_store(tmp_path / "store.zarr")

    paths = sorted((tmp_path / "archive").rglob("*.png"))
    minutes = np.array([layout.minutes_of(path.name) for path in paths])
    assert np.array_equal(minutes, store.minutes())
    frames = np.stack([cv2.imread(str(path), cv2.IMREAD_UNCHANGED) for path in paths])
    assert frames.dtype == np.uint8
    assert np.array_equal(frames, store.read(minutes).pixels)

    exclusion = layout.read_exclusion(tmp_path / "archive" / "mask_dat.npz")
    assert np.array_equal(exclusion.excluded, store.excluded)
    for path, stamp, pixels in zip(paths, minutes.tolist(), frames, strict=True):
        assert layout.frame_path(tmp_path / "archive", stamp) == path
        mask = layout.decode_mask(layout.mask_path(tmp_path / "archive", stamp).read_bytes(), (40, 40))
        assert np.array_equal(mask, valid_pixels(pixels, exclusion.excluded))

    lists = layout.find_day_lists(tmp_path / "archive")
    listed = {date: (split, mm) for split, path in lists.items() for date, mm in layout.read_day_list(path).items()}
    assert listed == {day.date: (day.split, pytest.approx(day.gauge_mm)) for day in store.days}


def test_nothing_of_it_claims_to_be_real(tmp_path: Path) -> None:
    write_archive(plan(days=1), tmp_path / "archive")
    write_store(plan(days=1), tmp_path / "store.zarr")
    store = open_store(tmp_path / "store.zarr")
    assert store.title.startswith("synthetic radar")
    assert store.attributes["source"] == "synthetic"
    names = [path.name.lower() for path in tmp_path.rglob("*")]
    assert not any("hko" in name for name in names)
    assert "hko" not in json.dumps(store.attributes).lower()


def test_undenoised_leaves_the_clutter_to_be_found(tmp_path: Path) -> None:
    write_archive(plan(days=1), tmp_path / "archive", undenoised=True)
    exclusion = layout.read_exclusion(tmp_path / "archive" / "mask_dat.npz")
    assert not exclusion.outlier.any()
    with np.load(tmp_path / "archive" / "planted_clutter.npz") as planted:
        assert np.array_equal(planted["ground"] | planted["spike"], planted_clutter(1, 40).places)


def test_a_store_cut_short_goes_on_to_the_same_digest(tmp_path: Path) -> None:
    write_store(plan(), tmp_path / "whole.zarr")
    write_store(plan(days=1), tmp_path / "grown.zarr")
    write_store(plan(), tmp_path / "grown.zarr")
    whole, grown = (open_store(tmp_path / f"{name}.zarr") for name in ("whole", "grown"))
    assert whole.digest == grown.digest
    assert whole.days == grown.days


def test_another_seed_does_not_go_on_with_a_store(tmp_path: Path) -> None:
    write_store(plan(days=1), tmp_path / "store.zarr")
    with pytest.raises(StoreError, match="seed 1"):
        write_store(plan(days=2, seed=2), tmp_path / "store.zarr")


def test_an_archive_is_not_written_over_another(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(StoreError, match="is there already"):
        write_archive(plan(days=1), tmp_path)


def test_off_grid_stamps_are_a_minute_late_now_and_then(tmp_path: Path) -> None:
    late = [(plan(off_grid=True).minutes(date) % 30) for date in plan(days=30).dates]
    assert {int(minute) for day in late for minute in day} == {0, 1}
    assert 0 < sum(int(day.sum()) for day in late) < 30
    with pytest.raises(ConfigError, match="add --archive"):
        write_store(plan(off_grid=True), tmp_path / "store.zarr")


# --- describe --------------------------------------------------------------------------------------------------------


def test_the_measurement_counts_what_can_be_counted_by_hand() -> None:
    """Two pixels of four, 25 frames: one always at level 84 (0.5 mm/h), one at 141 (5 mm/h) in odd frames only.

    The one window's last input is frame 4, even: at 0.5 mm/h it forecasts the first pixel, so lead 1 (odd) has one
    hit of two, lead 10 (even) one of one. At 5 mm/h it forecasts nothing.
    """
    frames = np.zeros((25, 2, 2), np.uint8)
    frames[:, 0, 0] = 84
    frames[1::2, 0, 1] = 141
    minutes = 6 * np.arange(25)
    measurement = Measurement(np.zeros((2, 2), bool), minutes, 6, 1.0)
    for minute, pixels in zip(minutes.tolist(), frames, strict=True):
        measurement.add(minute, pixels)
    assert measurement.above.tolist() == [25 + 12, 12, 12, 0, 0]
    assert measurement.valid == 100
    assert measurement.hits.tolist() == [[1, 1, 1, 1], [0, 0, 0, 0]]
    assert measurement.either.tolist() == [[2, 2, 1, 1], [1, 1, 0, 0]]


def test_small_echoes_and_excluded_places_are_not_counted() -> None:
    frame = np.array([[84, 70], [84, 0]], np.uint8)
    measurement = Measurement(np.array([[False, False], [True, False]]), np.array([0]), 6, 1.0)
    measurement.add(0, frame)
    assert (measurement.valid, measurement.above[0]) == (2, 1)


def test_a_figure_beyond_the_tolerance_is_marked() -> None:
    _, near, far = table([Figure("near", 1.2, 1.0), Figure("far", 1.3, 1.0)])
    assert near.split() == ["near", "1.200", "1.000", "+20.0%"]
    assert far.endswith("+30.0%  beyond 25%")


@pytest.mark.slow
def test_a_dozen_days_agree_with_the_real_test_set() -> None:
    disagreeing = [figure for figure in describe_plan(plan(days=12, size=120, interval_minutes=6)) if not figure.agrees]
    assert disagreeing == []


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_makes_a_store(tmp_path: Path) -> None:
    arguments = [str(tmp_path / "demo"), "--days", "2", "--size", "40", "--interval-minutes", "60"]
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "2 days of 40x40 pixels, seed 1" in result.output
    store = open_store(tmp_path / "demo.zarr")
    assert store.grid == (40, 40)
    assert store.km_per_pixel == pytest.approx(512 / 40)
    assert [day.split for day in store.days] == ["train", "test"]


def test_the_command_describes_for_a_script_and_draws(tmp_path: Path) -> None:
    arguments = ["--describe", "--days", "1", "--size", "40", "--interval-minutes", "60", "--json"]
    result = CliRunner().invoke(command, [*arguments, "--picture", str(tmp_path / "rain.png")], catch_exceptions=False)
    described = json.loads(result.stdout)
    assert described["size"] == 40
    assert {"name", "measured", "target", "relative_error", "agrees"} == set(described["figures"][0])
    assert cv2.imread(str(tmp_path / "rain.png")).ndim == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Name the store or folder to write"),
        (["x.zarr"], "Say how many --days"),
        (["x.zarr", "--describe"], "--describe writes nothing"),
        (["x.zarr", "--days", "0"], "0 is not in the range"),
        (["x.zarr", "--days", "2", "--json"], "--json is for --describe"),
        (["--picture", "x.png", "--json"], "--json is for --describe"),
        (["--describe", "--undenoised"], "--undenoised says what to write: name the TARGET"),
        (["s3://bucket/x.zarr", "--days", "2"], "s3://bucket/x.zarr is not a local path. Write to one"),
        (["s3://bucket/archive", "--days", "2", "--archive"], "s3://bucket/archive is not a local path. Write to one"),
    ],
)
def test_a_mistaken_command_says_what_to_do_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert list(tmp_path.iterdir()) == []


def test_the_help_promises_to_go_on_for_stores_only(tmp_path: Path) -> None:
    words = " ".join(CliRunner().invoke(command, ["--help"]).output.split())
    assert "a store that was cut short goes on where it stopped. An archive is written whole, into a new" in words
    arguments = [str(tmp_path / "a"), "--archive", "--days", "1", "--size", "40", "--interval-minutes", "720"]
    assert CliRunner().invoke(command, arguments).exit_code == 0
    result = CliRunner().invoke(command, arguments)
    assert "is there already. Name a new folder: an archive is written whole" in str(result.exception)
