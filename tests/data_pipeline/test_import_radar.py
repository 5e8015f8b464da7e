"""`import`: a user's own radar comes in from every kind of file, or says what is missing."""

from __future__ import annotations

import datetime as dt
import json
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from PIL import Image

from data_pipeline.import_radar import command
from data_pipeline.radar_source import stamp_of
from data_pipeline.regrid import Regrid, known_units, part_of
from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.store import open_store
from nowcastlab.units import mmh_from_pixel, pixel_from_dbz, pixel_from_mmh

START = np.datetime64("2021-07-03T23:40")
TIMES = START + np.arange(4) * np.timedelta64(10, "m")  # the last two are the next day
MINUTES = TIMES.astype("datetime64[m]").astype(np.int64)


def run(source: Path, store: Path, *options: str) -> dict[str, Any]:
    arguments = [str(source), str(store), "--km-per-pixel", "1", "--json", *options]
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def stored(path: Path) -> np.ndarray:
    return open_store(str(path)).read(MINUTES).pixels


@pytest.fixture
def dbz() -> np.ndarray:
    """Four frames of 6 x 8 with north-south structure."""
    rng = np.random.default_rng(0)
    return rng.uniform(0, 50, (4, 6, 8)) * np.linspace(0.2, 1, 6)[:, None]


def dataset(values: np.ndarray, **attributes: str) -> xr.Dataset:
    return xr.Dataset(
        {"DBZH": (("time", "y", "x"), values, attributes), "quality": (("time", "y", "x"), values * 0)},
        coords={"time": TIMES.astype("datetime64[ns]"), "y": np.arange(6)[::-1] * 1000.0, "x": np.arange(8) * 1000.0},
    )


# --- the two real sequences ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "days"), [("fmi_20160928", 1), ("mch_20160711", 2)])
def test_a_real_sequence_comes_in_with_its_mask_and_across_midnight(
    shared_data: Path, tmp_path: Path, name: str, days: int
) -> None:
    source = shared_data / "radar" / f"{name}.npz"
    summary = run(source, tmp_path / "s.zarr", "--units", "pixel")
    store = open_store(str(tmp_path / "s.zarr"))
    with np.load(source, allow_pickle=False) as archive:
        minutes = archive["times"].astype("datetime64[m]").astype(np.int64)
        pixels, present = store.read(minutes)
        assert present.all()
        assert np.array_equal(pixels, archive["frames"])
        assert np.array_equal(store.excluded, archive["mask"] == 0)
    assert (summary["frames"], summary["days"], summary["interval_minutes"]) == (40, days, 5)
    assert len(store.minutes("test")) == 40


# --- what xarray opens -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["netcdf 3", "netcdf 4", "hdf5", "zarr"])
def test_a_file_that_xarray_opens_comes_in(dbz: np.ndarray, tmp_path: Path, kind: str) -> None:
    source = tmp_path / {"zarr": "radar.zarr", "hdf5": "radar.h5"}.get(kind, "radar.nc")
    data = dataset(dbz, units="dBZ")
    if kind == "zarr":
        data.to_zarr(source, consolidated=False)
    elif kind == "netcdf 3":
        data.to_netcdf(source, engine="scipy")
    else:
        pytest.importorskip("h5py", reason="h5netcdf reads and writes through h5py")
        data.to_netcdf(source, engine="h5netcdf")
    summary = run(source, tmp_path / "s.zarr", "--variable", "DBZH")
    assert summary["units"] == "dBZ"
    assert np.array_equal(stored(tmp_path / "s.zarr"), pixel_from_dbz(dbz))


def test_rows_that_grow_northward_are_turned_and_axes_put_in_order(dbz: np.ndarray, tmp_path: Path) -> None:
    upside_down = dataset(dbz).isel(y=slice(None, None, -1)).transpose("x", "time", "y")
    upside_down.to_netcdf(tmp_path / "radar.nc", engine="scipy")
    summary = run(tmp_path / "radar.nc", tmp_path / "s.zarr", "--variable", "DBZH", "--units", "dBZ")
    assert np.array_equal(stored(tmp_path / "s.zarr"), pixel_from_dbz(dbz))
    assert "north is up" in summary["notes"][0]


def test_a_further_dimension_must_be_picked_from(dbz: np.ndarray, tmp_path: Path) -> None:
    both = xr.concat([dataset(dbz - 5), dataset(dbz)], dim="elevation")
    both.to_netcdf(tmp_path / "radar.nc", engine="scipy")
    options = ("--variable", "DBZH", "--units", "dBZ")
    with pytest.raises(ConfigError, match=r"elevation=2.*--select NAME=POSITION"):
        run(tmp_path / "radar.nc", tmp_path / "s.zarr", *options)
    run(tmp_path / "radar.nc", tmp_path / "s.zarr", *options, "--select", "elevation=1")
    assert np.array_equal(stored(tmp_path / "s.zarr"), pixel_from_dbz(dbz))


def test_a_wrong_variable_lists_those_there_are(dbz: np.ndarray, tmp_path: Path) -> None:
    dataset(dbz).to_netcdf(tmp_path / "radar.nc", engine="scipy")
    for options in (["--variable", "rain"], []):
        with pytest.raises(ConfigError, match="Pass --variable with one of: DBZH, quality"):
            run(tmp_path / "radar.nc", tmp_path / "s.zarr", *options)


def test_a_file_that_is_no_radar_at_all_is_an_error_not_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "radar.nc").write_bytes(b"not a file xarray knows")
    with pytest.raises(StoreError, match="xarray cannot open"):
        run(tmp_path / "radar.nc", tmp_path / "s.zarr")


# --- folders of frames -----------------------------------------------------------------------------------------------


def test_a_folder_of_png_frames_comes_in_by_the_stamps_in_their_names(tmp_path: Path) -> None:
    frames = np.random.default_rng(1).integers(0, 256, (4, 5, 5), dtype=np.uint8)
    folder = tmp_path / "frames"
    folder.mkdir()
    for time, frame in zip(TIMES.tolist(), frames, strict=True):
        Image.fromarray(frame).save(folder / f"radar7_{time:%Y%m%d-%H%M}_max.png")
    Image.fromarray(frames[0]).save(folder / "legend.png")
    summary = run(folder, tmp_path / "s.zarr", "--units", "pixel", "--pattern", "%Y%m%d-%H%M")
    assert np.array_equal(stored(tmp_path / "s.zarr"), frames)
    assert summary["notes"] == ["1 files without a stamp in their name were left out."]


def test_bytes_of_another_encoding_are_scaled_and_their_missing_value_kept_out(tmp_path: Path) -> None:
    """dBZ = stored / 2 - 32, and 255 is not known, as in some national composites."""
    frames = np.random.default_rng(1).integers(0, 255, (4, 5, 5), dtype=np.uint8)
    frames[0, 2, 2] = 255
    frames[:, 4, 4] = 255
    for time, frame in zip(TIMES.tolist(), frames, strict=True):
        np.savez(tmp_path / f"{time:%Y%m%d%H%M}.npz", frame=frame)
    options = (
        "--units",
        "dBZ",
        "--scale",
        "0.5",
        "--offset",
        "-32",
        "--missing",
        "255",
        "--exclude-missing-above",
        "0.5",
    )
    summary = run(tmp_path, tmp_path / "s.zarr", *options)
    expected = pixel_from_dbz(frames * 0.5 - 32)
    expected[frames == 255] = 0
    assert np.array_equal(stored(tmp_path / "s.zarr"), expected)
    assert summary["missing_pixels"] == 5
    # missing in a quarter of the frames is borne, missing always is not
    assert np.argwhere(open_store(str(tmp_path / "s.zarr")).excluded).tolist() == [[4, 4]]


def test_pixels_are_scaled_too(tmp_path: Path) -> None:
    """Levels stored as half of HKO-7's, say, to fit seven bits."""
    half = np.random.default_rng(2).integers(0, 128, (4, 5, 5), dtype=np.uint8)
    source = save_sequence(tmp_path / "s.npz", MINUTES.tolist(), half)
    run(source, tmp_path / "s.zarr", "--units", "pixel", "--scale", "2")
    assert np.array_equal(stored(tmp_path / "s.zarr"), half * 2)


def test_stamps_are_found_in_names_only_where_they_stand_alone() -> None:
    minute = int((dt.datetime(2021, 7, 3, 4, 5) - dt.datetime(1970, 1, 1)) / dt.timedelta(minutes=1))
    assert stamp_of("RAD_NL25_202107030405", "%Y%m%d%H%M") == minute
    assert stamp_of("a.2021.184.0405", "%Y.%j.%H%M") == minute
    assert stamp_of("99202107030405", "%Y%m%d%H%M") is None
    assert stamp_of("202113990405", "%Y%m%d%H%M") is None
    with pytest.raises(ConfigError, match="should be made of %Y"):
        stamp_of("x", "%Q")


def test_a_folder_without_stamps_says_which_pattern_it_looked_for(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((2, 2), np.uint8)).save(tmp_path / "a.png")
    with pytest.raises(StoreError, match=r"form %Y%m%d%H%M in its name \(1 files, for example a.png\)"):
        run(tmp_path, tmp_path / "s.zarr")


def test_files_that_claim_to_be_huge_are_refused_unread(tmp_path: Path) -> None:
    header = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 0, 0, 0, 0)
    chunk = struct.pack(">I", 13) + b"IHDR" + header + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    png = tmp_path / "png" / "202107030405.png"
    png.parent.mkdir()
    png.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk + b"\0\0\0\0IEND\xaeB`\x82")
    with pytest.raises(StoreError, match="202107030405"):
        run(png.parent, tmp_path / "s.zarr", "--units", "pixel")

    npy = b"{'descr': '|u1', 'fortran_order': False, 'shape': (90000, 480, 480), }\n"
    with zipfile.ZipFile(tmp_path / "huge.npz", "w") as archive:
        archive.writestr("frames.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(npy)) + npy)
    with pytest.raises(StoreError, match="over 4 GB"):
        run(tmp_path / "huge.npz", tmp_path / "s.zarr", "--units", "pixel")


def test_an_array_of_objects_is_never_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "s.npz", frames=np.array([[[{}]]], dtype=object), times=np.array(["2021-07-03T00:00"]))
    with pytest.raises(StoreError, match="allow_pickle=False"):
        run(tmp_path / "s.npz", tmp_path / "s.zarr", "--units", "pixel")


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (np.array([25_920_000.0, 25_920_010.0]), "The times are float64: give ISO text, datetimes, or whole minutes"),
        (np.array(["2021-07-03T00:00", "NaT"], "datetime64[s]"), "1 of 2 frames have no time at all"),
        (np.array(["2021-07-03T00:00", "noon"]), "Cannot read the times as ISO dates"),
        (MINUTES[:2] * 60, "not between 1950 and 2100. It looks like seconds since 1970. Give datetimes, ISO text, or"),
        (MINUTES[:2] * 60_000, f"the time {MINUTES[0] * 60_000} is not .* It looks like milliseconds since 1970"),
        (np.array([202107032340, 202107032350]), "It looks like a date written as %Y%m%d%H%M. Give datetimes"),
        (np.array([0, 2**63], np.uint64), f"the time {2**63} is not between 1950 and 2100. Give datetimes"),
    ],
)
def test_times_that_are_none_are_refused(tmp_path: Path, times: np.ndarray, message: str) -> None:
    np.savez(tmp_path / "s.npz", frames=np.zeros((2, 3, 3)), times=times)
    with pytest.raises(StoreError, match=message):
        run(tmp_path / "s.npz", tmp_path / "s.zarr", "--units", "dBZ")


def test_whole_minutes_before_1970_are_times_like_any_other(tmp_path: Path) -> None:
    source = save_sequence(tmp_path / "s.npz", [-20, -10], np.zeros((2, 3, 3)))
    run(source, tmp_path / "s.zarr", "--units", "dBZ")
    assert [day.date for day in open_store(str(tmp_path / "s.zarr")).days] == [dt.date(1969, 12, 31)]


# --- units and grids -------------------------------------------------------------------------------------------------


def test_units_that_are_not_stated_are_asked_for() -> None:
    assert known_units(None, "mm h-1") == "mm/h"
    assert known_units("pixel", "dBZ") == "pixel"
    with pytest.raises(ConfigError, match="The source does not state its units: pass --units dBZ, mm/h or pixel"):
        known_units(None, None)
    with pytest.raises(ConfigError, match="The source says 'mm'"):
        known_units(None, "mm")


def test_values_that_are_no_bytes_are_not_taken_for_pixels(dbz: np.ndarray, tmp_path: Path) -> None:
    dataset(dbz).to_netcdf(tmp_path / "radar.nc", engine="scipy")
    with pytest.raises(StoreError, match="whole numbers from 0 to 255"):
        run(tmp_path / "radar.nc", tmp_path / "s.zarr", "--variable", "DBZH", "--units", "pixel")


@pytest.mark.parametrize("factors", [("nan", "0"), ("0", "1"), ("1", "inf")])
def test_factors_that_leave_nothing_of_the_values_are_refused(
    dbz: np.ndarray, tmp_path: Path, factors: tuple[str, str]
) -> None:
    dataset(dbz, units="dBZ").to_netcdf(tmp_path / "radar.nc")
    scale, offset = factors
    with pytest.raises(ConfigError, match=re.escape(f"{scale} * stored + {offset}: --scale must be")):
        run(tmp_path / "radar.nc", tmp_path / "s.zarr", "--variable", "DBZH", "--scale", scale, "--offset", offset)
    assert not (tmp_path / "s.zarr").exists()


def test_shrinking_keeps_the_water() -> None:
    rate = np.random.default_rng(4).gamma(0.3, 8.0, (90, 90))
    part, grid = part_of((90, 90), size=40)
    pixels, known = Regrid(units="mm/h", part=part, grid=grid)(rate)
    assert known.all()
    # a byte is a rate to within 1%, at levels where there is one
    assert mmh_from_pixel(pixels).mean() == pytest.approx(rate.mean(), rel=0.02)


def test_unknown_pixels_do_not_dilute_their_neighbours() -> None:
    rate = np.full((4, 4), 10.0)
    rate[1, 0] = np.nan  # a quarter of the first new pixel
    rate[2:, 2:] = np.nan  # all of the last
    part, grid = part_of((4, 4), size=2)
    pixels, known = Regrid(units="mm/h", part=part, grid=grid)(rate)
    assert known.tolist() == [[True, True], [True, False]]
    assert pixels.tolist() == [[int(pixel_from_mmh(10.0))] * 2, [int(pixel_from_mmh(10.0)), 0]]


def test_size_takes_the_middle_square_and_crop_the_one_asked_for(dbz: np.ndarray, tmp_path: Path) -> None:
    dataset(dbz).to_netcdf(tmp_path / "radar.nc", engine="scipy")
    options = ("--variable", "DBZH", "--units", "dBZ")
    summary = run(tmp_path / "radar.nc", tmp_path / "middle.zarr", *options, "--size", "3")
    assert (summary["grid"], summary["km_per_pixel"]) == ([3, 3], 2.0)
    run(tmp_path / "radar.nc", tmp_path / "crop.zarr", *options, "--crop", "1,3,4")
    assert np.array_equal(stored(tmp_path / "crop.zarr"), pixel_from_dbz(dbz[:, 1:5, 3:7]))
    with pytest.raises(ConfigError, match="leaves the source's grid of 6 x 8"):
        run(tmp_path / "radar.nc", tmp_path / "no.zarr", *options, "--crop", "4,4,4")


# --- stamps, splits, resuming ----------------------------------------------------------------------------------------


def save_sequence(path: Path, minutes: list[int], frames: np.ndarray) -> Path:
    np.savez(path, frames=frames, times=np.array(minutes, np.int64))
    return path


def test_stamps_off_the_grid_twice_there_or_all_unknown_are_reported(tmp_path: Path) -> None:
    frames = np.full((5, 3, 3), 20.0)
    frames[4] = np.nan
    start = 1440 * 18_000
    source = save_sequence(tmp_path / "s.npz", [start, start + 10, start + 21, start + 10, start + 30], frames)
    summary = run(source, tmp_path / "s.zarr", "--units", "dBZ", "--interval-minutes", "10")
    assert open_store(str(tmp_path / "s.zarr")).minutes().tolist() == [start, start + 10, start + 21]
    assert "1 of 5 stamps are off the 10-minute grid" in summary["notes"][0]
    assert sorted(problem["what"] for problem in summary["problems"]) == [
        "has no known value at all: left out as a missing frame",
        "is there twice: left out",
    ]


def test_a_frame_that_cannot_be_read_is_left_out_and_the_rest_comes_in(tmp_path: Path) -> None:
    folder = tmp_path / "frames"
    folder.mkdir()
    for minute in (0, 10, 20):
        Image.fromarray(np.full((4, 4), 90, np.uint8)).save(folder / f"2021070300{minute:02}.png")
    broken = folder / "202107030000.png"
    broken.write_bytes(broken.read_bytes()[:50])
    summary = run(folder, tmp_path / "s.zarr", "--units", "pixel")
    assert summary["frames"] == 2
    assert [problem["stamp"] for problem in summary["problems"]] == ["2021-07-03 00:00"]


def test_an_archive_is_divided_in_time(tmp_path: Path) -> None:
    days = [18_000 + i for i in range(4)]
    source = save_sequence(tmp_path / "s.npz", [1440 * day for day in days], np.zeros((4, 2, 2)))
    first = dt.date(1970, 1, 1) + dt.timedelta(days=18_000)
    until = ["--train-until", f"{first + dt.timedelta(days=1)}", "--valid-until", f"{first + dt.timedelta(days=2)}"]
    run(source, tmp_path / "s.zarr", "--units", "mm/h", *until)
    assert [day.split for day in open_store(str(tmp_path / "s.zarr")).days] == ["train", "train", "valid", "test"]


def test_an_archive_whose_validation_ends_before_its_training_is_refused(tmp_path: Path) -> None:
    until = ["--train-until", "2023-06-30", "--valid-until", "2022-12-31"]
    arguments = [str(tmp_path / "s.npz"), str(tmp_path / "s.zarr"), "--km-per-pixel", "1", *until]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert "--train-until 2023-06-30 is after --valid-until 2022-12-31" in result.output


@pytest.mark.parametrize("spacing", ["nan", "inf", "0"])
def test_a_spacing_that_is_none_is_refused(tmp_path: Path, spacing: str) -> None:
    arguments = [str(tmp_path / "s.npz"), str(tmp_path / "s.zarr"), "--km-per-pixel", spacing]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert "Invalid value for '--km-per-pixel'" in result.output


def test_run_again_it_adds_what_is_new_and_refuses_what_is_other(tmp_path: Path) -> None:
    start = 1440 * 18_000
    frames = np.random.default_rng(5).uniform(0, 40, (2, 3, 3))
    options = ("--units", "dBZ", "--interval-minutes", "10", "--title", "mine")
    run(save_sequence(tmp_path / "one.npz", [start], frames[:1]), tmp_path / "s.zarr", *options)
    both = save_sequence(tmp_path / "both.npz", [start, start + 1440], frames)
    summary = run(both, tmp_path / "s.zarr", *options)
    assert (summary["days"], summary["days_written_now"]) == (2, 1)
    assert summary["digest"] == run(both, tmp_path / "at_once.zarr", *options)["digest"]
    with pytest.raises(StoreError, match="was begun with interval_minutes 10, now it is 5"):
        run(both, tmp_path / "s.zarr", "--units", "dBZ", "--interval-minutes", "5", "--title", "mine")


@pytest.mark.parametrize(
    ("corrected", "message"),
    [
        (["--units", "mm/h"], "begun with source_units dBZ, now it is mm/h"),
        (["--scale", "0.5"], "begun with source_scale 1.0, now it is 0.5"),
        (["--offset", "-32"], "begun with source_offset 0.0, now it is -32.0"),
        (["--missing", "255"], "begun with source_missing none, now it is 255.0"),
        (["--crop", "1,0,4"], "begun with source_crop [0, 0, 4, 4], now it is [1, 0, 4, 4]"),
        (["--variable", "filtered"], "begun with source_variable frames, now it is filtered"),
    ],
)
def test_run_again_with_values_read_otherwise_it_does_not_report_what_is_not_in_the_store(
    tmp_path: Path, corrected: list[str], message: str
) -> None:
    frames = np.random.default_rng(5).uniform(0, 40, (2, 6, 6))
    np.savez(tmp_path / "s.npz", frames=frames, filtered=frames / 2, times=MINUTES[:2])
    options = ("--units", "dBZ", "--crop", "0,0,4")
    digest = run(tmp_path / "s.npz", tmp_path / "s.zarr", *options)["digest"]
    with pytest.raises(StoreError, match=re.escape(message)):
        run(tmp_path / "s.npz", tmp_path / "s.zarr", *options, *corrected)  # of an option given twice the last counts
    assert run(tmp_path / "s.npz", tmp_path / "s.zarr", *options)["digest"] == digest


def test_another_position_of_a_further_dimension_is_not_added_to_a_store(dbz: np.ndarray, tmp_path: Path) -> None:
    both = xr.concat([dataset(dbz - 5), dataset(dbz)], dim="elevation")
    both.to_netcdf(tmp_path / "radar.nc", engine="scipy")
    options = ("--variable", "DBZH", "--units", "dBZ", "--select")
    run(tmp_path / "radar.nc", tmp_path / "s.zarr", *options, "elevation=0")
    with pytest.raises(StoreError, match="begun with source_position elevation=0, now it is elevation=1"):
        run(tmp_path / "radar.nc", tmp_path / "s.zarr", *options, "elevation=1")


def test_a_missing_value_that_is_no_number_can_be_put_on_record(tmp_path: Path) -> None:
    source = save_sequence(tmp_path / "s.npz", [0, 10], np.zeros((2, 2, 2)))
    run(source, tmp_path / "s.zarr", "--units", "dBZ", "--missing", "nan")
    assert open_store(str(tmp_path / "s.zarr")).attributes["source_missing"] == "nan"


# --- the command line ------------------------------------------------------------------------------------------------


def test_a_url_to_write_to_is_refused_and_no_folder_is_made_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = save_sequence(tmp_path / "s.npz", [0, 10], np.zeros((2, 2, 2)))
    result = CliRunner().invoke(command, [str(source), "s3://bucket/s.zarr", "--units", "dBZ", "--km-per-pixel", "1"])
    assert result.exit_code == 2
    assert "s3://bucket/s.zarr is not a local path. Write to one, then copy the folder." in result.output
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize(
    ("source", "option", "message"),
    [
        ("s.npz", ["--time", "t"], "--time is for what xarray opens"),
        ("s.npz", ["--select", "elevation=0"], "--select is for what xarray opens"),
        ("s.npz", ["--pattern", "%Y%m%d%H%M"], "--pattern is for folders"),
        ("frames", ["--select", "elevation=0"], "--select is for what xarray opens"),
        ("radar.nc", ["--pattern", "%Y"], "--pattern is for folders"),
    ],
)
def test_an_option_that_a_source_does_not_heed_is_refused(
    tmp_path: Path, source: str, option: list[str], message: str
) -> None:
    (tmp_path / "frames").mkdir()
    (tmp_path / "s.npz").touch()
    (tmp_path / "radar.nc").touch()
    arguments = [str(tmp_path / source), str(tmp_path / "s.zarr"), "--km-per-pixel", "1", *option]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_a_store_is_not_imported_into_a_store(tmp_path: Path) -> None:
    run(save_sequence(tmp_path / "s.npz", [0, 10], np.zeros((2, 2, 2))), tmp_path / "s.zarr", "--units", "dBZ")
    with pytest.raises(StoreError, match="is a nowcastlab store already"):
        run(tmp_path / "s.zarr", tmp_path / "t.zarr")
