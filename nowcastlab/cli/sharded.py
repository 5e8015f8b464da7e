"""An offline run cut into parts that Ray's workers score."""

from __future__ import annotations

from nowcastlab import engine
from nowcastlab.protocol import OfflineRun
from nowcastlab.skill import SequenceScores, concatenate

PARTS_PER_WORKER = 8  # enough for a bar that moves, and for a slow worker to be waited for only briefly


def sharded_scores(run: OfflineRun, *, workers: int | None = None) -> SequenceScores:
    """The scores of a run, to the bit those of `run.scores()` on one thread. Ray must be connected.

    By so many workers at once, or as many as there are CPUs.
    """
    step = max(1, run.batches // (PARTS_PER_WORKER * (workers or engine.cpus())))
    parts = [(first, min(first + step, run.batches)) for first in range(0, run.batches, step)]

    def score(part: tuple[int, int]) -> SequenceScores:
        import torch

        torch.set_num_threads(1)  # the number of threads decides last bits
        return run.part(*part)

    done = dict(engine.map_unordered(score, parts, label="evaluate", unit="part", at_once=workers))
    return concatenate([done[part] for part in parts])
