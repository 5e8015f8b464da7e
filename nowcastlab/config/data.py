"""What a run learns from: a radar store, or moving digits.

Both carry the digest of their data, so a config says what was seen, not only where it lay. `of` reads it off.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Self

from nowcastlab.config.checks import one_of, text, whole
from nowcastlab.errors import ConfigError
from nowcastlab.moving_digits import PRESETS

# Fields that say where or how fast, not what: they are kept out of a config's identity.
ELSEWHERE = {"identity": False}


@dataclass(frozen=True, kw_only=True)
class RadarData:
    """Windows of a store. The defaults are the benchmark's: 5 frames in, 20 out, a walk of stride 5."""

    kind: ClassVar[str] = "radar"
    dataset: ClassVar[str] = "hko7"  # whose networks the model's name is looked up among

    store: str = field(metadata=ELSEWHERE)  # path or URL; the digest says what must be found there
    digest: str
    height: int
    width: int
    interval_minutes: int
    in_frames: int = 5
    leads: int = 20
    walk_stride: int = 5  # of the validation walk, in frames
    max_missing: int = 2  # in a row, in a window
    valid_windows: int | None = None  # spread evenly over the walk; None is the whole walk

    @classmethod
    def of(cls, store: str, **changes: Any) -> Self:
        """The windows of a store that is there: its grid, interval and digest are read from it."""
        from nowcastlab.store import open_store

        opened = open_store(store)
        height, width = opened.grid
        return cls(
            store=absolute(store),
            digest=opened.digest,
            height=height,
            width=width,
            interval_minutes=opened.interval_minutes,
            **changes,
        )

    def __post_init__(self) -> None:
        text("data.store", self.store)
        text("data.digest", self.digest)
        for name in ("height", "width", "interval_minutes", "in_frames", "leads", "walk_stride"):
            whole(f"data.{name}", getattr(self, name), least=1)
        whole("data.max_missing", self.max_missing, least=0)
        if self.valid_windows is not None:
            whole("data.valid_windows", self.valid_windows, least=1)
        if self.max_missing >= self.frames:
            raise ConfigError(
                f"data.max_missing (={self.max_missing}) would let a window of {self.frames} frames be empty. "
                f"Use {self.frames - 1} or less; the benchmark uses 2."
            )

    @property
    def frames(self) -> int:
        return self.in_frames + self.leads


@dataclass(frozen=True, kw_only=True)
class DigitsData:
    """MovingMNIST++, made as it is needed. The defaults are the paper's."""

    kind: ClassVar[str] = "digits"
    dataset: ClassVar[str] = "mnist"

    digits: str  # which handwriting: mnist, or sklearn-digits
    digest: str  # of its images
    preset: str = "paper"  # rotation within 15 degrees a frame, or within 30 (release)
    size: int = 64
    count: int = 3
    in_frames: int = 10
    leads: int = 10
    valid_sequences: int = 1000

    @classmethod
    def of(cls, digits: str | None = None, **changes: Any) -> Self:
        """With no name, the digits of this machine: MNIST where it has been fetched, else scikit-learn's."""
        name, digest = _handwriting(digits)
        return cls(digits=name, digest=digest, **changes)

    def __post_init__(self) -> None:
        text("data.digits", self.digits)
        text("data.digest", self.digest)
        one_of("data.preset", self.preset, PRESETS)
        whole("data.size", self.size, least=16)
        for name in ("count", "in_frames", "leads", "valid_sequences"):
            whole(f"data.{name}", getattr(self, name), least=1)

    @property
    def frames(self) -> int:
        return self.in_frames + self.leads

    @property
    def height(self) -> int:
        return self.size

    @property
    def width(self) -> int:
        return self.size


Data = RadarData | DigitsData
KINDS: dict[str, type[RadarData] | type[DigitsData]] = {kind.kind: kind for kind in (RadarData, DigitsData)}


def absolute(url: str) -> str:
    """A path that means the same wherever a worker stands; a URL does already."""
    return str(url) if "://" in str(url) else os.path.abspath(url)


@lru_cache
def _handwriting(name: str | None) -> tuple[str, str]:
    from nowcastlab.moving_digits import load_digits

    digits = load_digits(name)
    return digits.name, digits.digest
