"""Checks of single values. Each message names the field, the value it got and what would do."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import Any

from nowcastlab.errors import ConfigError

DEVICE = re.compile(r"auto|cpu|cuda(:[0-9]+)?")


def whole(name: str, value: Any, *, least: int, most: float = math.inf) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        high = f" to {most}" if most < math.inf else ""
        raise ConfigError(f"{name} (={value!r}) must be a whole number from {least}{high}.")
    return value


def number(
    name: str, value: Any, *, above: float | None = None, least: float | None = None, most: float = math.inf
) -> float:
    """A finite number as a float, so that 1 and 1.0 are one setting with one identity."""
    low = f"above {above:g}" if above is not None else f"from {least:g}" if least is not None else ""
    high = f" to {most:g}" if most < math.inf else ""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not fits or (above is not None and value <= above) or (least is not None and value < least) or value > most:
        raise ConfigError(f"{name} (={value!r}) must be a number {low}{high}.")
    return float(value)


def text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{name} (={value!r}) must be a word.")
    return value


def truth(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{name} (={value!r}) must be true or false.")
    return value


def one_of(name: str, value: Any, known: Collection[str]) -> str:
    if not isinstance(value, str) or value not in known:
        raise ConfigError(f"{name} (={value!r}) is unknown. There are: {', '.join(known)}.")
    return value


def device(value: Any) -> str:
    """Where to compute. What torch knows beyond these, as mps, has not been tried."""
    if not isinstance(value, str) or not DEVICE.fullmatch(value):
        raise ConfigError(f"device (={value!r}) must be auto, cpu, cuda, or one of several, as cuda:1.")
    return value


def frozen(name: str, value: Any) -> Any:
    """A plain value of JSON's kinds with its lists made tuples, so that code and files mean the same by it."""
    if isinstance(value, list | tuple):
        return tuple(frozen(name, item) for item in value)
    if isinstance(value, dict):
        return {text(name, key): frozen(f"{name}.{key}", value[key]) for key in sorted(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ConfigError(
        f"{name} (={value!r}) must be made of numbers, words, lists and tables: a config is kept as JSON."
    )
