"""What `nowcastlab bench data` reads; how fast is not for a test."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from nowcastlab.bench.data import command, measure
from nowcastlab.errors import StoreError
from nowcastlab.store import StoreWriter, open_store


def test_the_compression_is_of_the_frames_that_were_read(tiny_store: Path, tmp_path: Path) -> None:
    """The first two days have 100 and 44 frames, not 240 each."""
    days = open_store(tiny_store).record.days[:2]
    found = measure(tmp_path, url=str(tiny_store), rounds=1, loaders=False)
    assert found["compression"] == pytest.approx((100 + 44) * 24 * 24 / sum(day.shard_bytes for day in days))


def test_no_rounds_at_all_are_refused() -> None:
    result = CliRunner().invoke(command, ["--rounds", "0"])
    assert result.exit_code == 2
    assert "0 is not in the range x>=1" in result.output


def test_a_store_without_one_whole_window_is_refused(tmp_path: Path) -> None:
    day = dt.date(2015, 6, 1)
    with StoreWriter.create(
        tmp_path / "short.zarr", dates=[day], grid=(24, 24), interval_minutes=6, km_per_pixel=2.0, title="ten frames"
    ) as writer:
        midnight = (day - dt.date(1970, 1, 1)).days * 1440
        writer.commit(writer.write_day(day, midnight + 6 * np.arange(10), np.zeros((10, 24, 24), np.uint8)))
    with pytest.raises(StoreError, match="has 10 frames in its first 2 days, too few for windows of 25"):
        measure(tmp_path, url=str(tmp_path / "short.zarr"), rounds=1, loaders=False)
