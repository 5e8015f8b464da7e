"""The test over three machines takes minutes and needs root: it runs where it is named, as `make test-cluster` does."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if collection_path.name != "test_ray_up.py":
        return None
    return None if any("test_ray_up" in argument for argument in config.args) else True
