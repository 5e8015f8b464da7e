"""Example forecasts: kept as they were, refused where they do not fit together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.protocol import Examples, load_examples, save_examples


def two_examples() -> Examples:
    rng = np.random.default_rng(1)
    return Examples(
        labels=("2015-05-22 04:30", "2015-05-23 10:00"),
        lead_minutes=(6, 12, 18),
        inputs=rng.integers(0, 256, (2, 5, 8, 10), dtype=np.uint8),
        truth=rng.integers(0, 256, (2, 3, 8, 10), dtype=np.uint8),
        forecast=rng.integers(0, 256, (2, 3, 8, 10), dtype=np.uint8),
        links=rng.normal(size=(2, 4, 2, 4, 5)).astype(np.float32),
        links_stride=2,
        excluded=rng.random((8, 10)) < 0.2,
    )


@pytest.mark.parametrize("changes", [{}, {"links": None, "links_stride": 1, "excluded": None}])
def test_what_is_saved_is_loaded(tmp_path: Path, changes: dict[str, object]) -> None:
    kept = replace(two_examples(), **changes)  # type: ignore[arg-type]
    save_examples(tmp_path / "examples.npz", kept)
    found = load_examples(tmp_path / "examples.npz")
    for name, value in vars(kept).items():
        if isinstance(value, np.ndarray):
            assert getattr(found, name).dtype == value.dtype
            np.testing.assert_array_equal(getattr(found, name), value)
        else:
            assert getattr(found, name) == value


def test_a_file_that_is_something_else_is_named(tmp_path: Path) -> None:
    (tmp_path / "examples.npz").write_bytes(b"PK\x03\x04 and then nothing of the kind")
    with pytest.raises(StoreError, match=r"examples\.npz is not a file of example forecasts"):
        load_examples(tmp_path / "examples.npz")


@pytest.mark.parametrize("name", ["truth", "forecast"])
def test_frames_of_another_number_of_leads_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"`{name}` is \(2, 2, 8, 10\); it must be \(2, 3, 8, 10\)"):
        replace(two_examples(), **{name: getattr(two_examples(), name)[:, :2]})  # type: ignore[arg-type]


def test_links_of_other_examples_are_refused() -> None:
    links = two_examples().links
    assert links is not None
    with pytest.raises(ConfigError, match=r"`links` are \(1, 4, 2, 4, 5\)"):
        replace(two_examples(), links=links[:1])
