"""The scores of a run before anything is averaged: one row a sequence, so that pairing and resampling stay possible."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nowcastlab.errors import ConfigError

COUNTS = ("tp", "fn", "fp", "tn")
ERRORS = ("mse", "mae", "bmse", "bmae", "gdl")
# Each field's axes, in order; the optional ones come in groups that are there or not there together.
AXES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(COUNTS, ("sequence", "lead", "threshold")),
    **dict.fromkeys(ERRORS, ("sequence", "lead")),
    "start": ("sequence",),
    "episode": ("sequence",),
    "thresholds_mmh": ("threshold",),
    "lead_minutes": ("lead",),
    "fss_error": ("sequence", "lead", "threshold", "scale"),
    "fss_reference": ("sequence", "lead", "threshold", "scale"),
    "fss_scale_km": ("scale",),
    "fss_pixels": ("scale",),
    "spectrum_predicted": ("sequence", "lead", "band"),
    "spectrum_true": ("sequence", "lead", "band"),
    "spectrum_wavelength_km": ("band",),
}
OPTIONAL = {
    "fss": ("fss_error", "fss_reference", "fss_scale_km", "fss_pixels"),
    "spectrum": ("spectrum_predicted", "spectrum_true", "spectrum_wavelength_km"),
}
_INTEGERS = {*COUNTS, "start", "episode", "fss_error", "fss_reference", "fss_pixels"}
_SINGLES = {"spectrum_predicted", "spectrum_true"}
_PER_SEQUENCE = [name for name, axes in AXES.items() if axes[0] == "sequence"]


@dataclass(frozen=True, kw_only=True, eq=False)
class SequenceScores:
    """Counts and errors of every sequence and lead. Checked when made: what exists is consistent.

    Whole numbers of any width are taken, as others write them, and are int64 from then on.
    """

    tp: NDArray[np.int64]
    fn: NDArray[np.int64]
    fp: NDArray[np.int64]
    tn: NDArray[np.int64]
    # summed over a frame's valid pixels, in p units; 0 where the target is missing
    mse: NDArray[np.float64]
    mae: NDArray[np.float64]
    bmse: NDArray[np.float64]
    bmae: NDArray[np.float64]
    gdl: NDArray[np.float64]
    start: NDArray[np.int64]  # minutes since 1970-01-01 of the window's first frame
    episode: NDArray[np.int64]
    thresholds_mmh: NDArray[np.float64]
    lead_minutes: NDArray[np.float64]
    # fractions skill score = 1 - error / reference, both summable: whole numbers of pixels squared
    fss_error: NDArray[np.int64] | None = None
    fss_reference: NDArray[np.int64] | None = None
    fss_scale_km: NDArray[np.float64] | None = None
    fss_pixels: NDArray[np.int64] | None = None  # side of the window that stands for the scale
    # radially averaged power, float32: it is read off a logarithmic axis
    spectrum_predicted: NDArray[np.float32] | None = None
    spectrum_true: NDArray[np.float32] | None = None
    spectrum_wavelength_km: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        _check_shapes(self.arrays())
        for name, array in self.arrays().items():
            object.__setattr__(self, name, array.astype(_dtype(name), copy=False))
        _check_values(self)

    def __len__(self) -> int:
        return len(self.start)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Every field that is there, by name."""
        named = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: array for name, array in named.items() if array is not None}

    @property
    def episodes(self) -> int:
        return len(np.unique(self.episode))

    @property
    def missing(self) -> NDArray[np.bool_]:
        """(sequence, lead): the target was missing, or not one of its pixels valid."""
        return (self.tp + self.fn + self.fp + self.tn)[:, :, 0] == 0


def concatenate(parts: Sequence[SequenceScores]) -> SequenceScores:
    """The parts' sequences in order. Scored in one piece or in many, a run gives the same arrays."""
    if not parts:
        raise ConfigError("Nothing was scored: there are no parts to put together.")
    arrays = [part.arrays() for part in parts]
    first = arrays[0]
    for i, other in enumerate(arrays):
        if other.keys() != first.keys():
            raise ConfigError(f"Part {i} and part 0 differ in {', '.join(sorted(other.keys() ^ first.keys()))}.")
        for name in first.keys() - set(_PER_SEQUENCE):
            if not np.array_equal(first[name], other[name]):
                raise ConfigError(f"Part {i} has `{name}` {other[name].tolist()}, part 0 {first[name].tolist()}.")
    joined = {name: np.concatenate([a[name] for a in arrays]) for name in first if name in _PER_SEQUENCE}
    return SequenceScores(**{**first, **joined})


def _dtype(name: str) -> type[np.generic]:
    return np.int64 if name in _INTEGERS else np.float32 if name in _SINGLES else np.float64


def _check_shapes(arrays: dict[str, NDArray[Any]]) -> None:
    lengths: dict[str, tuple[int, str]] = {}
    for name, array in arrays.items():
        kinds = "iu" if name in _INTEGERS else "fiu"
        if array.dtype.kind not in kinds:
            raise ConfigError(f"`{name}` holds {array.dtype}, not {'integers' if kinds == 'iu' else 'numbers'}.")
        axes = AXES[name]
        if array.ndim != len(axes):
            raise ConfigError(f"`{name}` has shape {array.shape}; its axes are ({', '.join(axes)}).")
        for axis, n in zip(axes, array.shape, strict=True):
            known, by = lengths.setdefault(axis, (n, name))
            if n != known:
                raise ConfigError(f"`{name}` has shape {array.shape}: {n} along {axis}, where `{by}` has {known}.")
    for group, names in OPTIONAL.items():
        there = [name for name in names if name in arrays]
        if there and len(there) < len(names):
            lacking = ", ".join(f"`{name}`" for name in names if name not in arrays)
            raise ConfigError(f"The {group} arrays come together: {lacking} missing beside `{there[0]}`.")


def _check_values(scores: SequenceScores) -> None:
    for name in ("thresholds_mmh", "lead_minutes"):
        values = getattr(scores, name)
        if not len(values) or not np.isfinite(values).all() or values[0] <= 0 or (np.diff(values) <= 0).any():
            raise ConfigError(f"`{name}` (={values.tolist()}) must be positive and increase.")
    for name in COUNTS:
        if (getattr(scores, name) < 0).any():
            raise ConfigError(f"`{name}` holds negative counts.")
    for name in (*ERRORS, "spectrum_predicted", "spectrum_true"):
        values = getattr(scores, name)
        if values is not None and (not np.isfinite(values).all() or (values < 0).any()):
            raise ConfigError(f"`{name}` holds values that are not finite or negative.")
    pixels = scores.tp + scores.fn + scores.fp + scores.tn
    if (pixels != pixels[..., :1]).any():
        raise ConfigError("`tp` + `fn` + `fp` + `tn` is a frame's valid pixels, yet differs between thresholds.")
    for what, events in (("observed", scores.tp + scores.fn), ("forecast", scores.tp + scores.fp)):
        if (np.diff(events, axis=-1) > 0).any():
            raise ConfigError(f"More pixels are {what} at a higher threshold than at a lower one.")
    error, reference = scores.fss_error, scores.fss_reference
    if error is not None and reference is not None and ((error < 0) | (error > reference)).any():
        raise ConfigError("`fss_error` must lie between 0 and `fss_reference`.")
