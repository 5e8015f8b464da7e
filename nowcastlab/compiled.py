"""Loops that numba compiles. They run without the interpreter lock and own no threads: the caller splits the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Loops = TypeVar("Loops", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Loops], Loops]:
    """A decorator; options as of numba's `njit`. The compiled code is kept beside the source, for the next process."""

    def decorate(function: Loops) -> Loops:
        try:
            return njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # nowhere to keep it, as in a read-only image: compile anew in each process
            return njit(nogil=True, **options)(function)

    return decorate
