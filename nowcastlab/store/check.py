"""Is a store what it was? Every checksum, every commit, the schema; and which day is at fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import fsspec
import numpy as np
import zarr

from nowcastlab.errors import CorruptStore
from nowcastlab.store.reader import Store
from nowcastlab.store.record import SPLITS, content_hash
from nowcastlab.store.schema import labels_from


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something wrong. `day` is None where it is the whole store's."""

    day: str | None
    what: str


def check(url: str, *, watch: Callable[[Any], Any] = iter) -> list[Finding]:
    """Read a store in full and list what is wrong with it; nothing is an empty list.

    A record that cannot be read at all raises, as it does for everybody. `watch` wraps the days, for a progress bar.
    """
    findings: list[Finding] = []
    try:
        store = Store(url)
    except CorruptStore as error:
        if error.day is None:
            raise
        store = Store(url, check_sizes=False)  # go on, to name every day that is damaged
    findings += _schema(store)
    for day in watch(store.days):
        try:
            minutes, pixels = store.read_day(day.date)
        except CorruptStore as error:
            findings.append(Finding(day=day.date.isoformat(), what=str(error)))
            continue
        committed = next(d.content for d in store.record.days if d.date == day.date)
        if content_hash(minutes, pixels) != committed:
            findings.append(
                Finding(day=day.date.isoformat(), what=f"{day.date}: the frames are not those that were committed.")
            )
    return findings


def _schema(store: Store) -> list[Finding]:
    """The zarr group must say what the record says."""
    findings = []

    def wrong(what: str) -> None:
        findings.append(Finding(day=None, what=what))

    record = store.record
    minutes, present = labels_from(record)
    splits = np.repeat([SPLITS.index(day.split) for day in record.days], record.frames_per_day)
    gauges = [np.nan if day.gauge_mm is None else day.gauge_mm for day in record.days]
    expected = {"time": minutes, "present": present, "split": splits, "gauge_mm": np.array(gauges, np.float32)}
    try:
        group = zarr.open_group(store.url, mode="r", use_consolidated=False)
        consolidated = zarr.open_group(store.url, mode="r")
        pixels = group["pixels"]
        assert isinstance(pixels, zarr.Array)
        shape = (len(record.days) * record.frames_per_day, *record.grid)
        if pixels.shape != shape or pixels.dtype != np.uint8:
            wrong(f"`pixels` is {pixels.dtype} {pixels.shape}, the record says uint8 {shape}.")
        if pixels.chunks != (1, *record.grid) or pixels.shards != (record.frames_per_day, *record.grid):
            wrong(f"`pixels` has chunks {pixels.chunks} and shards {pixels.shards}.")
        for name in ("pixels", "excluded", "y", "x", "day", *expected):
            if group[name].metadata != consolidated[name].metadata:
                wrong(f"The consolidated metadata of `{name}` differs from its own.")
        for name, values in expected.items():
            array = group[name]
            assert isinstance(array, zarr.Array)
            if not np.array_equal(np.asarray(array[...]), values, equal_nan=name == "gauge_mm"):
                wrong(f"`{name}` is behind the record: an interrupted writer. Run it again to bring it up to date.")
        np.asarray(group["y"][...]), np.asarray(group["x"][...])  # type: ignore[index]
    except Exception as error:
        # zarr meets damaged metadata with whatever its parsers raise: all of it is a finding here
        wrong(f"The zarr metadata or a label array is damaged ({type(error).__name__}: {error}).")
    try:
        _ = store.excluded
    except Exception as error:
        wrong(f"The exclusion map is damaged ({type(error).__name__}: {error}).")
    return findings


def uncommitted_shards(store: Store) -> list[str]:
    """Shards nobody vouches for: left by a writer that was cut short. Harmless, and no reader sees them."""
    filesystem, root = fsspec.core.url_to_fs(store.url)
    committed = {f"{root}/pixels/c/{row}/0/0" for row, day in enumerate(store.record.days) if day.content is not None}
    return sorted(set(filesystem.find(f"{root}/pixels/c")) - committed)
