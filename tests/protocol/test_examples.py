"""Example forecasts: kept as they were, refused where they do not fit together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from nowcastlab.config import DigitsData
from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.models import build
from nowcastlab.protocol import (
    HKO7,
    Examples,
    digit_examples,
    digits_test,
    load_examples,
    radar_examples,
    save_examples,
)
from nowcastlab.store import open_store


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


SMALL = {"filters": (4, 6, 6), "stem_filters": 2, "flow_filters": 4, "strides": (2, 2, 2), "links": 3}


def test_every_forecaster_is_shown_on_the_same_windows_of_the_test_days(tiny_store: Path) -> None:
    store = open_store(str(tiny_store))
    last, rover = (radar_examples(build(name, "hko7"), store) for name in ("last-frame", "rover"))
    assert last.labels == rover.labels
    assert all(label.startswith("2015-06-05 ") for label in last.labels)  # the one test day
    np.testing.assert_array_equal(last.truth, rover.truth)
    assert last.lead_minutes == tuple(range(6, 126, 6))
    # the last frame, over and over, to the byte
    np.testing.assert_array_equal(last.forecast, np.repeat(last.inputs[:, -1:], HKO7.leads, axis=1))
    assert last.links is None
    assert last.excluded is not None


def test_only_windows_that_are_scored_are_shown(tiny_store: Path) -> None:
    one = radar_examples(build("last-frame", "hko7"), open_store(str(tiny_store)), limit=1)
    assert one.labels == ("2015-06-05 00:24",)  # the first window: its fifth frame


def test_a_trajgru_shows_where_it_looks_in_cells_of_its_second_layer(tiny_store: Path) -> None:
    model = build("trajgru", "hko7", **SMALL)
    flow = model.encoder[1].flow  # type: ignore[index, union-attr]
    with torch.no_grad():
        flow.weight.zero_()  # type: ignore[union-attr, operator]
        flow.bias.copy_(torch.tensor([1.0, 2, 3, -1, -2, -3]))  # type: ignore[union-attr, operator]
    shown = radar_examples(model, open_store(str(tiny_store)))
    assert shown.links is not None
    assert shown.links.shape == (len(shown), 3, 2, 6, 6)  # 24 pixels, two strides of 2
    assert shown.links_stride == 4
    # link 0 looks one cell right (dx) and one up (dy), and so on
    np.testing.assert_array_equal(shown.links[0, :, :, 0, 0], [[1, -1], [2, -2], [3, -3]])


def test_links_follow_from_the_whole_input_and_not_from_its_last_frame_alone() -> None:
    model = build("trajgru", "hko7", **SMALL)
    with torch.no_grad():
        model.encoder[1].flow.weight.normal_(generator=torch.Generator().manual_seed(0))  # type: ignore[index, union-attr, operator]
    frames = torch.rand(2, 5, 24, 24, generator=torch.Generator().manual_seed(1))
    frames[1, 1:] = frames[0, 1:]  # the two differ in their first frame only
    links = model.links(frames)
    assert links is not None
    assert not torch.equal(links[0], links[1])
    assert model.links(frames[:, :1]) is None  # no state yet, nowhere to look


def test_digits_are_shown_on_the_first_test_sequences() -> None:
    test = digits_test(DigitsData.of("sklearn-digits", size=16, count=1), count=5)
    shown = digit_examples(build("traj-l2", filters=(4, 6, 6)), test, frames_in=10, leads=10)
    assert shown.labels == ("test sequence 1", "test sequence 2", "test sequence 3")
    expected = np.rint(255 * np.clip(test.batch([2])[0, 10:], 0, 1)).astype(np.uint8)
    np.testing.assert_array_equal(shown.truth[2], expected)
    assert shown.links is not None
    assert shown.links.shape[1:3] == (2, 2)
    assert shown.excluded is None
