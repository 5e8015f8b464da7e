"""`info`: a store at a glance."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from data_pipeline.archive_layout import first_minute
from data_pipeline.info import command, rainiest_hours
from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.store import StoreWriter, open_store

DATES = [dt.date(2015, 6, 21), dt.date(2015, 6, 22), dt.date(2015, 6, 23)]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two of three days: 20 hourly frames, then 24, with most rain at 05:00 and 06:00 and, the next day, at 21:00."""
    path = tmp_path / "s.zarr"
    excluded = np.zeros((16, 16), bool)
    excluded[0] = True
    frames = np.zeros((44, 16, 16), np.uint8)
    frames[[5, 6], 4:9, 4:9] = 180
    frames[20 + 21, 4:6, 4:6] = 150
    frames[:, 0] = 255  # excluded: however bright, it is not rain
    with StoreWriter.create(
        path,
        dates=DATES,
        grid=(16, 16),
        interval_minutes=60,
        km_per_pixel=2.0,
        title="hourly",
        excluded=excluded,
        splits={DATES[0]: "train", DATES[1]: "test"},
        gauge_mm={DATES[0]: 3.5},
        attributes={"source": "made up"},
    ) as writer:
        writer.commit(writer.write_day(DATES[0], first_minute(DATES[0]) + 60 * np.arange(20), frames[:20]))
        writer.commit(writer.write_day(DATES[1], first_minute(DATES[1]) + 60 * np.arange(24), frames[20:]))
    return path


def test_the_facts_of_a_store(store: Path) -> None:
    facts = json.loads(CliRunner().invoke(command, [str(store), "--json"]).stdout)
    opened = open_store(str(store))
    assert facts["digest"] == opened.digest
    assert facts["grid"] == [16, 16]
    assert (facts["first"], facts["last"]) == ("2015-06-21 00:00", "2015-06-22 23:00")
    assert facts["days"] == {"committed": 2, "planned": 3}
    assert facts["frames"] == {"all": 44, "train": 20, "valid": 0, "test": 24, "none": 0}
    assert (facts["missing_frames"], facts["days_with_missing_frames"]) == (4, 1)
    assert facts["excluded_pixels"] == 16
    shards = sum(file.stat().st_size for file in (store / "pixels" / "c").rglob("*") if file.is_file())
    assert facts["shard_bytes"] == shards
    assert facts["compression_ratio"] == pytest.approx(44 * 256 / shards)


def test_the_text_names_what_a_person_asks_first(store: Path) -> None:
    text = CliRunner().invoke(command, [str(store)]).stdout
    for line in ("hourly", "16 x 16 pixels of 2 km: 32 x 32 km", "2 of 3 planned", "train 20, test 24", "made up"):
        assert line in text


def test_the_rainiest_hours_are_different_rain_and_do_not_count_what_is_excluded(store: Path) -> None:
    opened = open_store(str(store))
    chosen = rainiest_hours(opened, opened.days, count=2)
    # 06:00 is the same rain as 05:00; of equal hours the later is met first
    assert chosen == [first_minute(DATES[0]) + 6 * 60, first_minute(DATES[1]) + 21 * 60]


def test_the_picture_is_drawn(store: Path, tmp_path: Path) -> None:
    picture = tmp_path / "made" / "here.png"
    result = CliRunner().invoke(command, [str(store), "--picture", str(picture)])
    assert result.exit_code == 0
    assert picture.stat().st_size > 10_000


def test_a_picture_of_no_known_kind_is_refused(store: Path) -> None:
    with pytest.raises(ConfigError, match=r"Name a file that ends in \.png"):
        CliRunner().invoke(command, [str(store), "--picture", str(store.parent / "x.xyz")], catch_exceptions=False)


def test_where_there_is_no_store_the_next_step_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="Build one with"):
        CliRunner().invoke(command, [str(tmp_path / "none.zarr")], catch_exceptions=False)
