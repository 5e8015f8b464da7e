"""Frames out of a day's shard: find the chunk, check it, decompress it straight into the caller's array.

The file is a plain zarr v3 shard (`sharding_indexed`, index at the end) and zarr itself reads it too; this reader
leaves out zarr's general machinery, which costs more than the decompression (figures in schema.py). Local shards are
mapped into memory; remote ones are fetched by byte range, many at a time.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Sequence
from typing import Any

import fsspec
import google_crc32c
import numcodecs.blosc
import numpy as np
from numpy.typing import NDArray

from nowcastlab.errors import CorruptStore
from nowcastlab.store.record import Record

# Each call decompresses one frame: blosc's own threads would only get in the way of the caller's.
numcodecs.blosc.use_threads = False

CHECKSUM_BYTES = 4


class ShardReader:
    """The committed shards of one store. A shard is named by the row of its day in the record."""

    def __init__(self, filesystem: fsspec.AbstractFileSystem, root: str, record: Record) -> None:
        self._filesystem = filesystem
        self._root = root
        self._record = record
        self._local = "file" in _protocols(filesystem)
        self._index_bytes = record.frames_per_day * 16 + CHECKSUM_BYTES
        self._maps: dict[int, memoryview] = {}
        self._indices: dict[int, NDArray[np.uint64]] = {}

    def path(self, row: int) -> str:
        return f"{self._root}/pixels/c/{row}/0/0"

    def read(self, row: int, slots: Sequence[int], out: Sequence[NDArray[np.uint8]]) -> None:
        """Decompress the frames in `slots` of a day into the arrays of `out`."""
        index = self._index(row)
        spans = [(int(index[slot, 0]), int(index[slot, 1])) for slot in slots]
        for (start, size), chunk, frame in zip(spans, self._ranges(row, spans), out, strict=True):
            if start + size > self._record.days[row].shard_bytes or size <= CHECKSUM_BYTES:
                raise self.damaged(row, "its index points outside the file")
            self._decode(row, chunk, frame)

    def damaged(self, row: int, why: str) -> CorruptStore:
        day = self._record.days[row].date.isoformat()
        return CorruptStore(
            f"{day} is damaged in {self._root}: {why}. Copy its shard {self.path(row)} again, or ingest the day again.",
            day=day,
        )

    def check_sizes(self) -> None:
        """Local shards must be there in full; a remote one shows when it is read."""
        for row, day in enumerate(self._record.days):
            if self._local and day.content is not None:
                try:
                    size = os.stat(self.path(row)).st_size
                except FileNotFoundError:
                    raise self.damaged(row, "its shard is gone") from None
                if size != day.shard_bytes:
                    raise self.damaged(row, f"its shard has {size} bytes of {day.shard_bytes}")

    def _decode(self, row: int, chunk: memoryview | bytes, frame: NDArray[np.uint8]) -> None:
        body, checksum = bytes(chunk[:-CHECKSUM_BYTES]), bytes(chunk[-CHECKSUM_BYTES:])
        if google_crc32c.value(body) != int.from_bytes(checksum, "little"):
            raise self.damaged(row, "a frame fails its checksum")
        # A blosc header states the size it unpacks to: never more than the frame, whoever wrote it.
        if len(body) < 16 or struct.unpack_from("<I", body, 4)[0] != frame.nbytes:
            raise self.damaged(row, "a frame has the wrong size")
        try:
            numcodecs.blosc.decompress(body, frame)
        except RuntimeError as error:
            raise self.damaged(row, f"a frame cannot be decompressed ({error})") from None

    def _index(self, row: int) -> NDArray[np.uint64]:
        if row not in self._indices:
            size = self._record.days[row].shard_bytes
            (tail,) = self._ranges(row, [(size - self._index_bytes, self._index_bytes)])
            body, checksum = bytes(tail[:-CHECKSUM_BYTES]), bytes(tail[-CHECKSUM_BYTES:])
            if len(tail) != self._index_bytes or google_crc32c.value(body) != int.from_bytes(checksum, "little"):
                raise self.damaged(row, "its index fails its checksum")
            self._indices[row] = np.frombuffer(body, "<u8").reshape(-1, 2)
        return self._indices[row]

    def _ranges(self, row: int, spans: Sequence[tuple[int, int]]) -> Sequence[Any]:
        if self._local:
            whole = self._map(row)
            return [whole[start : start + size] for start, size in spans]
        starts, sizes = zip(*spans, strict=True)
        ends = [start + size for start, size in spans]
        paths = [self.path(row)] * len(sizes)
        chunks = self._filesystem.cat_ranges(paths, list(starts), ends, on_error="return")
        for chunk, size in zip(chunks, sizes, strict=True):
            if isinstance(chunk, FileNotFoundError):
                raise self.damaged(row, "its shard is gone")
            if isinstance(chunk, BaseException):
                raise self.damaged(row, f"its shard cannot be read ({type(chunk).__name__}: {chunk})")
            if len(chunk) != size:
                raise self.damaged(row, f"its shard ended early ({len(chunk)} bytes of {size})")
        return chunks

    def _map(self, row: int) -> memoryview:
        if row not in self._maps:
            expected = self._record.days[row].shard_bytes
            try:
                with open(self.path(row), "rb") as file:
                    size = os.fstat(file.fileno()).st_size
                    if size != expected:
                        raise self.damaged(row, f"its shard has {size} bytes of {expected}")
                    self._maps[row] = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            except FileNotFoundError:
                raise self.damaged(row, "its shard is gone") from None
        return self._maps[row]


def _protocols(filesystem: fsspec.AbstractFileSystem) -> tuple[str, ...]:
    return (filesystem.protocol,) if isinstance(filesystem.protocol, str) else tuple(filesystem.protocol)
