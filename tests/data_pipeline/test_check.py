"""`check`: damage of every kind, anywhere in a store, is noticed and placed."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from data_pipeline.archive_layout import first_minute
from data_pipeline.check import command
from nowcastlab.errors import CorruptStore, StoreError
from nowcastlab.store import StoreWriter, open_store

DATES = [dt.date(2015, 6, 20), dt.date(2015, 6, 21), dt.date(2015, 6, 22)]
GRID = (12, 12)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("check") / "small.zarr"
    rng = np.random.default_rng(1)
    with StoreWriter.create(
        path, dates=DATES, grid=GRID, interval_minutes=120, km_per_pixel=1.0, title="small", splits={DATES[0]: "train"}
    ) as writer:
        for date in DATES:
            minutes = first_minute(date) + 120 * np.arange(0, 12, 2 if date == DATES[1] else 1)
            frames = rng.integers(0, 256, (len(minutes), *GRID), dtype=np.uint8)
            writer.commit(writer.write_day(date, minutes, frames))
    return path


def check(store: Path) -> Result:
    return CliRunner().invoke(command, [str(store), "--json"])


def findings(result: Result) -> list[dict[str, str | None]]:
    return json.loads(result.stdout)["findings"]


def flipped(data: bytes, rng: np.random.Generator) -> bytes:
    damaged = bytearray(data)
    damaged[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    return bytes(damaged)


def truncated(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(len(data)))]


def deleted(data: bytes, rng: np.random.Generator) -> None:
    return None


def test_a_sound_store_has_no_findings_and_exit_code_0(store: Path) -> None:
    result = check(store)
    assert result.exit_code == 0
    assert findings(result) == []
    assert json.loads(result.stdout)["frames"] == 12 + 6 + 12


def test_200_of_200_damaged_shards_end_in_an_error_that_names_the_day(store: Path) -> None:
    """Every one through a reader, and every seventh through the command too, which takes longer."""
    rng = np.random.default_rng(2)
    damages: list[Callable[[bytes, np.random.Generator], bytes | None]] = [
        flipped,
        flipped,
        flipped,
        truncated,
        deleted,
    ]
    by_readers, by_command = 0, 0
    for case in range(200):
        row = int(rng.integers(len(DATES)))
        shard = store / "pixels" / "c" / str(row) / "0" / "0"
        sound = shard.read_bytes()
        damaged = damages[case % len(damages)](sound, rng)
        shard.unlink() if damaged is None else shard.write_bytes(damaged)
        day = DATES[row].isoformat()
        try:
            opened = open_store(str(store))
            for date in DATES:
                opened.read_day(date)
                opened.read_empty_slots(date)
        except CorruptStore as error:
            by_readers += error.day == day and day in str(error)
        if case % 7 == 0:  # so that all kinds of damage come by
            result = check(store)
            by_command += result.exit_code == 3 and [f["day"] for f in findings(result)] == [day]
        shard.write_bytes(sound)
    assert by_readers == 200
    assert by_command == 29


def test_damage_to_any_other_file_is_found_and_the_file_or_its_array_is_named(store: Path) -> None:
    rng = np.random.default_rng(3)
    files = sorted(p for p in store.rglob("*") if p.is_file() and "pixels/c/" not in p.as_posix())
    missed = []
    for file in files:
        name = file.relative_to(store)
        sound = file.read_bytes()
        for damage in (flipped, flipped, flipped, truncated, deleted):
            damaged = damage(sound, rng)
            file.unlink() if damaged is None else file.write_bytes(damaged)
            result = check(store)
            file.write_bytes(sound)
            # a record that is gone or of another version is an error, not a finding: there is no store to look at
            said = str(result.exception) if isinstance(result.exception, StoreError) else result.stdout
            if result.exit_code == 0 or not (name.parts[0] in said or str(name) in said):
                missed.append((str(name), damage.__name__, damaged))
    assert missed == []


def test_damage_where_a_frame_is_missing_is_found_too(store: Path) -> None:
    """No reader would come by, but other tools would."""
    shard = store / "pixels/c/1/0/0"
    sound = shard.read_bytes()
    index = np.frombuffer(sound[-(12 * 16 + 4) : -4], "<u8").reshape(12, 2)
    damaged = bytearray(sound)
    damaged[int(index[1, 0]) + 3] ^= 4  # slot 1 of this day holds no frame
    shard.write_bytes(damaged)
    result = check(store)
    shard.write_bytes(sound)
    assert [f["day"] for f in findings(result)] == ["2015-06-21"]


@pytest.mark.parametrize("damage", [truncated, deleted])
@pytest.mark.parametrize("name", ["zarr.json", "excluded/c/0/0"])
def test_whoever_reads_the_exclusion_map_is_told_that_it_is_damaged(
    store: Path, tmp_path: Path, name: str, damage: Callable[[bytes, np.random.Generator], bytes | None]
) -> None:
    copy = tmp_path / "copy.zarr"
    shutil.copytree(store, copy)
    with StoreWriter.open(copy) as writer:
        writer.set_excluded(np.eye(*GRID, dtype=bool))
    file = copy / name
    damaged = damage(file.read_bytes(), np.random.default_rng(0))
    file.unlink() if damaged is None else file.write_bytes(damaged)
    with pytest.raises(CorruptStore, match="exclusion map"):
        _ = open_store(str(copy)).excluded


def test_a_group_that_cannot_be_read_is_not_written_to(store: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.zarr"
    shutil.copytree(store, copy)
    (copy / "zarr.json").write_text("{")
    with pytest.raises(CorruptStore, match=r"The group of .* cannot be read"), StoreWriter.open(copy) as writer:
        writer.set_excluded(np.eye(*GRID, dtype=bool))


def test_a_script_is_told_by_the_exit_code(store: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.zarr"
    shutil.copytree(store, copy)
    (copy / "pixels" / "c" / "0" / "0" / "0").unlink()
    for path, code in ((store, 0), (copy, 3)):
        done = subprocess.run([sys.executable, "-m", "data_pipeline", "check", str(path)], capture_output=True)
        assert done.returncode == code, done.stderr.decode()


def test_every_damaged_day_is_named_not_just_the_first(store: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.zarr"
    shutil.copytree(store, copy)
    (copy / "pixels/c/0/0/0").unlink()
    (copy / "pixels/c/2/0/0").write_bytes(b"")
    result = CliRunner().invoke(command, [str(copy)])
    assert result.exit_code == 3
    assert "2015-06-20: " in result.stdout
    assert "2015-06-22: " in result.stdout
    assert "2 findings, 2 of 3 days damaged" in result.stdout


def test_shards_of_an_interrupted_writer_are_counted_and_are_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "begun.zarr"
    with StoreWriter.create(
        path, dates=DATES, grid=GRID, interval_minutes=120, km_per_pixel=1.0, title="begun"
    ) as writer:
        frame = np.zeros((1, *GRID), np.uint8)
        writer.commit(writer.write_day(DATES[0], [first_minute(DATES[0])], frame))
        writer.write_day(DATES[1], [first_minute(DATES[1])], frame)
    result = CliRunner().invoke(command, [str(path)])
    assert result.exit_code == 0
    assert "1 uncommitted shards" in result.stdout
    assert "2 of 3 planned days are not committed yet" in result.stdout
