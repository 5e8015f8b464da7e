"""The next batch is read while this one is computed on; a thread does, since decoding needs no interpreter lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def read_ahead(read: Callable[[int], T], first: int, last: int) -> Iterator[tuple[int, T]]:
    """(step, read(step)) from first to last, in order, each read while the caller has the one before.

    What is read depends on the step alone, so reading early changes nothing.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="read-ahead") as reader:
        coming = reader.submit(read, first) if first <= last else None
        for step in range(first, last + 1):
            assert coming is not None
            here = coming.result()
            coming = reader.submit(read, step + 1) if step < last else None
            yield step, here
