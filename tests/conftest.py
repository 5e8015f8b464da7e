"""What several tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


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

    engine.connect(cpus=2)
    import ray

    yield ray.get_runtime_context().gcs_address
    ray.shutdown()
