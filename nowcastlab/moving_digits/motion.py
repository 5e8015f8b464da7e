"""What is random in a sequence of moving digits, drawn from (seed, index) or read from the official test file.

Axes: n sequences, d digits in each. Lengths are in pixels of a 64x64 frame, whatever the frame's size will be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nowcastlab.errors import ConfigError, CorruptStore, StoreError


@dataclass(frozen=True, kw_only=True)
class Preset:
    """The ranges of the paper's appendix; each value is uniform in its range."""

    name: str
    max_rotation_deg: float  # a frame, either way
    max_speed: float = 3.6  # pixels a frame
    max_scale: float = 1.1  # a frame, from 1/max_scale
    min_illumination: float = 0.6  # a frame, up to 1


PRESETS = {
    # Shi et al. 2017, appendix: within pi/12.
    "paper": Preset(name="paper", max_rotation_deg=15.0),
    # The authors' release, and its file of test parameters.
    "release": Preset(name="release", max_rotation_deg=30.0),
}

# Each split is its own family of random streams: no training seed can ever give a test sequence.
SPLITS = {"train": 0, "valid": 1, "test": 2}
_DRAWS_A_DIGIT = 7


@dataclass(frozen=True, kw_only=True, eq=False)
class Motion:
    """The parameters of n sequences, named as the physics is; `render` makes frames of them."""

    digit: NDArray[np.int64]  # (n, d) which image
    corner: NDArray[np.float64]  # (n, d, 2) x, y of the top-left corner at first, as a share of the room there is
    heading_rad: NDArray[np.float64]  # (n, d) direction of travel, 0 to the right, turning downward
    speed: NDArray[np.float64]  # (n, d) pixels a frame
    rotation_deg: NDArray[np.float64]  # (n, d) a frame, counter-clockwise
    scale: NDArray[np.float64]  # (n, d) factor a frame, by turns divided and multiplied
    illumination: NDArray[np.float64]  # (n,) factor a frame, by turns multiplied and divided: one light for all digits

    def __len__(self) -> int:
        return len(self.illumination)

    def take(self, indices: Any) -> Motion:
        """Some of the sequences: a slice, or row numbers."""
        return Motion(**{field.name: getattr(self, field.name)[indices] for field in fields(self)})


def draw(
    preset: Preset, seed: int, indices: Iterable[int], *, digits: int, choices: int, split: str = "train"
) -> Motion:
    """Sequence `index` of `seed`, for each index: a function of these two (and the split) alone.

    Presets differ in nothing but the range a draw is stretched to, so a sequence of one preset is the other's with its
    rotation doubled. A sequence with more digits begins with those of one with fewer.
    """
    if split not in SPLITS:
        raise ConfigError(f"No split '{split}'. The splits are: {', '.join(SPLITS)}.")
    rows = [int(index) for index in indices]
    if seed < 0 or min(rows, default=0) < 0:
        raise ConfigError(f"`seed` (={seed}) and every index (smallest: {min(rows, default=0)}) must be at least 0.")
    uniform = np.empty((len(rows), 1 + _DRAWS_A_DIGIT * digits))
    for row, index in enumerate(rows):
        stream = np.random.SeedSequence(seed, spawn_key=(SPLITS[split], index))
        np.random.Generator(np.random.PCG64(stream)).random(out=uniform[row])
    each = uniform[:, 1:].reshape(len(rows), digits, _DRAWS_A_DIGIT)
    low_scale = 1 / preset.max_scale
    return Motion(
        digit=(each[..., 0] * choices).astype(np.int64),
        corner=each[..., 1:3],
        heading_rad=each[..., 3] * 2 * np.pi,
        speed=each[..., 4] * preset.max_speed,
        rotation_deg=(2 * each[..., 5] - 1) * preset.max_rotation_deg,
        scale=low_scale + each[..., 6] * (preset.max_scale - low_scale),
        illumination=preset.min_illumination + uniform[:, 0] * (1 - preset.min_illumination),
    )


# The arrays of `movingmnist_10000_nodistr.npz`: ours, its name, and the range the release draws it from. A corner is
# (x, y) as a share of what the cropped digit leaves free of the frame's width and height.
_OFFICIAL = {
    "digit": ("digit_indices", 0, 39_999),
    "corner": ("affine_transforms_multipliers", 0, 1),
    "heading_rad": ("init_velocity_angle", 0, 2 * np.pi),
    "speed": ("init_velocity_magnitude", 0, 3.6),
    "rotation_deg": ("base_rotation_angle", -30, 30),
    "scale": ("scale_variation", 1 / 1.1, 1.1),
    "illumination": ("appearance_mult", 0.6, 1),
}
_MOST_SEQUENCES = 1_000_000


def read_official(path: Path | str) -> Motion:
    """The parameters of the authors' test set, `movingmnist_10000_nodistr.npz`: 10,000 sequences of three digits."""
    if not Path(path).is_file():
        raise StoreError(
            f"No test parameters at {path}. The authors' release has them as movingmnist_10000_nodistr.npz."
        )
    found: dict[str, NDArray[Any]] = {}
    try:
        # Opened here: numpy leaves a file it cannot read open.
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            for ours, (theirs, _, _) in _OFFICIAL.items():
                if theirs not in archive.files:
                    raise CorruptStore(f"{path} has no array '{theirs}'; it has {', '.join(archive.files)}.")
                found[ours] = archive[theirs]
    except CorruptStore:
        raise
    except Exception as error:  # zipfile, zlib and numpy each have their own
        raise CorruptStore(f"{path} is not a readable npz of test parameters ({error}). Get it again.") from error
    _check_official(found, path)
    digit = found.pop("digit").astype(np.int64)
    return Motion(digit=digit, **{name: array.astype(np.float64) for name, array in found.items()})


def _check_official(found: dict[str, NDArray[Any]], path: Path | str) -> None:
    pair = found["digit"].shape
    if len(pair) != 2 or not 0 < len(found["digit"]) <= _MOST_SEQUENCES:
        raise CorruptStore(f"{path}: `digit_indices` must be (sequences, digits), got {pair}.")
    wanted = {"corner": (*pair, 2), "illumination": pair[:1]}
    for ours, (theirs, low, high) in _OFFICIAL.items():
        array = found[ours]
        kinds = "iu" if ours == "digit" else "f"
        if array.shape != wanted.get(ours, pair) or array.dtype.kind not in kinds:
            raise CorruptStore(
                f"{path}: `{theirs}` must be {wanted.get(ours, pair)} numbers, got {array.shape} of {array.dtype}."
            )
        if not np.all((array >= low) & (array <= high)):
            raise CorruptStore(
                f"{path}: `{theirs}` runs from {array.min():.6g} to {array.max():.6g}, outside [{low:.6g}, {high:.6g}]."
            )
