"""The scores of a run as one small `.npz` file, from which every table can be made again.

    tp, fn, fp, tn           (sequence, lead, threshold)  int64    pixels, valid ones only
    mse, mae, bmse, bmae     (sequence, lead)             float64  summed over a frame's valid pixels, p units
    gdl                      (sequence, lead)             float64
    start                    (sequence)                   int64    minutes since 1970-01-01
    episode                  (sequence)                   int64
    thresholds_mmh           (threshold)                  float64
    lead_minutes             (lead)                       float64

and, where they were asked for,

    fss_error, fss_reference           (sequence, lead, threshold, scale)  int64; FSS = 1 - sum error / sum reference
    fss_scale_km, fss_pixels           (scale)                             the scale, and its window's side in pixels
    spectrum_predicted, spectrum_true  (sequence, lead, band)              float32, mean power of a band
    spectrum_wavelength_km             (band)

Any NumPy reads it. Other keys are ignored. Nothing in it is a pickle.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.skill.sequence_scores import AXES, OPTIONAL, SequenceScores
from nowcastlab.whole_files import whole_file

_REQUIRED = [name for name in AXES if not any(name in names for names in OPTIONAL.values())]
_ZIP = b"PK\x03\x04"
# What numpy, zipfile and zlib raise on bytes that are not what they should be.
_DAMAGE = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    TypeError,
    SyntaxError,
    MemoryError,
    OverflowError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


def save_scores(path: str | os.PathLike[str], scores: SequenceScores) -> None:
    """Write the file whole or not at all: a reader, or a crash, never meets half of one."""
    path = Path(path)
    try:
        with whole_file(path) as file:
            np.savez_compressed(file, allow_pickle=False, **scores.arrays())
    except OSError as error:
        raise StoreError(f"{path}: the scores cannot be written: {error.strerror or error}.") from error


def load_scores(path: str | os.PathLike[str]) -> SequenceScores:
    """What `save_scores` wrote, checked; a StoreError names the file and what is wrong with it."""
    path = Path(path)
    try:
        return SequenceScores(**_read(path))
    except ConfigError as error:
        raise StoreError(f"{path} is not a file of scores: {error}") from error


def _read(path: Path) -> dict[str, NDArray[Any]]:
    if not path.is_file():
        raise StoreError(f"{path}: no such file. `nowcastlab evaluate` writes one.")
    with open(path, "rb") as file:  # ours to close: numpy leaves it open where it cannot read it
        # asked of anything else, numpy talks of pickles and how to open them
        if file.read(len(_ZIP)) != _ZIP:
            raise StoreError(f"{path} is not a file of scores: not an .npz.")
        file.seek(0)
        try:
            content = np.load(file, allow_pickle=False)
        except _DAMAGE as error:
            raise StoreError(f"{path} is not a file of scores: not a readable .npz ({_reason(error)}).") from error
        lacking = [name for name in _REQUIRED if name not in content]
        if lacking:
            raise StoreError(f"{path} is not a file of scores: it has no {', '.join(f'`{name}`' for name in lacking)}.")
        arrays = {}
        for name in AXES:
            if name in content:
                try:
                    arrays[name] = content[name]
                except _DAMAGE as error:
                    raise StoreError(f"{path} is damaged: `{name}` cannot be read ({_reason(error)}).") from error
    return arrays


def _reason(error: BaseException) -> str:
    return str(error).split("\n")[0].rstrip(".") or type(error).__name__
