"""The zarr store: schema, create, open, check. The only part of nowcastlab that knows zarr.

schema says what is in it, record what of it can be trusted, shards how a frame is read, day_writer how a day is
written, begin how a store comes to be; reader and writer are what others use.
"""

from nowcastlab.store.check import Finding, check, uncommitted_shards
from nowcastlab.store.day_writer import DayWriter, Receipt
from nowcastlab.store.local_copy import open_near
from nowcastlab.store.reader import Day, Frames, Store, open_store
from nowcastlab.store.record import SPLITS
from nowcastlab.store.schema import slot_of
from nowcastlab.store.writer import StoreWriter

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
