"""A few threads for compiled loops that give up the interpreter lock.

numba has threads of its own, but which kind depends on what is installed, and the one that is always there ends the
process if two Python threads use it at once. These are plain, and as many as torch is told to use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import torch

_pool: ThreadPoolExecutor | None = None


def parts(total: int, *, at_least: int) -> list[tuple[int, int]]:
    """Split a range for torch's number of threads, into parts worth a thread's while."""
    count = max(1, min(torch.get_num_threads(), total // at_least))
    bounds = [total * k // count for k in range(count + 1)]
    return list(pairwise(bounds))


def share(total: int, loop: Callable[..., None], *arguments: Any, at_least: int) -> None:
    """Run a loop over a range, `loop(*arguments, first, last)`, by as many threads as torch has."""
    if torch.get_num_threads() == 1:
        loop(*arguments, 0, total)  # as below, but small networks call this a thousand times a step
    else:
        in_parallel([partial(loop, *arguments, *part) for part in parts(total, at_least=at_least)])


def in_parallel(jobs: Sequence[Callable[[], None]]) -> None:
    """Run all jobs, the first on the calling thread, and return when the last is done."""
    global _pool
    if len(jobs) == 1:
        return jobs[0]()
    if _pool is None:
        _pool = ThreadPoolExecutor(max_workers=os.cpu_count(), thread_name_prefix="nowcastlab")
    waiting = [_pool.submit(job) for job in jobs[1:]]
    jobs[0]()
    for one in waiting:
        one.result()
    return None


def _forget_pool() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):  # a forked child inherits the pool, but none of its threads
    os.register_at_fork(after_in_child=_forget_pool)
