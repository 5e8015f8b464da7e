"""One progress bar for all long work: rate and remaining time on a terminal, silence elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TypeVar

from tqdm import tqdm

T = TypeVar("T")


def progress(items: Iterable[T] | None = None, *, total: int | None = None, label: str, unit: str) -> Any:
    """A tqdm bar on standard error, shown only where a person watches.

    >>> for day in progress(days, label="ingest", unit="day"): ...
    """
    return tqdm(
        items,
        total=total,
        desc=label,
        unit=f" {unit}",
        disable=not sys.stderr.isatty(),
        dynamic_ncols=True,
        leave=True,
    )
