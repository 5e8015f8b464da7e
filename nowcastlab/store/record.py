"""The record of what a store holds: one small sealed file, written last, the only thing a reader trusts.

zarr alone cannot say whether a frame is there: a chunk that was never written, or was deleted, reads as zeros, and
zeros are "no rain". So a day counts as stored when `pixels/committed.json` names it, with its stamps, the size of its
shard and a hash of its content. The file is replaced in one step and carries a hash of itself.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nowcastlab.errors import CorruptStore, StoreError

# Inside `pixels`: zarr warns about files it does not know in a group, and does not look for them in an array.
FILE_NAME = "pixels/committed.json"
FORMAT = "nowcastlab store"
VERSION = 1
SPLITS = ("none", "train", "valid", "test")
MINUTES_PER_DAY = 1440
EPOCH = dt.date(1970, 1, 1)


@dataclass(frozen=True, kw_only=True)
class DayRecord:
    """A planned day; `content` is None until it is committed."""

    date: dt.date
    split: str = "none"
    gauge_mm: float | None = None
    minutes: tuple[int, ...] = ()  # stamps of the frames there, as minutes of the day
    shard_bytes: int = 0
    content: str | None = None  # sha256 of stamps and pixels

    @property
    def first_minute(self) -> int:
        """Midnight, in minutes since 1970-01-01."""
        return (self.date - EPOCH).days * MINUTES_PER_DAY


@dataclass(frozen=True, kw_only=True)
class Record:
    grid: tuple[int, int]  # height, width
    interval_minutes: int
    km_per_pixel: float
    title: str
    excluded: str  # sha256 of the exclusion map
    attributes: Mapping[str, Any] = field(default_factory=dict)
    days: tuple[DayRecord, ...] = ()

    @property
    def frames_per_day(self) -> int:
        return MINUTES_PER_DAY // self.interval_minutes

    @property
    def digest(self) -> str:
        """What the data is, whatever it is called: two stores with one digest give the same frames and splits."""
        content = json_ready(self)
        for label in ("title", "attributes"):
            del content[label]
        for day in content["days"]:
            del day["shard_bytes"]
        return sha256(canonical(content))

    def dumps(self) -> bytes:
        record = json_ready(self)
        sealed = {"format": FORMAT, "version": VERSION, "seal": sha256(canonical(record)), "record": record}
        return json.dumps(sealed, indent=1).encode()

    @classmethod
    def loads(cls, text: bytes, *, where: str) -> Record:
        try:
            sealed = json.loads(text)
            form, version, seal, record = (sealed[key] for key in ("format", "version", "seal", "record"))
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptStore(f"{where} is damaged ({error}). Restore it, or build the store again.") from None
        if form != FORMAT or version != VERSION:
            raise StoreError(f"{where} says {form!r} version {version}; this nowcastlab reads version {VERSION}.")
        if sha256(canonical(record)) != seal:
            raise CorruptStore(f"{where} was changed after it was sealed. Restore it, or build the store again.")
        days = tuple(
            DayRecord(**{**day, "date": dt.date.fromisoformat(day["date"]), "minutes": tuple(day["minutes"])})
            for day in record.pop("days")
        )
        return cls(**{**record, "grid": tuple(record["grid"]), "days": days})


def json_ready(record: Record) -> dict[str, Any]:
    """Plain JSON values; a day's stamps as a list, its date in ISO form."""
    days = [{**vars(day), "date": day.date.isoformat(), "minutes": list(day.minutes)} for day in record.days]
    fields = {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}
    return {**fields, "grid": list(record.grid), "attributes": dict(record.attributes), "days": days}


def canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def sha256(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


def content_hash(minutes: NDArray[np.int64], frames: NDArray[np.uint8]) -> str:
    """Hash of a day as a reader gets it: the stamps of its frames in minutes since 1970-01-01, then their pixels."""
    digest = hashlib.sha256(np.ascontiguousarray(minutes, "<i8").data)
    digest.update(np.ascontiguousarray(frames).data)
    return digest.hexdigest()
