"""What several tests share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Official lists, masks and two real radar sequences, kept beside the project and never in it."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder}: the official lists and radar sequences are not part of the project")
    return folder
