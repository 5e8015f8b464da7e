"""A sweep on N GPUs, on paper: how long, what it costs, and what would be the first to run short.

Everything follows from counted FLOPs, the config's own numbers and the assumptions below, which give way to what a user
knows. Trials are handed out as the driver does it: in order, each to the first GPU that is free.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TrialWork:
    """What one trial asks for, whoever does it."""

    key: str
    flops: float  # training, validating and testing
    updates: int
    frames: int  # read in training, a batch's frames an update
    checkpoint_bytes: int
    checkpoints: int
    tracked_values: int


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """None of these is measured on your machines. Defaults are for one A10G on a g5.2xlarge spot machine of AWS."""

    tflops: float = 6.0  # sustained, of 31 in the data sheet: small convolutions at batch 4 fill a GPU badly
    price_per_hour: float = 0.55  # of a machine with one GPU; on demand it is about 1.21
    head_price_per_hour: float = 0.10
    boot_minutes: float = 8.0  # start, packages, the copy of the store not counted
    idle_minutes: float = 10.0  # of the cluster file: paid after a machine's last trial
    interruptions_per_hour: float = 0.02  # of a spot machine: one in two days
    store_gb: float = 4.0  # HKO-7, compressed
    store_gb_per_s: float = 1.0  # of the shared storage, all readers together
    frame_kb: float = 17.0  # one compressed frame
    tracked_values_per_s: float = 400.0  # written to MLflow by the one driver; `nowcastlab bench scale` measures it


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """One row of the table."""

    gpus: int
    used: int  # of them, ever
    hours: float
    cost: float
    gpu_busy: float  # share of the paid GPU time that computes
    copy_minutes: float  # until every machine has the store, all starting at once
    storage_busy: float  # share of the shared storage's bandwidth, while trials run
    tracking_busy: float  # share of the driver's writes
    bottleneck: str


def outlook(work: Sequence[TrialWork], gpus: int, given: Assumptions) -> Outlook:
    """The sweep on so many GPUs, one trial each."""
    used = min(gpus, len(work))
    copy_s = used * given.store_gb / given.store_gb_per_s
    start_s = given.boot_minutes * 60 + copy_s
    ends = [(start_s, i) for i in range(used)]
    heapq.heapify(ends)
    last = [start_s] * len(ends)
    for trial in work:
        free, i = heapq.heappop(ends)
        last[i] = free + trial_seconds(trial, given)
        heapq.heappush(ends, (last[i], i))
    end_s = max(last)
    paid_s = sum(last) + len(last) * given.idle_minutes * 60
    computing_s = sum(trial_seconds(trial, given) for trial in work)
    cost = (paid_s * given.price_per_hour + (end_s + given.idle_minutes * 60) * given.head_price_per_hour) / 3600
    storage, tracking = loads(work, used, given)
    return Outlook(
        gpus=gpus,
        used=used,
        hours=end_s / 3600,
        cost=cost,
        gpu_busy=computing_s / paid_s,
        copy_minutes=copy_s / 60,
        storage_busy=storage,
        tracking_busy=tracking,
        bottleneck=_bottleneck(work, gpus, copy_s / end_s, storage, tracking),
    )


def trial_seconds(trial: TrialWork, given: Assumptions) -> float:
    """On one GPU, with what interruptions cost: half of what lies between checkpoints, and another machine's start."""
    plain = trial.flops / (given.tflops * 1e12)
    between_s = plain / max(trial.checkpoints, 1)
    lost_s = between_s / 2 + given.boot_minutes * 60 + given.store_gb / given.store_gb_per_s
    return plain + plain / 3600 * given.interruptions_per_hour * lost_s


def loads(work: Sequence[TrialWork], busy: int, given: Assumptions) -> tuple[float, float]:
    """What so many trials at once take of the shared storage, each node having a copy of the store, and of tracking."""
    seconds = sum(trial.flops for trial in work) / (given.tflops * 1e12)
    if not seconds:
        return 0.0, 0.0
    written = sum(trial.checkpoint_bytes * trial.checkpoints for trial in work) / seconds
    values = sum(trial.tracked_values for trial in work) / seconds
    return busy * written / (given.store_gb_per_s * 1e9), busy * values / given.tracked_values_per_s


def uncopied_load(work: Sequence[TrialWork], busy: int, given: Assumptions) -> float:
    """The share of the shared storage that training would take if every frame came from there."""
    seconds = sum(trial.flops for trial in work) / (given.tflops * 1e12)
    frames = sum(trial.frames for trial in work) / seconds if seconds else 0.0
    return busy * frames * given.frame_kb * 1e3 / (given.store_gb_per_s * 1e9)


def _bottleneck(work: Sequence[TrialWork], gpus: int, copying: float, storage: float, tracking: float) -> str:
    shared = {"storage": max(storage, copying), "tracking": tracking}
    name = max(shared, key=lambda which: shared[which])
    if shared[name] >= 0.8:
        return name
    return "GPU" if gpus < len(work) else "the longest trial"
