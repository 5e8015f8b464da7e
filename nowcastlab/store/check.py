"""Is a store what it was? Every checksum, every commit, the schema; and which day is at fault."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import fsspec
import numpy as np
import zarr

from nowcastlab.errors import CorruptStore
from nowcastlab.store import schema
from nowcastlab.store.reader import Store
from nowcastlab.store.record import content_hash

ARRAYS = {"pixels", "time", "present", "split", "excluded", "gauge_mm", "day", "y", "x"}


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
            store.read_empty_slots(day.date)
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
    """The zarr group, which other tools read, must say what the record says."""
    return [Finding(day=None, what=what) for what in (*_metadata(store), *_arrays(store))]


def _metadata(store: Store) -> Iterator[str]:
    """Compared as plain JSON: zarr takes the default for a name it does not know, and so for one that was damaged."""
    try:
        root = _json(store, "zarr.json")
        copies = root.pop("consolidated_metadata")
        own = {"zarr_format": 3, "node_type": "group", "attributes": schema.group_attributes(store.record)}
        if root != json.loads(json.dumps(own)):
            yield "zarr.json, its title or attributes, differs from the record."
        if copies["kind"] != "inline" or copies["must_understand"] is not False or set(copies["metadata"]) != ARRAYS:
            yield "zarr.json does not list the arrays as it should."
    except (OSError, ValueError, LookupError, TypeError) as error:
        yield f"zarr.json is damaged ({type(error).__name__}: {error})."
        return
    for name in sorted(ARRAYS & set(copies["metadata"])):
        try:
            if _json(store, f"{name}/zarr.json") != copies["metadata"][name]:
                yield f"{name}/zarr.json differs from its copy in zarr.json."
        except (OSError, ValueError, TypeError) as error:
            yield f"{name}/zarr.json is damaged ({type(error).__name__}: {error})."


def _arrays(store: Store) -> Iterator[str]:
    record = store.record
    expected = {**schema.labels_from(record), **schema.axes_km(record)}
    try:
        group = zarr.open_group(store.url, mode="r", use_consolidated=False)
        pixels = group["pixels"]
        assert isinstance(pixels, zarr.Array)
        shape = (len(record.days) * record.frames_per_day, *record.grid)
        if pixels.shape != shape or pixels.dtype != np.uint8:
            yield f"`pixels` is {pixels.dtype} {pixels.shape}, the record says uint8 {shape}."
        if pixels.chunks != (1, *record.grid) or pixels.shards != (record.frames_per_day, *record.grid):
            yield f"`pixels` has chunks {pixels.chunks} and shards {pixels.shards}."
    except Exception as error:
        # zarr meets damaged metadata with whatever its parsers raise: all of it is a finding here
        yield f"`pixels` cannot be opened by zarr ({type(error).__name__}: {error})."
        return
    for name, values in expected.items():
        try:
            array = group[name]
            assert isinstance(array, zarr.Array)
            if not np.array_equal(np.asarray(array[...]), values, equal_nan=values.dtype.kind == "f"):
                yield f"`{name}` is behind the record: an interrupted writer. Run it again to bring it up to date."
        except Exception as error:
            yield f"`{name}` is damaged ({type(error).__name__}: {error})."
    try:
        _ = store.excluded
    except Exception as error:
        yield f"`excluded`, the exclusion map, is damaged ({type(error).__name__}: {error})."


def _json(store: Store, name: str) -> dict[str, Any]:
    filesystem, root = fsspec.core.url_to_fs(store.url)
    return json.loads(filesystem.cat_file(f"{root}/{name}"))


def uncommitted_shards(store: Store) -> list[str]:
    """Shards nobody vouches for: left by a writer that was cut short. Harmless, and no reader sees them."""
    filesystem, root = fsspec.core.url_to_fs(store.url)
    committed = {f"{root}/pixels/c/{row}/0/0" for row, day in enumerate(store.record.days) if day.content is not None}
    return sorted(set(filesystem.find(f"{root}/pixels/c")) - committed)
