"""One radar frame from a PNG file that nobody vouches for."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data_pipeline.npy_header import LARGEST_SIDE
from nowcastlab.errors import StoreError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
HEADER_BYTES = 33  # the signature and the whole first part, IHDR
COLOUR_TYPES = {0: "grey", 2: "colour", 3: "palette", 4: "grey with alpha", 6: "colour with alpha"}

# A grey 480x480 frame takes at most 231 kB; what is far beyond the pixels it may hold is not read at all.
OVERHEAD_BYTES = 1 << 20


def read_png(path: Path, grid: tuple[int, int]) -> NDArray[np.uint8]:
    """Decode an 8-bit grey PNG of exactly this grid; a StoreError says what else it is.

    The header is judged before anything is decoded, and every part's checksum before it is believed: decoders fill what
    is cut off with zeros, and zeros would be "no rain".
    """
    import cv2

    if path.stat().st_size > grid[0] * grid[1] + OVERHEAD_BYTES:
        raise StoreError(f"the file has {path.stat().st_size} bytes, too many for {grid[0]}x{grid[1]} grey pixels")
    data = path.read_bytes()
    height, width = _claimed_grid(data)
    if (height, width) != grid:
        raise StoreError(f"the image is {height}x{width}, not {grid[0]}x{grid[1]}")
    _check_parts(data)
    frame = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if frame is None or frame.shape != grid or frame.dtype != np.uint8:
        raise StoreError("the image cannot be decoded")
    return frame


def png_grid(path: Path) -> tuple[int, int]:
    """The grid that an 8-bit grey PNG claims to have; nothing is decoded."""
    with open(path, "rb") as file:
        height, width = _claimed_grid(file.read(HEADER_BYTES))
    if not (1 <= height <= LARGEST_SIDE and 1 <= width <= LARGEST_SIDE):
        raise StoreError(f"the image is {height}x{width}: sides are at most {LARGEST_SIDE} pixels")
    return height, width


def _claimed_grid(data: bytes) -> tuple[int, int]:
    if not data.startswith(SIGNATURE):
        raise StoreError("not a PNG file")
    if len(data) < HEADER_BYTES or data[12:16] != b"IHDR":
        raise StoreError("truncated: the header is incomplete")
    width, height, bits, colour = struct.unpack_from(">IIBB", data, 16)
    if bits != 8 or colour != 0:
        raise StoreError(f"the image is {bits}-bit {COLOUR_TYPES.get(colour, 'unknown')}, not 8-bit grey")
    return height, width


def _check_parts(data: bytes) -> None:
    """Every chunk in full with its checksum right, up to the end mark."""
    at = len(SIGNATURE)
    while at + 12 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        end = at + 12 + size
        if end > len(data):
            break
        if zlib.crc32(data[at + 4 : end - 4]) != struct.unpack_from(">I", data, end - 4)[0]:
            raise StoreError(f"damaged: part {kind.decode('latin-1')} fails its checksum")
        if kind == b"IEND":
            return
        at = end
    raise StoreError("truncated: the file ends before its end mark")
