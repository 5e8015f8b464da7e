"""What is written is read back; what was not committed is not seen; what was changed is noticed."""

from __future__ import annotations

import datetime as dt
import functools
import http.server
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from numpy.typing import NDArray

from nowcastlab.errors import ConfigError, CorruptStore, StoreError
from nowcastlab.store import Store, StoreWriter, check, open_store, uncommitted_shards

GRID = (12, 16)
DATES = [dt.date(2015, 5, 1), dt.date(2015, 5, 2), dt.date(2015, 5, 9)]


def midnight(date: dt.date) -> int:
    return (date - dt.date(1970, 1, 1)).days * 1440


def frames_of(date: dt.date, n: int) -> NDArray[np.uint8]:
    return np.random.default_rng(date.toordinal()).integers(0, 256, (n, *GRID), np.uint8)


SPLITS = {DATES[0]: "train", DATES[1]: "valid", DATES[2]: "test"}


def begin(
    path: Path,
    *,
    dates: list[dt.date] = DATES,
    title: str = "test",
    splits: dict[dt.date, str] = SPLITS,
    attributes: dict[str, object] | None = None,
) -> StoreWriter:
    excluded = np.zeros(GRID, bool)
    excluded[0] = True
    return StoreWriter.create(
        path,
        dates=dates,
        grid=GRID,
        interval_minutes=60,
        km_per_pixel=2.0,
        title=title,
        excluded=excluded,
        splits=splits,
        gauge_mm={DATES[0]: 1.5},
        attributes=attributes,
    )


def fill(writer: StoreWriter) -> None:
    for date in writer.missing:
        stamps = midnight(date) + 60 * np.arange(24)
        writer.commit(writer.write_day(date, stamps, frames_of(date, 24)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "small.zarr"
    with begin(path) as writer:
        fill(writer)
    return path


def test_frames_come_back_as_they_were_written(path: Path) -> None:
    store = open_store(str(path))
    for date in DATES:
        minutes, pixels = store.read_day(date)
        np.testing.assert_array_equal(minutes, midnight(date) + 60 * np.arange(24))
        np.testing.assert_array_equal(pixels, frames_of(date, 24))


def test_a_window_crosses_midnight_and_says_what_is_missing(path: Path) -> None:
    frames = open_store(str(path)).read(midnight(DATES[1]) + 60 * np.arange(22, 26))
    assert frames.present.tolist() == [True, True, False, False]
    np.testing.assert_array_equal(frames.pixels[:2], frames_of(DATES[1], 24)[22:])
    assert not frames.pixels[2:].any()


def test_a_frame_of_another_split_is_missing_to_who_reads_one_split(path: Path) -> None:
    store = open_store(str(path))
    stamps = midnight(DATES[0]) + 60 * np.arange(22, 26)  # two frames of a training day, two of a validation day
    assert store.read(stamps).present.all()
    frames = store.read(stamps, split="train")
    assert frames.present.tolist() == [True, True, False, False]
    np.testing.assert_array_equal(frames.pixels[:2], frames_of(DATES[0], 24)[22:])
    assert not frames.pixels[2:].any()
    with pytest.raises(ConfigError, match=r"'dev'\. The splits are"):
        store.read(stamps, split="dev")


def test_reading_into_given_memory_clears_what_is_missing(path: Path) -> None:
    out = np.full((2, *GRID), 7, np.uint8)
    frames = open_store(str(path)).read([midnight(DATES[2]) + 23 * 60, midnight(DATES[2]) + 24 * 60], out=out)
    assert frames.pixels is out
    assert not out[1].any()
    np.testing.assert_array_equal(out[0], frames_of(DATES[2], 24)[23])


def test_a_stamp_off_the_grid_keeps_its_own_time(tmp_path: Path) -> None:
    with begin(tmp_path / "s.zarr") as writer:
        stamps = midnight(DATES[0]) + np.array([0, 61, 179])  # 61 sits in the slot of 60, 179 in that of 180
        writer.commit(writer.write_day(DATES[0], stamps, frames_of(DATES[0], 3)))
    store = open_store(str(tmp_path / "s.zarr"))
    np.testing.assert_array_equal(store.minutes(), stamps)
    assert store.read(stamps).present.all()
    assert not store.read(midnight(DATES[0]) + np.array([60, 180])).present.any()
    np.testing.assert_array_equal(store.read_day(DATES[0])[1], frames_of(DATES[0], 3))


def test_splits_have_their_own_stamps(path: Path) -> None:
    store = open_store(str(path))
    assert [len(store.minutes(split)) for split in ("train", "valid", "test", "none", None)] == [24, 24, 24, 0, 72]
    assert [(day.split, day.gauge_mm) for day in store.days] == [("train", 1.5), ("valid", None), ("test", None)]
    with pytest.raises(ConfigError, match=r"'dev'\. The splits are: none, train, valid, test"):
        store.minutes("dev")


def test_xarray_shows_a_labelled_dataset(path: Path) -> None:
    dataset = xr.open_zarr(path)
    assert dict(dataset.sizes) == {"time": 72, "y": 12, "x": 16, "day": 3}
    assert dataset.attrs["Conventions"].startswith("CF-")
    assert dataset.time.values[25] == np.datetime64("2015-05-02T01:00")
    chosen = dataset.pixels.sel(time="2015-05-09T03:00")
    np.testing.assert_array_equal(chosen.values, frames_of(DATES[2], 24)[3])
    assert dataset.present.values.all()
    assert dataset.split.attrs["flag_meanings"] == "none train valid test"
    assert dataset.x.values.tolist() == [-15 + 2 * i for i in range(16)]


def test_what_is_not_committed_is_not_seen(tmp_path: Path) -> None:
    with begin(tmp_path / "s.zarr") as writer:
        writer.write_day(DATES[0], midnight(DATES[0]) + 60 * np.arange(24), frames_of(DATES[0], 24))
    store = open_store(str(tmp_path / "s.zarr"))
    assert len(store.minutes()) == 0
    assert store.days == ()
    assert not xr.open_zarr(tmp_path / "s.zarr").present.values.any()
    assert len(uncommitted_shards(store)) == 1
    assert check(str(tmp_path / "s.zarr")) == []


def test_writing_goes_on_with_the_days_that_are_missing(tmp_path: Path, path: Path) -> None:
    with begin(tmp_path / "s.zarr") as writer:
        stamps = midnight(DATES[1]) + 60 * np.arange(24)
        writer.commit(writer.write_day(DATES[1], stamps, frames_of(DATES[1], 24)))
    with begin(tmp_path / "s.zarr") as writer:
        assert writer.committed == (DATES[1],)
        fill(writer)
    assert open_store(str(tmp_path / "s.zarr")).digest == open_store(str(path)).digest


def test_days_may_be_added_at_the_end(tmp_path: Path, path: Path) -> None:
    for days in (DATES[:1], DATES):
        with begin(tmp_path / "s.zarr", dates=days) as writer:
            fill(writer)
    assert open_store(str(tmp_path / "s.zarr")).digest == open_store(str(path)).digest
    assert check(str(tmp_path / "s.zarr")) == []


def test_a_store_begun_otherwise_is_refused(path: Path) -> None:
    with pytest.raises(StoreError, match=r"begun with title test, now it is other"):
        begin(path, title="other")
    with pytest.raises(StoreError, match=r"Days can only be added after the last one"):
        begin(path, dates=[DATES[0], dt.date(2015, 5, 3)])


def test_days_made_otherwise_are_not_added_to_a_store_and_the_attribute_is_named(tmp_path: Path) -> None:
    begin(tmp_path / "s.zarr", attributes={"source_units": "dBZ", "corner": (1, 2)}).close()
    begin(tmp_path / "s.zarr", attributes={"source_units": "dBZ", "corner": (1, 2)}).close()
    with pytest.raises(StoreError, match=r"begun with source_units dBZ, now it is mm/h.*or choose another path"):
        begin(tmp_path / "s.zarr", attributes={"source_units": "mm/h", "corner": (1, 2)})
    assert open_store(str(tmp_path / "s.zarr")).attributes["source_units"] == "dBZ"


def test_another_source_and_attributes_that_only_one_side_states_do_not_keep_a_store_from_going_on(
    tmp_path: Path,
) -> None:
    begin(tmp_path / "s.zarr", attributes={"source": "may.nc", "note": "by hand"}).close()
    with begin(tmp_path / "s.zarr", attributes={"source": "june.nc", "source_scale": 0.5}) as writer:
        assert writer.missing == tuple(DATES)


def test_days_asked_for_in_another_split_are_refused(path: Path) -> None:
    digest = open_store(str(path)).digest
    with pytest.raises(StoreError, match=r"2015-05-02 in its valid split, now it is asked for in test \(2 days differ"):
        begin(path, splits={DATES[0]: "train", DATES[1]: "test", DATES[2]: "train"})
    assert open_store(str(path)).digest == digest


def test_a_store_denoised_since_is_not_gone_on_with_under_its_first_map(path: Path) -> None:
    with StoreWriter.open(path) as writer:
        writer.set_excluded(np.ones(GRID, bool))
    with pytest.raises(StoreError, match=r"another exclusion map than asked for now.*once all days are in"):
        begin(path)


def test_a_folder_that_is_no_store_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(StoreError, match="is there already and is not a nowcastlab store"):
        begin(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file.zarr").write_text("in the way")
    with pytest.raises(StoreError, match="is there already and is not a nowcastlab store"):
        begin(tmp_path / "file.zarr")
    with pytest.raises(StoreError, match=r"Cannot write a store at .*small.zarr: .*Choose another path"):
        begin(tmp_path / "file.zarr" / "small.zarr")


def test_a_day_that_cannot_be_written_is_named_and_the_others_stay(tmp_path: Path) -> None:
    with begin(tmp_path / "s.zarr") as writer:
        stamps = midnight(DATES[0]) + 60 * np.arange(24)
        writer.commit(writer.write_day(DATES[0], stamps, frames_of(DATES[0], 24)))
        # a file where the shard's folder is to be: the system refuses as it would without room
        (tmp_path / "s.zarr" / "pixels" / "c" / "1").write_text("")
        with pytest.raises(StoreError, match=r"Cannot write 2015-05-02 to .*: .*run the same again"):
            writer.write_day(DATES[1], stamps + 1440, frames_of(DATES[1], 24))
    assert [day.date for day in open_store(str(tmp_path / "s.zarr")).days] == DATES[:1]


def test_the_digest_knows_content_and_not_names(tmp_path: Path, path: Path) -> None:
    with begin(tmp_path / "renamed.zarr", title="another name") as writer:
        fill(writer)
        renamed = open_store(str(tmp_path / "renamed.zarr")).digest
        writer.set_labels(splits={DATES[2]: "train"})
    assert renamed == open_store(str(path)).digest
    assert open_store(str(tmp_path / "renamed.zarr")).digest != renamed


def test_a_new_exclusion_map_changes_the_digest_and_is_read_back(path: Path) -> None:
    before = open_store(str(path)).digest
    excluded = np.eye(*GRID, dtype=bool)
    with StoreWriter.open(path) as writer:
        writer.set_excluded(excluded)
    store = open_store(str(path))
    np.testing.assert_array_equal(store.excluded, excluded)
    assert store.digest != before


def test_a_second_writer_is_refused_until_the_first_is_gone(path: Path) -> None:
    holder = (
        f"from nowcastlab.store import StoreWriter; w = StoreWriter.open({str(path)!r}); print('held', flush=True); "
        "import time; time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", holder], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(StoreError, match="is being written by another process"):
        begin(path)
    process.kill()  # kill -9: the lock goes with its holder
    process.wait()
    process.stdout.close()
    begin(path).close()


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    """A plain web server over the test's folder, as object stores offer one."""

    class Ranges(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            file = Path(self.translate_path(self.path))
            if not file.is_file():
                self.send_error(404)
                return
            data, status = file.read_bytes(), 200
            if asked := self.headers.get("Range"):
                first, last = asked.removeprefix("bytes=").split("-")
                data, status = data[int(first) : int(last) + 1], 206
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Ranges, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_store_is_read_over_the_network(path: Path, web: str) -> None:
    remote, local = open_store(f"{web}/{path.name}"), open_store(str(path))
    assert remote.digest == local.digest
    np.testing.assert_array_equal(remote.excluded, local.excluded)
    np.testing.assert_array_equal(remote.read_day(DATES[1])[1], local.read_day(DATES[1])[1])


def test_damage_is_noticed_over_the_network_too(path: Path, web: str) -> None:
    shard = path / "pixels" / "c" / "1" / "0" / "0"
    shard.unlink()
    remote = open_store(f"{web}/{path.name}")
    assert len(remote.read_day(DATES[0])[1]) == 24
    with pytest.raises(CorruptStore, match="2015-05-02 is damaged"):
        remote.read_day(DATES[1])


@pytest.mark.parametrize("scheme", ["file://", "memory://"])
def test_any_filesystem_of_fsspec_will_do(path: Path, scheme: str) -> None:
    url = f"{scheme}{path}"
    if scheme == "memory://":
        import fsspec

        fsspec.filesystem("memory").put(str(path), str(path), recursive=True)
    np.testing.assert_array_equal(open_store(url).read_day(DATES[2])[1], frames_of(DATES[2], 24))


def test_a_store_travels_between_processes(path: Path) -> None:
    store = pickle.loads(pickle.dumps(open_store(str(path))))
    assert isinstance(store, Store)
    assert store.digest == open_store(str(path)).digest


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"dates": []}, "at least one day"),
        ({"dates": [DATES[1], DATES[0]]}, "must rise and not repeat"),
        ({"interval_minutes": 7}, r"`interval_minutes` \(=7\) must divide a day"),
        ({"km_per_pixel": 0.0}, r"`km_per_pixel` \(=0.0\) must be positive"),
        ({"splits": {DATES[0]: "dev"}}, "2015-05-01 has split 'dev'"),
        ({"excluded": np.zeros((3, 3), bool)}, r"exclusion map is \(3, 3\), the grid \(12, 16\)"),
    ],
)
def test_an_impossible_store_is_refused_before_anything_is_written(
    tmp_path: Path, change: dict[str, object], text: str
) -> None:
    arguments = {"dates": DATES, "grid": GRID, "interval_minutes": 60, "km_per_pixel": 1.0, "title": "t", **change}
    with pytest.raises(ConfigError, match=text):
        StoreWriter.create(tmp_path / "s.zarr", **arguments)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("stamps", "frames", "text"),
    [
        ([0, 60], np.zeros((1, *GRID), np.uint8), r"takes uint8 \(2, 12, 16\)"),
        ([0], np.zeros((1, *GRID), np.float32), "frames are float32"),
        ([0, 0], np.zeros((2, *GRID), np.uint8), "stamps must rise"),
        ([-60], np.zeros((1, *GRID), np.uint8), "within the day"),
        ([60, 61], np.zeros((2, *GRID), np.uint8), "two frames claim one 60-minute slot"),
    ],
)
def test_a_day_that_does_not_fit_is_refused(
    tmp_path: Path, stamps: list[int], frames: NDArray[np.uint8], text: str
) -> None:
    with begin(tmp_path / "s.zarr") as writer, pytest.raises(ConfigError, match=text):
        writer.write_day(DATES[0], midnight(DATES[0]) + np.array(stamps), frames)


def test_no_store_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"No store at .*nothing.zarr.*data_pipeline synth"):
        open_store(str(tmp_path / "nothing.zarr"))
    with pytest.raises(StoreError, match="Cannot reach"):
        open_store("nosuchprotocol://bucket/store.zarr")
    with pytest.raises(StoreError, match=r"No store at .*nothing.zarr.*data_pipeline synth"):
        StoreWriter.open(tmp_path / "nothing.zarr")


def test_a_remote_target_is_refused_for_writing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="written to a local path, not to s3://bucket/x"):
        StoreWriter.open("s3://bucket/x")
    with pytest.raises(ConfigError, match="written to a local path, not to s3:/bucket/x"):
        StoreWriter.open(Path("s3://bucket/x"))  # which is a Path's way to write it
