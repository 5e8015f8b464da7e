"""The generator as a training loop sees it, and the two test sets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nowcastlab.errors import ConfigError
from nowcastlab.moving_digits.digits import MNIST, Digits
from nowcastlab.moving_digits.motion import PRESETS, Motion, draw, read_official
from nowcastlab.moving_digits.render import render

PAPER_SIZE = 64
BOUNCE_MARGIN = 10.0  # pixels of a 64x64 frame
TEST_COUNT = 10_000
_GENERATOR = 1  # goes into the digest: raise it whenever the same settings give other frames


class MovingDigits:
    """An endless source of sequences, float32 from 0 to 1/0.6 = 1.67: the light goes above 1, nothing is clipped.

    The world is 64 pixels wide whatever the frame: a frame of another `size` shows it coarser or finer, with digits,
    speed and the bouncing margin scaled alike. So sequence (seed, index) is the same scene at every size, and small
    frames are a cheaper version of the task, not a different one. (Two digits in 32x32 do for a demonstration: they are
    about 10 pixels high there, and still readable.)

    preset   'paper' turns a digit by up to 15 degrees a frame, 'release' (the authors' code and test file) by up to 30
    count    digits in a sequence
    frames   frames in a sequence; beyond the paper's 20 the five-frame rhythm goes on
    """

    def __init__(
        self, digits: Digits, *, preset: str = "paper", size: int = PAPER_SIZE, count: int = 3, frames: int = 20
    ) -> None:
        if preset not in PRESETS:
            raise ConfigError(f"No preset '{preset}'. The presets are: {', '.join(PRESETS)}.")
        for name, value, least in (("size", size, 16), ("count", count, 1), ("frames", frames, 1)):
            if value < least:
                raise ConfigError(f"`{name}` (={value}) must be at least {least}.")
        self.digits, self.preset, self.size, self.count, self.frames = digits, PRESETS[preset], size, count, frames
        self._images, self._heights, self._widths = _cut_out(digits.images, size / PAPER_SIZE)
        if max(self._images.shape[1:]) > size:
            raise ConfigError(
                f"The digits of '{digits.name}' are up to {self._images.shape[1]}x{self._images.shape[2]} pixels in a "
                f"{size}x{size} frame. Give smaller images."
            )

    def __repr__(self) -> str:
        return (
            f"{self.frames} frames {self.size}x{self.size}, {self.count} digits of '{self.digits.name}', "
            f"preset '{self.preset.name}'"
        )

    @cached_property
    def digest(self) -> str:
        """What this source gives: equal for two sources exactly if all their sequences are."""
        settings = [_GENERATOR, vars(self.preset) | {"name": None}, self.size, self.count, self.frames]
        content = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        for array in (self._images, self._heights, self._widths):
            content.update(array.data)
        return content.hexdigest()

    def describe(self) -> dict[str, str | int]:
        """What a run should record beside its numbers."""
        return {
            "digits": self.digits.name,
            "digits_digest": self.digits.digest,
            "preset": self.preset.name,
            "size": self.size,
            "count": self.count,
            "frames": self.frames,
            "digest": self.digest,
        }

    def batch(self, seed: int, indices: Iterable[int], *, split: str = "train") -> NDArray[np.float32]:
        """Sequences `indices` of `seed`: float32 (n, frames, size, size). The splits never share a sequence."""
        return self.render(self.motion(seed, indices, split=split))

    def training_batch(self, seed: int, step: int, batch_size: int) -> NDArray[np.float32]:
        """The batch of training step `step`: a function of (seed, step) alone, and never seen before in this run."""
        return self.batch(seed, range(step * batch_size, (step + 1) * batch_size))

    def motion(self, seed: int, indices: Iterable[int], *, split: str = "train") -> Motion:
        return draw(self.preset, seed, indices, digits=self.count, choices=len(self.digits), split=split)

    def cut_out(self, digit: int) -> NDArray[np.uint8]:
        """One digit as it is moved about: without its empty rows and columns, at the size it has in the frame."""
        return self._images[digit, : self._heights[digit], : self._widths[digit]]

    def render(self, motion: Motion) -> NDArray[np.float32]:
        """The frames of given motions, which need not come from this source's own draws."""
        if motion.digit.size and not 0 <= motion.digit.min() <= motion.digit.max() < len(self.digits):
            raise ConfigError(
                f"The motion asks for digits {motion.digit.min()} to {motion.digit.max()}; "
                f"'{self.digits.name}' has 0 to {len(self.digits) - 1}."
            )
        zoom = self.size / PAPER_SIZE
        direction = np.stack([np.cos(motion.heading_rad), np.sin(motion.heading_rad)], axis=-1)
        frames = np.zeros((len(motion), self.frames, self.size, self.size), np.float32)
        render(
            self._images,
            self._heights,
            self._widths,
            np.ascontiguousarray(motion.digit),
            np.ascontiguousarray(motion.corner),
            direction * motion.speed[..., None] * zoom,
            np.deg2rad(motion.rotation_deg),
            np.ascontiguousarray(motion.scale),
            np.ascontiguousarray(motion.illumination),
            BOUNCE_MARGIN * zoom,
            frames,
        )
        return frames


@dataclass(frozen=True, kw_only=True, eq=False)
class TestSet:
    """Fixed sequences, rendered when asked for: 10,000 of them would fill 3.3 GB."""

    __test__ = False  # not a test case, whatever pytest thinks of the name

    name: str
    source: MovingDigits
    motion: Motion

    def __len__(self) -> int:
        return len(self.motion)

    def batch(self, indices: Iterable[int]) -> NDArray[np.float32]:
        return self.source.render(self.motion.take(np.fromiter(indices, np.int64)))


def generated_test(source: MovingDigits, *, count: int = TEST_COUNT) -> TestSet:
    """A test set for any source, always the same: seed 0 of the test split, which no training seed reaches."""
    return TestSet(name="generated", source=source, motion=source.motion(0, range(count), split="test"))


def official_test(source: MovingDigits, path: Path | str) -> TestSet:
    """The authors' 10,000 sequences, from the parameter file of their release. Nothing but their own task is that."""
    motion = read_official(path)
    asked = (source.digits.name, source.preset.name, source.size, source.count, source.frames)
    official = (MNIST, "release", PAPER_SIZE, motion.digit.shape[1], 20)
    if asked != official:
        raise ConfigError(
            f"The official test set is 20 frames {PAPER_SIZE}x{PAPER_SIZE}, {official[3]} digits of '{MNIST}', preset "
            f"'release' (digits turn by up to 30 degrees a frame); this source is {source}. Change the source, or "
            f"test on generated sequences."
        )
    return TestSet(name="official", source=source, motion=motion)


def _cut_out(images: NDArray[np.uint8], zoom: float) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Each digit without its empty rows and columns, scaled, in the top-left of its own image; and heights, widths.

    The release drops an empty row or column also inside a digit: one MNIST digit in eighty has such a gap. The
    official test set can only be reproduced by doing the same.
    """
    rows, columns = np.asarray(images.any(axis=2)), np.asarray(images.any(axis=1))
    heights, widths = rows.sum(axis=1), columns.sum(axis=1)
    packed = np.zeros((len(images), heights.max(), widths.max()), np.uint8)
    for i, image in enumerate(images):
        packed[i, : heights[i], : widths[i]] = image[rows[i]][:, columns[i]]
    if zoom != 1:
        packed, heights, widths = _scaled(packed, heights, widths, zoom)
    return packed, heights, widths


def _scaled(
    packed: NDArray[np.uint8], heights: NDArray[np.int64], widths: NDArray[np.int64], zoom: float
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """The digits at another size, in whole pixels: each new pixel is the mean of what it covers of the old ones."""
    new_heights, new_widths = (np.maximum(1, np.rint(old * zoom).astype(np.int64)) for old in (heights, widths))
    scaled = np.zeros((len(packed), new_heights.max(), new_widths.max()), np.uint8)
    for height, width in np.unique(np.stack([heights, widths], axis=1), axis=0).tolist():
        same = np.flatnonzero((heights == height) & (widths == width))
        h, w = int(new_heights[same[0]]), int(new_widths[same[0]])
        total = _overlap(height, h) @ packed[same, :height, :width].astype(np.float64) @ _overlap(width, w).T
        # All whole numbers below 2**53, so exact: the same bytes, and the same digest, on every machine.
        scaled[same, :h, :w] = (2 * total.astype(np.int64) + height * width) // (2 * height * width)
    return scaled, new_heights, new_widths


def _overlap(old: int, new: int) -> NDArray[np.float64]:
    """How much each of `new` pixels covers of each of `old`, in units of 1/(old * new) of the whole: (new, old)."""
    starts, ends = np.arange(old) * new, np.arange(1, old + 1) * new
    new_starts, new_ends = np.arange(new)[:, None] * old, np.arange(1, new + 1)[:, None] * old
    return np.maximum(0, np.minimum(ends, new_ends) - np.maximum(starts, new_starts)).astype(np.float64)
