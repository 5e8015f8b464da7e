"""An archive in the HKO-7 layout comes in whole, whatever is wrong with some of its files and whoever kills us."""

from __future__ import annotations

import datetime as dt
import json
import os
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import CliRunner, Result

from data_pipeline import archive_layout as layout
from data_pipeline.archive_plan import make_plan
from data_pipeline.ingest import command
from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.store import check, open_store
from nowcastlab.units import valid_pixels

SIZE = 20
DAYS = [dt.date(2014, 6, 1) + dt.timedelta(days=i) for i in range(4)]


def make_archive(root: Path, days: list[dt.date] = DAYS) -> Path:
    """Whole days of 240 frames, with masks, day lists and an exclusion map."""
    rng = np.random.default_rng(0)
    boundary = np.zeros((SIZE, SIZE), bool)
    boundary[:3] = True
    exclusion = layout.ExclusionMap(np.eye(SIZE, dtype=bool), boundary)
    root.mkdir()
    layout.write_exclusion(root, exclusion)
    for split, chosen in (("train", days[:-2]), ("valid", days[-2:-1]), ("test", days[-1:])):
        path = layout.day_list_path(root, split, name="small")
        layout.write_day_list(path, {day: float(day.day) for day in chosen})
    for day in days:
        layout.frames_folder(root, day).mkdir(parents=True)
        layout.masks_folder(root, day).mkdir(parents=True)
        for minutes in layout.first_minute(day) + np.arange(0, 1440, 6):
            frame = rng.integers(0, 256, (SIZE, SIZE), np.uint8)
            cv2.imwrite(str(layout.frame_path(root, minutes)), frame)
            mask = valid_pixels(frame, exclusion.excluded)
            layout.mask_path(root, minutes).write_bytes(layout.encode_mask(mask))
    return root


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def problems(store: Path) -> list[tuple[str, str]]:
    lines = store.with_name(store.name + ".problems.jsonl").read_text().splitlines()
    return sorted((entry["kind"], entry["detail"]) for entry in map(json.loads, lines))


def at(day: dt.date, hours: int, minutes: int) -> int:
    return layout.first_minute(day) + 60 * hours + minutes


def huge_png(path: Path) -> None:
    """A valid 60-byte PNG whose header claims 60,000 x 60,000 pixels."""

    def part(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", zlib.compress(b"")) + part(b"IEND", b"")
    )


def test_a_whole_archive_comes_in_to_the_byte(tmp_path: Path, ray_address: str) -> None:
    archive, target = make_archive(tmp_path / "archive"), tmp_path / "s.zarr"
    result = run(archive, target)
    assert result.exit_code == 0, result.output
    assert "No problems." in result.output
    store = open_store(str(target))
    assert [(day.date, day.split, day.gauge_mm, day.frames) for day in store.days] == [
        (DAYS[0], "train", 1.0, 240),
        (DAYS[1], "train", 2.0, 240),
        (DAYS[2], "valid", 3.0, 240),
        (DAYS[3], "test", 4.0, 240),
    ]
    assert store.excluded.sum() == 3 * SIZE + (SIZE - 3)  # three rows, and the diagonal below them
    for day in DAYS:
        minutes, pixels = store.read_day(day)
        for stamp, frame in zip(minutes, pixels, strict=True):
            np.testing.assert_array_equal(frame, cv2.imread(str(layout.frame_path(archive, stamp)), -1))
    assert check(str(target)) == []


def test_every_problem_is_listed_and_none_is_fatal(tmp_path: Path, ray_address: str) -> None:
    archive, target = make_archive(tmp_path / "archive"), tmp_path / "s.zarr"
    day = DAYS[0]

    def frame(hours: int, minutes: int) -> Path:
        return layout.frame_path(archive, at(day, hours, minutes))

    frame(1, 0).unlink()
    frame(2, 0).write_bytes(frame(2, 0).read_bytes()[:-40])
    cv2.imwrite(str(frame(3, 0)), np.zeros((SIZE, SIZE + 1), np.uint8))
    cv2.imwrite(str(frame(4, 0)), np.zeros((SIZE, SIZE, 3), np.uint8))
    cv2.imwrite(str(frame(5, 0)), np.zeros((SIZE, SIZE), np.uint16))
    frame(6, 0).write_bytes(b"not a picture")
    huge_png(frame(7, 0))
    spoilt = bytearray(frame(8, 0).read_bytes())
    spoilt[60] ^= 4
    frame(8, 0).write_bytes(spoilt)
    frame(9, 54).rename(frame(9, 55))  # off the grid, its slot free
    layout.mask_path(archive, at(day, 9, 54)).rename(layout.mask_path(archive, at(day, 9, 55)))
    frame(10, 1).write_bytes(frame(10, 0).read_bytes())  # off the grid, its slot taken
    (layout.frames_folder(archive, day) / "readme.txt").write_text("hello")
    layout.mask_path(archive, at(day, 11, 0)).write_bytes(b"not zlib")
    wrong = np.ones((SIZE, SIZE), bool)
    layout.mask_path(archive, at(day, 12, 0)).write_bytes(layout.encode_mask(wrong))
    layout.mask_path(archive, at(day, 13, 0)).unlink()
    lists = layout.day_list_path(archive, "test", name="small")
    lists.write_text(lists.read_text() + "20140701, 3.0\n")  # a listed day without frames
    extra = layout.frame_path(archive, at(dt.date(2014, 6, 20), 0, 0))
    extra.parent.mkdir(parents=True)
    cv2.imwrite(str(extra), np.zeros((SIZE, SIZE), np.uint8))  # a day no list names

    result = run(archive, target)

    assert result.exit_code == 0, result.output
    found = problems(target)
    bad = {detail for kind, detail in found if kind == "bad-frame"}
    assert bad == {
        "truncated: the file ends before its end mark",
        "the image is 20x21, not 20x20",
        "the image is 8-bit colour, not 8-bit grey",
        "the image is 16-bit grey, not 8-bit grey",
        "not a PNG file",
        "the image is 60000x60000, not 20x20",
        "damaged: part IDAT fails its checksum",
    }
    missing = {detail for kind, detail in found if kind == "missing-frame"}
    assert missing == {f"2014-06-01 {hour:02}:00" for hour in range(1, 9)}
    assert [kind for kind, _ in found if kind not in ("bad-frame", "missing-frame")] == [
        "bad-mask",
        "bad-mask",
        "mask-disagrees",
        "missing-day",
        "off-grid",
        "same-slot",
        "stray-file",
        "unlisted-day",
    ]
    for word in ("1 x off-grid", "7 x bad-frame", "... and 2 more", "RAD140601095500.png", "problems.jsonl"):
        assert word in result.output
    store = open_store(str(target))
    assert [day.frames for day in store.days] == [232, 240, 240, 240]
    assert at(day, 9, 55) in store.minutes()


def test_strict_stops_at_the_first_problem_and_names_it(tmp_path: Path, ray_address: str) -> None:
    archive, target = make_archive(tmp_path / "archive", DAYS[:3]), tmp_path / "s.zarr"
    layout.frame_path(archive, at(DAYS[1], 0, 0)).write_bytes(b"not a picture")
    result = run(archive, target, "--strict")
    assert isinstance(result.exception, StoreError)
    assert "--strict: bad-frame: radarPNG/2014/06/02/RAD140602000000.png: not a PNG file" in str(result.exception)
    assert DAYS[1] not in {day.date for day in open_store(str(target)).days}


def test_killed_at_any_moment_and_run_again_it_ends_with_the_same_digest(tmp_path: Path, ray_address: str) -> None:
    days = [DAYS[0] + dt.timedelta(days=i) for i in range(9)]
    archive = make_archive(tmp_path / "archive", days)
    layout.frame_path(archive, at(days[1], 0, 6)).unlink()  # one problem, to be listed once
    undisturbed, target = tmp_path / "undisturbed.zarr", tmp_path / "killed.zarr"
    assert run(archive, undisturbed).exit_code == 0
    rng = np.random.default_rng(7)
    arguments = [sys.executable, "-m", "data_pipeline", "ingest", str(archive), str(target)]
    environment = {**os.environ, "RAY_ADDRESS": ray_address}

    def committed() -> int:
        return len(open_store(str(target)).days) if target.exists() else -1

    kills = 0
    for wanted in (-1, 1, 4, 6):  # once before there is a store, then with that many days in it
        process = subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and committed() < wanted:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.2))
        if process.poll() is None:
            kills += 1
            process.kill()
        process.wait()
        if target.exists():
            store = open_store(str(target))  # what a reader sees is whole, at every moment
            assert all(len(store.read_day(day.date)[0]) == day.frames for day in store.days)

    assert kills >= 3
    finished = subprocess.run(arguments, env=environment, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert "going on with the rest" in finished.stdout
    assert open_store(str(target)).digest == open_store(str(undisturbed)).digest
    assert check(str(target)) == []
    assert problems(target) == problems(undisturbed) == [("missing-frame", "2014-06-02 00:06")]


def test_a_folder_that_is_no_archive_says_what_is_expected(tmp_path: Path) -> None:
    result = run(tmp_path, tmp_path / "s.zarr")
    assert isinstance(result.exception, StoreError)
    assert "has no folder radarPNG/" in str(result.exception)


def test_a_day_in_two_splits_is_refused(tmp_path: Path) -> None:
    archive = make_archive(tmp_path / "archive", DAYS[:3])
    layout.write_day_list(layout.day_list_path(archive, "valid", name="small"), {DAYS[0]: 1.0})
    result = run(archive, tmp_path / "s.zarr")
    assert "2014-06-01 is listed for train and for valid" in str(result.exception)
    assert not (tmp_path / "s.zarr").exists()


# --- what is refused before a frame is decoded -----------------------------------------------------------------------


def test_a_folder_given_for_its_lists_that_has_none_is_refused(tmp_path: Path) -> None:
    archive, lists = make_archive(tmp_path / "archive", DAYS[:3]), tmp_path / "lists"
    lists.mkdir()
    (lists / "hko7_rainy_train.txt").write_text("20140601, 1.0\n")  # almost
    result = run(archive, tmp_path / "s.zarr", "--lists", lists)
    assert isinstance(result.exception, StoreError)
    assert f"{lists} has no list of days: --lists looks for NAME_rainy_{{train,valid,test}}_days.txt in it" in str(
        result.exception
    )
    assert not (tmp_path / "s.zarr").exists()


def test_without_a_map_the_grid_is_the_frames_own_whatever_the_first_one_is(tmp_path: Path) -> None:
    archive = make_archive(tmp_path / "archive", DAYS[:3])
    layout.frame_path(archive, at(DAYS[0], 0, 0)).write_bytes(b"not a picture")
    huge_png(layout.frame_path(archive, at(DAYS[0], 0, 6)))
    cv2.imwrite(str(layout.frame_path(archive, at(DAYS[0], 0, 12))), np.zeros((SIZE, SIZE + 1), np.uint8))
    assert make_plan(archive, lists=None, exclude=None, size=None).excluded.any()  # the map is not refused for them
    (archive / layout.EXCLUSION_FILE).unlink()
    plan = make_plan(archive, lists=None, exclude=None, size=None)
    assert plan.excluded.shape == (SIZE, SIZE)
    assert not plan.excluded.any()


@pytest.mark.parametrize("by", ["size", "map"])
def test_a_grid_that_no_frame_has_is_refused_before_anything_is_written(tmp_path: Path, by: str) -> None:
    archive = make_archive(tmp_path / "archive", DAYS[:3])
    if by == "map":
        other = np.zeros((30, 30), bool)
        layout.write_exclusion(archive, layout.ExclusionMap(other, other))
        asked = f"the exclusion map {archive / layout.EXCLUSION_FILE} is 30x30. Give the map made for them"
    else:
        (archive / layout.EXCLUSION_FILE).unlink()
        asked = "`--size` is 30. Leave --size out to take theirs."
    result = run(archive, tmp_path / "s.zarr", *(("--size", 30) if by == "size" else ()))
    assert isinstance(result.exception, ConfigError)
    assert f"The frames of {archive} are 20x20, but {asked}" in str(result.exception)
    assert not (tmp_path / "s.zarr").exists()


def test_an_archive_without_one_frame_that_can_be_read_is_refused_and_the_first_named(tmp_path: Path) -> None:
    archive = make_archive(tmp_path / "archive", DAYS[:3])
    for path in (archive / layout.FRAMES_FOLDER).rglob("*.png"):
        path.write_bytes(b"not a picture")
    result = run(archive, tmp_path / "s.zarr")
    assert isinstance(result.exception, StoreError)
    assert "can be read. The first, radarPNG/2014/06/01/RAD140601000000.png: not a PNG file." in str(result.exception)
    assert not (tmp_path / "s.zarr").exists()


def test_a_url_to_write_to_is_refused_and_no_folder_is_made_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = make_archive(tmp_path / "archive", DAYS[:3])
    monkeypatch.chdir(tmp_path)
    result = run(archive, "s3://bucket/s.zarr")
    assert result.exit_code == 2
    assert "s3://bucket/s.zarr is not a local path. Write to one, then copy the folder." in result.output
    assert list(tmp_path.iterdir()) == [archive]
