"""Names and side files of the archive, checked against the official ones where they are at hand."""

from __future__ import annotations

import datetime as dt
import io
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from data_pipeline import archive_layout as layout
from nowcastlab.errors import StoreError
from nowcastlab.stamps import datetime_from_minutes, minutes_from_datetime


def test_a_frame_is_named_by_its_minute() -> None:
    minutes = minutes_from_datetime(dt.datetime(2015, 6, 21, 9, 55))
    assert layout.frame_path(Path("a"), minutes) == Path("a/radarPNG/2015/06/21/RAD150621095500.png")
    assert layout.mask_path(Path("a"), minutes) == Path("a/radarPNG_mask/2015/06/21/RAD150621095500.mask")


@pytest.mark.parametrize("minutes", [20_000_000, 24_000_000, 24_000_005])
def test_a_name_gives_its_stamp_back(minutes: int) -> None:
    assert layout.minutes_of(layout.frame_path(Path(), minutes).name) == minutes
    assert layout.minutes_of(layout.mask_path(Path(), minutes).name) == minutes


@pytest.mark.parametrize(
    "name",
    [
        "RAD150230000000.png",  # no such day
        "RAD150201240000.png",  # no such hour
        "RAD150201000030.png",  # seconds
        "RAD15020100000.png",
        "RAD150201000000.jpg",
        "xRAD150201000000.png",
        "RAD150201000000.png.part",
    ],
)
def test_a_name_that_holds_no_stamp_is_refused(name: str) -> None:
    with pytest.raises(StoreError, match=r"holds no stamp; expected RADyymmddHHMM00\.png"):
        layout.minutes_of(name)


def test_a_day_begins_at_its_first_minute() -> None:
    date = dt.date(2014, 5, 1)
    first = layout.first_minute(date)
    assert datetime_from_minutes(first) == dt.datetime(2014, 5, 1)
    assert layout.date_of(first) == layout.date_of(first + 1439) == date


def test_a_day_list_reads_back_in_order_of_date(tmp_path: Path) -> None:
    path = layout.day_list_path(tmp_path, "valid", name="mine")
    layout.write_day_list(path, {dt.date(2014, 5, 2): 12.34, dt.date(2014, 5, 1): 0.1})
    assert path.read_text() == "20140501, 0.1\n20140502, 12.3\n"
    assert layout.read_day_list(path) == {dt.date(2014, 5, 1): 0.1, dt.date(2014, 5, 2): 12.3}
    assert layout.find_day_lists(tmp_path) == {"valid": path}


@pytest.mark.parametrize("line", ["20140231, 1.0", "20140501 1.0", "20140501, Trace", "20140501, -1", "20140501, nan"])
def test_a_day_list_names_the_line_it_cannot_use(tmp_path: Path, line: str) -> None:
    path = tmp_path / "x_rainy_test_days.txt"
    path.write_text(f"20140430, 2.0\n{line}\n")
    with pytest.raises(StoreError, match="line 2: cannot use"):
        layout.read_day_list(path)


def test_a_day_listed_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x_rainy_test_days.txt"
    path.write_text("20140430, 2.0\n20140430, 3.0\n")
    with pytest.raises(StoreError, match="listed twice"):
        layout.read_day_list(path)


def test_two_lists_of_one_split_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        layout.write_day_list(layout.day_list_path(tmp_path, "train", name=name), {})
    with pytest.raises(StoreError, match="2 day lists for train"):
        layout.find_day_lists(tmp_path)


def test_a_mask_reads_back() -> None:
    valid = np.random.default_rng(0).random((7, 11)) < 0.5
    assert np.array_equal(layout.decode_mask(layout.encode_mask(valid), (7, 11)), valid)


def test_a_mask_inflates_no_further_than_its_grid() -> None:
    bomb = zlib.compress(bytes(50_000_000))
    with pytest.raises(StoreError, match=r"more than 77 bytes; a 7x11 grid needs 77"):
        layout.decode_mask(bomb, (7, 11))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"not zlib", "not zlib data"),
        (layout.encode_mask(np.ones((7, 11), bool))[:-2], "truncated"),
        (layout.encode_mask(np.ones((7, 10), bool)), "holds 70 bytes"),
        (zlib.compress(bytes([2]) * 77), "holds the byte 2"),
    ],
)
def test_a_damaged_mask_says_what_is_wrong(data: bytes, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        layout.decode_mask(data, (7, 11))


def test_the_exclusion_map_reads_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    exclusion = layout.ExclusionMap(rng.random((5, 6)) < 0.3, rng.random((5, 6)) < 0.3)
    layout.write_exclusion(tmp_path, exclusion)
    read = layout.read_exclusion(tmp_path / "mask_dat.npz")
    assert np.array_equal(read.outlier, exclusion.outlier)
    assert np.array_equal(read.out_boundary, exclusion.out_boundary)


def test_the_official_exclusion_map_reads_as_documented(shared_data: Path) -> None:
    exclusion = layout.read_exclusion(shared_data / "hko7" / "mask_dat.npz")
    counts = exclusion.outlier.sum(), exclusion.out_boundary.sum(), (~exclusion.excluded).sum()
    assert counts == (2824, 50260, 177316)


def test_the_official_day_lists_read_as_documented(shared_data: Path) -> None:
    lists = layout.find_day_lists(shared_data / "hko7")
    assert {split: len(layout.read_day_list(path)) for split, path in lists.items()} == {
        "train": 812,
        "valid": 50,
        "test": 131,
    }


def test_an_exclusion_map_that_claims_a_huge_shape_is_refused_unread(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": (1_000_000, 1_000_000)}
    )
    path = tmp_path / "mask_dat.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("outlier", "out_boundary", "exclude"):
            archive.writestr(f"{name}_mask.npy", header.getvalue())
    with pytest.raises(StoreError, match=r"shape \(1000000, 1000000\), not a map"):
        layout.read_exclusion(path)


def test_an_exclusion_map_whose_union_is_wrong_is_refused(tmp_path: Path) -> None:
    zero, one = np.zeros((3, 3), np.uint8), np.ones((3, 3), np.uint8)
    path = tmp_path / "mask_dat.npz"
    np.savez(path, outlier_mask=zero, out_boundary_mask=zero, exclude_mask=one)
    with pytest.raises(StoreError, match="not the union"):
        layout.read_exclusion(path)


def test_a_missing_exclusion_map_is_a_message(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="Cannot read the exclusion map"):
        layout.read_exclusion(tmp_path / "mask_dat.npz")
