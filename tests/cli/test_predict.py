"""`nowcastlab predict` as a user runs it."""

from __future__ import annotations

import datetime as dt
import fnmatch
import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from data_pipeline.synth.command import command as synth
from data_pipeline.synth.days import SyntheticPlan
from nowcastlab.cli import main_group
from nowcastlab.cli.predict import FRAMES_IN
from nowcastlab.cli.predict import command as predict_command
from nowcastlab.errors import NowcastlabError
from nowcastlab.store import StoreWriter, open_store
from nowcastlab.units import pixel_from_mmh


@pytest.fixture(scope="module")
def midnight_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shower on 5 June, 16x16, every frame from 20:00 but 22:00; nothing on 6 June."""
    path = tmp_path_factory.mktemp("stores") / "midnight.zarr"
    date = dt.date(2015, 6, 5)
    slots = np.delete(np.arange(200, 240), 20)
    y, x = np.mgrid[:16, :16]
    rate_mmh = 20 * np.exp(-((x - 8 - 0.1 * (slots - 220)[:, None, None]) ** 2 + (y - 8) ** 2) / 10)
    excluded = np.zeros((16, 16), bool)
    excluded[0] = True
    with StoreWriter.create(
        path,
        dates=[date],
        grid=(16, 16),
        interval_minutes=6,
        km_per_pixel=2,
        title="before midnight",
        excluded=excluded,
    ) as writer:
        minutes = (date - dt.date(1970, 1, 1)).days * 1440 + 6 * slots
        writer.commit(writer.write_day(date, minutes, pixel_from_mmh(rate_mmh)))
    return path


def predict(*arguments: object) -> dict[str, object]:
    result = CliRunner().invoke(main_group, ["predict", *map(str, arguments), "--json"])
    assert result.exit_code == 0, f"{result.output}\n{result.exception!r}"
    return json.loads(result.stdout)


def refused(*arguments: object) -> str:
    result = CliRunner().invoke(main_group, ["predict", *map(str, arguments)])
    assert result.exit_code != 0
    return str(result.exception) if isinstance(result.exception, NowcastlabError) else result.output


def stamp(text: str) -> int:
    return int((np.datetime64(text) - np.datetime64("1970-01-01T00:00")).astype("timedelta64[m]").astype(int))


def test_a_forecast_is_a_store_that_crosses_midnight(midnight_store: Path, tmp_path: Path) -> None:
    predict("last-frame", "--store", midnight_store, "--at", "2015-06-05 23:00", "--out", tmp_path)
    forecast = open_store(str(tmp_path / "forecast.zarr"))
    assert [(str(day.date), day.frames) for day in forecast.days] == [("2015-06-05", 9), ("2015-06-06", 11)]
    minutes = forecast.minutes()
    assert (minutes[0], minutes[-1]) == (stamp("2015-06-05T23:06"), stamp("2015-06-06T01:00"))
    newest = open_store(str(midnight_store)).read([stamp("2015-06-05T23:00")]).pixels[0]
    assert (forecast.read(minutes).pixels == newest).all()  # the last frame, to the byte
    assert forecast.excluded[0].all()


def test_xarray_reads_what_made_the_forecast(midnight_store: Path, tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    predict("rover", "--store", midnight_store, "--at", "2015-06-05 23:00", "--out", tmp_path)
    with xarray.open_zarr(tmp_path / "forecast.zarr", chunks=None) as dataset:
        assert dataset.attrs["forecaster"] == "rover"
        assert dataset.attrs["forecast_reference_time"] == "2015-06-05 23:00"
        there = dataset.pixels[dataset.present.values]
        assert there.shape == (20, 16, 16)


def test_frames_are_named_by_their_time_and_hold_the_pixels(midnight_store: Path, tmp_path: Path) -> None:
    predict("rover", "--store", midnight_store, "--at", "2015-06-05 23:00", "--out", tmp_path)
    names = sorted(path.name for path in (tmp_path / "frames").iterdir())
    assert (len(names), names[0], names[-1]) == (20, "201506052306.png", "201506060100.png")
    store = open_store(str(tmp_path / "forecast.zarr"))
    picture = np.asarray(Image.open(tmp_path / "frames" / "201506060000.png"))
    np.testing.assert_array_equal(picture, store.read([stamp("2015-06-06T00:00")]).pixels[0])


def test_the_animation_has_the_inputs_and_the_leads(midnight_store: Path, tmp_path: Path) -> None:
    predict("last-frame", "--store", midnight_store, "--at", "2015-06-05 23:00", "--out", tmp_path)
    with Image.open(tmp_path / "forecast.gif") as animation:
        assert animation.n_frames == 25


def test_forecast_frames_can_be_forecast_from_again(midnight_store: Path, tmp_path: Path) -> None:
    predict("rover", "--store", midnight_store, "--at", "2015-06-05 23:00", "--out", tmp_path)
    five = sorted((tmp_path / "frames").iterdir())[5:10]  # 23:36 to 00:00
    made = predict("last-frame", *five, "--out", tmp_path / "again")
    assert made["at"] == "2015-06-06 00:00"
    again = open_store(str(tmp_path / "again" / "forecast.zarr"))
    assert (again.read(again.minutes()).pixels == np.asarray(Image.open(five[-1]))).all()


def test_names_of_the_archive_tell_the_time(tmp_path: Path) -> None:
    paths = [tmp_path / f"RAD1505220{minute}00.png" for minute in ("406", "412", "418", "424", "430")]
    for path in paths:
        Image.fromarray(np.full((16, 16), 100, np.uint8)).save(path)
    assert predict("last-frame", *paths, "--out", tmp_path / "out")["at"] == "2015-05-22 04:30"


def test_frames_may_come_in_one_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "frames.npz", pixels=np.full((7, 16, 16), 120, np.uint8))
    made = predict("last-frame", tmp_path / "frames.npz", "--at", "2015-05-22 04:30", "--out", tmp_path / "out")
    assert made["at"] == "2015-05-22 04:30"


def test_an_array_may_say_when_its_frames_were(tmp_path: Path) -> None:
    newest = stamp("2015-05-22T04:30")
    arrays = {"pixels": np.full((7, 16, 16), 120, np.uint8), "minutes": newest + 6 * np.arange(-6, 1)}
    np.savez(tmp_path / "frames.npz", **arrays)
    assert predict("last-frame", tmp_path / "frames.npz", "--out", tmp_path / "out")["at"] == "2015-05-22 04:30"


@pytest.mark.parametrize(
    ("minutes", "text"),
    [
        ([0, 6, 12, 18, 30], "00:12, 1970-01-01 00:18, 1970-01-01 00:30: give them oldest first and 6 minutes apart"),
        ([0, 5, 10, 15, 20], "6 minutes apart, or say --interval and --at"),
        ([0, 6, 12, 18], "has `minutes` int64 (4,) for 5 frames"),
        ([0.0, 6.0, 12.0, 18.0, np.nan], "has `minutes` float64 (5,) for 5 frames"),
    ],
)
def test_an_array_whose_frames_do_not_follow_one_another_is_refused(
    tmp_path: Path, minutes: list[float], text: str
) -> None:
    np.savez(tmp_path / "five.npz", pixels=np.zeros((5, 16, 16), np.uint8), minutes=np.array(minutes))
    assert text in refused("last-frame", tmp_path / "five.npz", "--out", tmp_path / "out")


def test_the_examples_are_of_a_time_that_synthetic_rain_has() -> None:
    options = {option.name: option.default for option in synth.params}
    plan = SyntheticPlan(start=dt.date.fromisoformat(str(options["start"])), days=12, seed=options["seed"])
    times = re.findall(r"(?:work/run|demo\.zarr) --at \"(.*?)\"", predict_command.help or "")
    assert len(times) == 2
    for text in times:
        moment = dt.datetime.fromisoformat(text)
        assert stamp(text.replace(" ", "T")) in plan.minutes(moment.date())
        assert plan.splits[moment.date()] == "test"


def test_the_example_with_names_of_the_archive_takes_five_frames_of_it() -> None:
    (pattern,) = re.findall(r"last-frame (RAD\S+)", predict_command.help or "")
    archive = [f"RAD150522{hour:02d}{minute:02d}00.png" for hour in range(24) for minute in range(0, 60, 6)]
    assert len(fnmatch.filter(archive, pattern)) == FRAMES_IN


def test_one_missing_input_is_said_and_gone_on_without(midnight_store: Path, tmp_path: Path) -> None:
    made = predict("rover", "--store", midnight_store, "--at", "2015-06-05 22:12", "--out", tmp_path)
    assert made["missing_inputs"] == 1


def test_a_forecast_makes_way_for_a_new_one_and_for_nothing_else(midnight_store: Path, tmp_path: Path) -> None:
    for time in ("23:00", "23:06"):
        predict("last-frame", "--store", midnight_store, "--at", f"2015-06-05 {time}", "--out", tmp_path)
    attributes = open_store(str(tmp_path / "forecast.zarr")).attributes
    assert attributes["forecast_reference_time"] == "2015-06-05 23:06"
    assert len(list((tmp_path / "frames").iterdir())) == 20
    other = tmp_path / "other"
    with StoreWriter.create(
        other / "forecast.zarr",
        dates=[dt.date(2015, 1, 1)],
        grid=(8, 8),
        interval_minutes=6,
        km_per_pixel=1,
        title="mine",
    ):
        pass
    said = refused("last-frame", "--store", midnight_store, "--at", "2015-06-05 23:00", "--out", other)
    assert "is a store, and not a forecast" in said


@pytest.mark.parametrize("earlier", [False, True])
def test_frames_of_the_user_s_own_are_never_deleted(midnight_store: Path, tmp_path: Path, earlier: bool) -> None:
    """In storm/frames, with --out storm: refused; put there after a forecast, left alone by the next."""
    options = ("--store", midnight_store, "--at", "2015-06-05 23:00", "--out", tmp_path)
    if earlier:
        predict("last-frame", *options)
    own = tmp_path / "frames" / "201505220430.png"
    own.parent.mkdir(exist_ok=True)
    own.write_bytes(b"mine")
    if earlier:
        predict("last-frame", *options)
    else:
        said = refused("last-frame", *options)
        assert f"{own.parent} has files in it, and not of a forecast. Give another folder with --out" in said
        assert list(tmp_path.iterdir()) == [own.parent]  # nothing was written
    assert own.read_bytes() == b"mine"


def test_frames_are_not_forecast_from_where_the_forecast_s_own_would_go(midnight_store: Path, tmp_path: Path) -> None:
    """Observed frames have the names of those that were forecast: even an earlier forecast must not make way here."""
    predict("rover", "--store", midnight_store, "--at", "2015-06-05 23:00", "--out", tmp_path)
    frames = {path: path.read_bytes() for path in sorted((tmp_path / "frames").iterdir())}
    five = list(frames)[:5]
    said = refused("last-frame", *five, "--out", tmp_path)
    assert f"{five[0]} lies where the forecast's own frames go. Give another folder with --out" in said
    assert {path: path.read_bytes() for path in frames} == frames


def test_a_time_without_a_frame_is_answered_with_the_nearest(midnight_store: Path) -> None:
    said = refused("last-frame", "--store", midnight_store, "--at", "2015-06-05 22:00")
    assert "no frame at 2015-06-05 22:00" in said
    assert "2015-06-05 21:54" in said
    assert "2015-06-05 22:06" in said
    assert "covers 2015-06-05 20:00 to 2015-06-05 23:54" in said


def test_too_few_frames_before_the_time_are_named(midnight_store: Path) -> None:
    said = refused("last-frame", "--store", midnight_store, "--at", "2015-06-05 20:06")
    assert "19:42, 19:48, 19:54 are missing" in said


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["last-frame"], "Say when"),
        (["last-frame", "--store", "S", "--at", "yesterday"], "Write it as"),
        (["last-frame", "a.png", "--store", "S"], "not both"),
        (
            ["last-frame", "--store", "S", "--at", "2015-06-05 23:00", "--km-per-pixel", "2"],
            "--km-per-pixel is for FILES",
        ),
        (["last-frame", "--store", "S", "--at", "2015-06-05 23:00", "--interval", "6"], "--interval is for FILES"),
        (["last-frame", "a.png", "--km-per-pixel", "-1"], "-1.0 is not in the range x>0"),
        (["last-frame", "a.png"], "needs 5 frames, oldest first; got 1 files"),
        (["last-frame", *["gone.png"] * 5, "--at", "2015-05-22 04:30"], "No file gone.png"),
    ],
)
def test_a_mistake_is_answered_with_the_next_step(midnight_store: Path, arguments: list[str], text: str) -> None:
    said = refused(*(str(midnight_store) if a == "S" else a for a in arguments))
    assert text in said


def test_files_without_a_time_ask_for_one(tmp_path: Path) -> None:
    paths = [tmp_path / f"{letter}.png" for letter in "abcde"]
    for path in paths:
        Image.fromarray(np.zeros((16, 16), np.uint8)).save(path)
    assert "Say so with --at" in refused("last-frame", *paths)


def test_files_in_the_wrong_order_are_refused(tmp_path: Path) -> None:
    paths = [tmp_path / f"2015052204{minute:02d}.png" for minute in (30, 24, 18, 12, 6)]
    for path in paths:
        Image.fromarray(np.zeros((16, 16), np.uint8)).save(path)
    assert "oldest first" in refused("last-frame", *paths)


def test_a_picture_in_colour_is_refused(tmp_path: Path) -> None:
    paths = [tmp_path / f"{letter}.png" for letter in "abcde"]
    for path in paths:
        Image.fromarray(np.zeros((16, 16, 3), np.uint8)).save(path)
    assert "8-bit grey PNG" in refused("last-frame", *paths, "--at", "2015-05-22 04:30")
