"""A store whose test split has everything the rules speak of."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pytest

from nowcastlab.store import Store, StoreWriter, open_store

GRID = (16, 16)


@pytest.fixture(scope="session")
def broken_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Two test days around a training day, 16x16.

    5 June, test: frames 181 to 239 of the day, 200 missing. Windows of 25 at 181, 186, ..., 216; the last one runs one
                  frame into the next day.
    6 June, train: frames 0 to 49, all of them full of rain.
    10 June, test: frames 10 to 54: windows at 10, 15, ..., 30, a second episode.
    """
    dates = [dt.date(2015, 6, day) for day in (5, 6, 10)]
    slots = [np.delete(np.arange(181, 240), 19), np.arange(50), np.arange(10, 55)]
    excluded = np.zeros(GRID, bool)
    excluded[:, :2] = True
    rng = np.random.default_rng(5)
    path = tmp_path_factory.mktemp("stores") / "broken.zarr"
    with StoreWriter.create(
        path,
        dates=dates,
        grid=GRID,
        interval_minutes=6,
        km_per_pixel=4.0,
        title="a test day before a training day",
        excluded=excluded,
        splits=dict(zip(dates, ("test", "train", "test"), strict=True)),
    ) as writer:
        for date, there in zip(dates, slots, strict=True):
            # showers, dry ground and the small echoes that are not scored
            frames = rng.choice(np.array([0, 0, 40, 90, 130, 170, 200], np.uint8), (len(there), *GRID))
            if date.day == 6:
                frames[:] = 210
            writer.commit(writer.write_day(date, minute_of(date) + 6 * there, frames))
    return open_store(str(path))


@pytest.fixture(scope="session")
def broken_store_path(broken_store: Store) -> Path:
    return Path(broken_store.url)


def minute_of(date: dt.date) -> int:
    return (date - dt.date(1970, 1, 1)).days * 1440
