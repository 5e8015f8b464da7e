"""What the sweep tests share: `faults` (beside this file) and the sweep that nothing happened to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `from faults import ...`, here and in the processes it starts


@pytest.fixture(scope="session", autouse=True)
def _released() -> Iterator[None]:
    """The code's version is its release: a commit made while the tests run would make two versions of one sweep."""
    from nowcastlab.sweep.environment import running_code

    os.environ["GIT_DIR"] = os.devnull
    running_code.cache_clear()  # other tests, before these, may have asked
    yield
    del os.environ["GIT_DIR"]
    running_code.cache_clear()


@pytest.fixture(scope="session")
def ray_address(_released: None) -> Iterator[str]:
    """The one Ray of these tests, whose workers say the same: a Ray that other tests started knows nothing of it."""
    import ray

    from nowcastlab import engine

    ray.shutdown()  # of the others, which have come before (RAY in tests/conftest.py)
    engine.connect(cpus=2)
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, ray_address: str) -> Path:
    """The small sweep, once a session, without any fault: what every other must equal."""
    from faults import small_sweep, uri_of

    from nowcastlab.sweep import run_sweep

    root = tmp_path_factory.mktemp("undisturbed")
    result = run_sweep(small_sweep(), root=root, tracking_uri=uri_of(root), say=lambda line: None)
    assert not result.failed
    assert not result.unfinished
    return root
