"""What a run must keep for its scores to be resampled: sums by episode.

Windows of one episode overlap and share their weather, so they are not independent: an episode enters a resample whole.
Every score of the benchmark is a function of sums, so 6053 sequences shrink to 56 rows, a resample to a weighted sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nowcastlab.errors import ReportError
from nowcastlab.skill import COUNTS, ERRORS, SequenceScores


@dataclass(frozen=True, kw_only=True, eq=False)
class EpisodeSums:
    """One run's counts (episode, lead, threshold) and errors (episode, lead), summed over the episode's sequences."""

    sequences: NDArray[np.int64]  # (episode): how many there are
    lead_minutes: NDArray[np.float64]
    errors: Mapping[str, NDArray[np.float64]]
    counts: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)  # tp, fn, fp, tn; or none of them
    thresholds_mmh: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    # what the run was tested on: two runs can be paired only if these are equal
    start: NDArray[np.int64] | None = None
    episode: NDArray[np.int64] | None = None

    @property
    def episodes(self) -> int:
        return len(self.sequences)

    @property
    def observed(self) -> NDArray[np.int64]:
        """(episode, lead, threshold): pixels at which the truth reached the threshold, whatever the forecast."""
        return self.counts["tp"] + self.counts["fn"]

    @classmethod
    def from_scores(cls, scores: SequenceScores) -> EpisodeSums:
        """Of a radar benchmark."""
        _, first, index = np.unique(scores.episode, return_index=True, return_inverse=True)
        # in the order of the walk, so that equal inputs give equal bytes however episodes are numbered
        rank = np.argsort(np.argsort(first))[index]
        return cls(
            sequences=np.bincount(rank).astype(np.int64),
            lead_minutes=scores.lead_minutes,
            errors={name: _sum_rows(getattr(scores, name), rank) for name in ERRORS},
            counts={name: _sum_rows(getattr(scores, name), rank) for name in COUNTS},
            thresholds_mmh=scores.thresholds_mmh,
            start=scores.start,
            episode=rank,
        )

    @classmethod
    def from_errors(cls, errors: ArrayLike, *, name: str = "mse") -> EpisodeSums:
        """Of independent sequences, as MovingMNIST++ has: errors (sequence, lead), every sequence its own episode."""
        table = np.asarray(errors, np.float64)
        if table.ndim != 2 or not table.size or not np.isfinite(table).all():
            raise ReportError(f"Errors of shape {table.shape}: they must be finite, by (sequence, lead).")
        return cls(
            sequences=np.ones(len(table), np.int64),
            lead_minutes=np.arange(1.0, table.shape[1] + 1),
            errors={name: table},
        )


def check_paired(runs: Mapping[str, EpisodeSums]) -> None:
    """Refuse runs that were not tested on the same sequences: a paired test of those would be wrong in silence."""
    (first_name, first), *others = runs.items()
    for name, run in others:
        differs = _difference(first, run)
        if differs:
            raise ReportError(
                f"{name} and {first_name} cannot be compared: {differs}. "
                "Test both on the same split of the same store, or report them apart."
            )


def _difference(one: EpisodeSums, other: EpisodeSums) -> str | None:
    if one.episodes != other.episodes or one.sequences.sum() != other.sequences.sum():
        sizes = [f"{run.sequences.sum()} sequences in {run.episodes} episodes" for run in (other, one)]
        return f"the one has {sizes[0]}, the other {sizes[1]}"
    checks: dict[str, tuple[Any, Any]] = {
        "their leads differ": (one.lead_minutes, other.lead_minutes),
        "their thresholds differ": (one.thresholds_mmh, other.thresholds_mmh),
        "their sequences start at other times": (one.start, other.start),
        "their sequences belong to other episodes": (one.episode, other.episode),
        "their episodes are of other lengths": (one.sequences, other.sequences),
    }
    if bool(one.counts) != bool(other.counts):
        return "only one of them has counts"
    if one.counts:
        checks["the rain observed in them differs, so they saw other frames"] = (one.observed, other.observed)
    for text, (a, b) in checks.items():
        if (a is None) != (b is None) or (a is not None and not np.array_equal(a, b)):
            return text
    return None


def _sum_rows(rows: NDArray[Any], group: NDArray[np.int64]) -> NDArray[Any]:
    order = np.argsort(group, kind="stable")
    return np.add.reduceat(rows[order], np.searchsorted(group[order], np.arange(group.max() + 1)), axis=0)
