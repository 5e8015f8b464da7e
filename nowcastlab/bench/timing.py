"""Interleaved timing: every contender runs in every round, so a noisy machine slows all of them alike."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Timing:
    """Seconds of each round; compare medians of ratios, not of seconds."""

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)

    @property
    def median_s(self) -> float:
        return statistics.median(self.wall_s)

    def ratio_to(self, other: Timing, *, cpu: bool = False) -> float:
        """This contender's time over the other's: the median of the rounds' own ratios."""
        mine, theirs = (self.cpu_s, other.cpu_s) if cpu else (self.wall_s, other.wall_s)
        return statistics.median(a / b for a, b in zip(mine, theirs, strict=True))


def interleave(contenders: Mapping[str, Callable[[], object]], *, rounds: int, warmup: int = 1) -> dict[str, Timing]:
    """Run each contender once a round. CPU seconds count every thread of this process."""
    timings = {name: Timing() for name in contenders}
    for turn in range(-warmup, rounds):
        for name, work in contenders.items():
            wall, cpu = time.perf_counter(), time.process_time()
            work()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            if turn >= 0:
                timings[name].wall_s.append(wall)
                timings[name].cpu_s.append(cpu)
    return timings


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Hold this process to one core, where the system lets us: for claims that say "on one core"."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
