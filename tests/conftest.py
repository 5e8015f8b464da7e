"""What several tests share."""

from __future__ import annotations

import datetime as dt
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# A script that runs tests in the background has them ignore Ctrl-C, and all that they start would too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests that use Ray. `make test` deals tests out to two processes: these to one of them, since one Ray is enough for
# two cores, and first, since they take longest; the others by modules, whose fixtures are then made once. A newcomer's
# commands start Rays of their own, and take as long as all other modules: they go first to the other process.
RAY = (
    "tests/sweep/",
    "tests/docs/test_pages.py",
    "tests/cli/test_evaluate.py",
    "tests/data_pipeline/test_ingest.py",
    "tests/protocol/test_offline.py",
)


NEWCOMER = "tests/docs/test_readme.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: (not item.nodeid.startswith(RAY), not item.nodeid.startswith(NEWCOMER)))


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist: without it all tests run in this process
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class RayInOneProcess(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "ray" if nodeid.startswith(RAY) else nodeid.partition("::")[0]

    return RayInOneProcess(config, log)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Official lists, masks and two real radar sequences, kept beside the project and never in it."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder}: the official lists and radar sequences are not part of the project")
    return folder


@pytest.fixture(scope="session")
def ray_address() -> Iterator[str]:
    """One real Ray for the whole run: it takes longer to start than most tests take. Gives its address."""
    from nowcastlab import engine

    asked = os.environ["PYTEST_CURRENT_TEST"]
    assert asked.startswith(RAY), f"{asked} uses Ray: name its file in RAY, or two Rays share two cores"

    engine.connect(cpus=2)
    import ray

    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


@pytest.fixture(scope="session")
def tiny_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 24x24 frames in which two showers drift: 100 frames to train on, 45 to validate (one of them missing)
    and 40 to test, a day each."""
    from nowcastlab.store import StoreWriter
    from nowcastlab.units import pixel_from_mmh

    dates = [dt.date(2015, 6, day) for day in (1, 3, 5)]
    splits = dict(zip(dates, ("train", "valid", "test"), strict=True))
    excluded = np.zeros((24, 24), bool)
    excluded[:2] = True
    path = tmp_path_factory.mktemp("stores") / "tiny.zarr"
    y, x = np.mgrid[:24, :24]
    with StoreWriter.create(
        path,
        dates=dates,
        grid=(24, 24),
        interval_minutes=6,
        km_per_pixel=2.0,
        title="two showers",
        excluded=excluded,
        splits=splits,
    ) as writer:
        for date, count in zip(dates, (100, 45, 40), strict=True):
            time = np.arange(count)[:, None, None]
            distance = ((x - 0.7 * time) % 24 - 12) ** 2 + ((y - 0.3 * time) % 24 - 12) ** 2
            rate_mmh = 40 * np.exp(-distance / 20) + 5 * np.exp(-((x - 18) ** 2 + (y + 0.4 * time - 20) ** 2) / 30)
            kept = np.delete(np.arange(count), 22) if splits[date] == "valid" else np.arange(count)
            midnight = (date - dt.date(1970, 1, 1)).days * 1440
            writer.commit(writer.write_day(date, midnight + 6 * kept, pixel_from_mmh(rate_mmh[kept])))
    return path
