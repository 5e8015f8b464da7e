"""The zarr store: schema, create, open, check. The only part of nowcastlab that knows zarr.

schema says what is in it, record what of it can be trusted, shards how a frame is read; reader and writer are what
others use.
"""

from nowcastlab.store.check import Finding, check, uncommitted_shards
from nowcastlab.store.local_copy import open_near
from nowcastlab.store.reader import Day, Frames, Store, open_store
from nowcastlab.store.record import SPLITS
from nowcastlab.store.schema import slot_of
from nowcastlab.store.writer import DayWriter, Receipt, StoreWriter

__all__ = [
    "SPLITS",
    "Day",
    "DayWriter",
    "Finding",
    "Frames",
    "Receipt",
    "Store",
    "StoreWriter",
    "check",
    "open_near",
    "open_store",
    "slot_of",
    "uncommitted_shards",
]
