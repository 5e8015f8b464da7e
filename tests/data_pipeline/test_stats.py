"""`stats`: the paper's rain-rate table, split counts and months, over valid pixels only."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from data_pipeline.archive_layout import date_of, first_minute, read_day_list
from data_pipeline.stats import command, split_counts
from nowcastlab.errors import StoreError
from nowcastlab.store import StoreWriter
from nowcastlab.store.record import DayRecord, Record
from nowcastlab.units import mmh_from_pixel

MAY, JUNE = dt.date(2014, 5, 31), dt.date(2015, 6, 1)


def run(store: Path, *options: str) -> dict[str, Any]:
    result = CliRunner().invoke(command, [str(store), "--json", *options], catch_exceptions=False)
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A frame in May with one pixel of each class, and a dry one in June; a column is excluded."""
    path = tmp_path_factory.mktemp("stats") / "s.zarr"
    excluded = np.zeros((4, 4), bool)
    excluded[:, 3] = True
    may = np.zeros((1, 4, 4), np.uint8)
    # below 71 is noise and not valid; 83 is the last level below 0.5 mm/h, then the first level of each class
    may[0, :, :3].flat[:8] = [1, 70, 83, 84, 118, 141, 158, 185]
    may[0, :, 3] = 255
    with StoreWriter.create(
        path,
        dates=[MAY, JUNE, JUNE + dt.timedelta(days=1)],
        grid=(4, 4),
        interval_minutes=60,
        km_per_pixel=1.0,
        title="classes",
        excluded=excluded,
        splits={MAY: "train", JUNE: "test", JUNE + dt.timedelta(days=1): "test"},
    ) as writer:
        writer.commit(writer.write_day(MAY, [first_minute(MAY)], may))
        writer.commit(writer.write_day(JUNE, [first_minute(JUNE)], np.zeros((1, 4, 4), np.uint8)))
    return path


def test_classes_are_counted_over_valid_pixels_only(store: Path) -> None:
    rates = run(store, "--split", "train")["rain_rates"]
    # of 12 pixels in range two are small echoes; of the other ten, four are 0 and one is 83
    assert [row["proportion_percent"] for row in rates] == pytest.approx([50, 10, 10, 10, 10, 10])
    assert rates[0]["rainfall_level"] == "No / Hardly noticeable"
    assert rates[-1] == {
        "rain_rate_mmh": "30 <= x",
        "proportion_percent": pytest.approx(10),
        "rainfall_level": "Rainstorm warning",
    }


def test_the_months_average_the_rain_rate_over_valid_pixels(store: Path) -> None:
    months = run(store)["months"]
    assert months[4]["mean_mmh"] == pytest.approx(mmh_from_pixel([83, 84, 118, 141, 158, 185]).sum() / 10)
    assert months[5] == {"month": 6, "frames": 1, "mean_mmh": 0.0}
    assert months[0] == {"month": 1, "frames": 0, "mean_mmh": None}


def test_a_day_of_the_store_that_has_no_frames_yet_counts_as_a_day(store: Path) -> None:
    splits = {row["split"]: row for row in run(store)["splits"]}
    assert (splits["test"]["days"], splits["test"]["days_with_frames"], splits["test"]["frames"]) == (2, 1, 1)
    assert (splits["train"]["first_year"], splits["train"]["last_year"]) == (2014, 2014)


def test_a_split_without_frames_is_refused(store: Path) -> None:
    with pytest.raises(StoreError, match="has no frames for valid"):
        run(store, "--split", "valid")


def test_the_figure_is_drawn_and_the_table_reads_like_the_paper(store: Path, tmp_path: Path) -> None:
    figure = tmp_path / "months.png"
    result = CliRunner().invoke(command, [str(store), "--split", "train", "--figure", str(figure)])
    assert "0.5 <= x < 2                 10.00   Light\n" in result.stdout
    assert figure.stat().st_size > 5000


@pytest.mark.parametrize(
    ("split", "listed_days", "days", "frames"), [("train", 812, 808, 192_168), ("test", 131, 131, 31_350)]
)
def test_the_official_days_and_frames_are_counted_as_the_paper_and_the_help_say(
    shared_data: Path, split: str, listed_days: int, days: int, frames: int
) -> None:
    listed = read_day_list(shared_data / "hko7" / f"hko7_rainy_{split}_days.txt")
    with np.load(shared_data / "hko7" / f"hko7_rainy_{split}_minutes.npz", allow_pickle=False) as archive:
        stamps = archive["minutes"].astype(np.int64)
    of_day: dict[dt.date, list[int]] = {date: [] for date in listed}
    for stamp in stamps.tolist():
        of_day[date_of(stamp)].append(stamp % 1440)
    record = Record(
        grid=(480, 480),
        interval_minutes=6,
        km_per_pixel=512 / 480,
        title="official stamps",
        excluded="",
        # as `ingest` plans them: a listed day without frames is left out
        days=tuple(DayRecord(date=date, split=split, minutes=tuple(of_day[date])) for date in listed if of_day[date]),
    )
    (counts,) = split_counts(record)
    assert len(listed) == listed_days
    assert (counts.days, counts.days_with_frames, counts.frames) == (days, days, frames)
    words = " ".join(CliRunner().invoke(command, ["--help"]).output.split())
    assert "The paper prints 812, 50 and 131 for HKO-7, the days that are listed" in words
    assert "a whole HKO-7 has 808, 49 and 131 here" in words
    assert (counts.first_year, counts.last_year) == ((2009, 2014) if split == "train" else (2015, 2015))
