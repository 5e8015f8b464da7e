"""The days of a store that a command goes through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nowcastlab.errors import StoreError

if TYPE_CHECKING:
    from nowcastlab.store import Day, Store


def days_of(store: Store, split: str | None, *, to: str) -> list[Day]:
    """Those of one split, or all; refused where they hold no frame `to` do anything with."""
    days = [day for day in store.days if split is None or day.split == split]
    if not any(day.frames for day in days):
        raise StoreError(f"{store.url} has no frames{f' for {split}' if split else ''}: nothing to {to}.")
    return days
