"""What an .npy file says of itself, read before anything of the size it claims is made."""

from __future__ import annotations

import warnings
from typing import IO, Any

import numpy as np

LARGEST_SIDE = 8192  # pixels: an image or map with a longer side is a damaged or hostile file, not a radar


def read_npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether it is in Fortran's order, and type; the file is left where the values begin."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"npy version {version} is not known")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # HKO-7's own files were written by Python 2, and numpy says so
        return read(file)
