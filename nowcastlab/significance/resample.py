"""The paired hierarchical bootstrap: episodes and seeds resampled together, every score recomputed.

    trained = Arm(name="TrajGRU", runs={1: sums, 2: sums, 3: sums})
    arms = [trained, Arm(name="ROVER", runs={0: sums}, deterministic=True)]
    benchmark = resample(arms, seed=0)
    compare(benchmark, "TrajGRU", "ROVER", Cell(score="csi", threshold_mmh=30.0))

Every arm gets the same draw of episodes (that is the pairing); its seeds are drawn on their own, since the seeds of two
arms have nothing in common but the number. One resample of one run is a weighted sum of its 56 rows, so all resamples
of a run are one matrix product.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nowcastlab.errors import ReportError
from nowcastlab.significance.episodes import EpisodeSums, check_paired
from nowcastlab.significance.sign_flips import MOST_EPISODES
from nowcastlab.skill import COUNTS, ERRORS, SKILL, lead_mean

BENCHMARK_SCORES = ("csi", "hss", "bmse", "bmae")
# +1: higher is better; -1: lower; 0: neither, it should be 1
BETTER = {"csi": 1, "hss": 1, "pod": 1, "gss": 1, "far": -1, "bias": 0, **dict.fromkeys(ERRORS, -1)}
assert BETTER.keys() == {*SKILL, *ERRORS}


@dataclass(frozen=True, kw_only=True, order=True)
class Cell:
    """One number of a table: a score, at a threshold where it has one, over all leads or at one."""

    score: str
    threshold_mmh: float | None = None
    lead_minutes: float | None = None

    @property
    def better(self) -> int:
        return BETTER[self.score]

    def __str__(self) -> str:
        title = {"bmse": "B-MSE", "bmae": "B-MAE", "bias": "bias"}.get(self.score, self.score.upper())
        rate = "" if self.threshold_mmh is None else f" at {self.threshold_mmh:g} mm/h"
        lead = "" if self.lead_minutes is None else f", {self.lead_minutes:g} minutes ahead"
        return f"{title}{rate}{lead}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Arm:
    """A row of the table: its runs by seed. A deterministic arm has one run, and no seed could have changed it."""

    name: str
    runs: Mapping[int, EpisodeSums]
    deterministic: bool = False

    def __post_init__(self) -> None:
        if not self.runs:
            raise ReportError(f"Arm {self.name} has no finished run.")
        if self.deterministic and len(self.runs) > 1:
            raise ReportError(f"Arm {self.name} is deterministic, yet has {len(self.runs)} runs. Give it one.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Benchmark:
    """Every score of every run, on the test set itself and on each resample of its episodes."""

    arms: Mapping[str, Arm]
    cells: tuple[Cell, ...]
    scores: Mapping[str, NDArray[np.float64]]  # by arm: (seed, cell)
    resampled: Mapping[str, NDArray[np.float64]]  # by arm: (resample, seed, cell), the same episodes for every arm
    seed_draws: Mapping[str, NDArray[np.float64]]  # by arm: (resample, seed), how often drawn / number of seeds
    weights: Mapping[str, NDArray[np.float64]]  # by arm: (cell, episode), shares that sum to 1
    # by arm: (cell, episode), the mean over seeds with that episode left out; no episodes where there are too many
    without: Mapping[str, NDArray[np.float64]]

    @cached_property
    def _index(self) -> dict[Cell, int]:
        return {cell: i for i, cell in enumerate(self.cells)}

    def index(self, cell: Cell) -> int:
        if cell not in self._index:
            raise ReportError(f"{cell} was not resampled. There are: {'; '.join(map(str, self.cells))}.")
        return self._index[cell]

    def arm(self, name: str) -> Arm:
        if name not in self.arms:
            raise ReportError(f"No arm '{name}'. The arms are: {', '.join(self.arms)}.")
        return self.arms[name]

    @property
    def episodes(self) -> int:
        return next(iter(next(iter(self.arms.values())).runs.values())).episodes

    @property
    def resamples(self) -> int:
        return len(next(iter(self.resampled.values())))


def resample(
    arms: Sequence[Arm],
    *,
    seed: int,
    resamples: int = 10_000,
    scores: Sequence[str] = BENCHMARK_SCORES,
    by_lead: bool = False,
    watch: Callable[[Iterator[Any]], Any] = iter,
) -> Benchmark:
    """Draw episodes and seeds `resamples` times. The same arms and seed give the same bytes.

    `by_lead` adds a cell for every lead, for curves; with 20 leads that is 21 times the memory, so ask for fewer
    resamples then. Episodes are drawn from `seed`, an arm's seeds from `seed` and the arm's name: a further arm changes
    nothing in the others.
    """
    if len({arm.name for arm in arms}) < len(arms) or not arms:
        raise ReportError(f"Arms need names of their own, got {[arm.name for arm in arms]}.")
    if resamples < 100:
        raise ReportError(f"`resamples` (={resamples}) must be at least 100 for a variance to mean anything.")
    runs = {f"{arm.name}, seed {s}": run for arm in arms for s, run in arm.runs.items()}
    check_paired(runs)
    first = next(iter(runs.values()))
    for score in scores:
        if (
            score not in BETTER
            or (score in SKILL and not first.counts)
            or (score in ERRORS and score not in first.errors)
        ):
            there = [*(SKILL if first.counts else ()), *first.errors]
            raise ReportError(f"No score '{score}' in these runs. There are: {', '.join(there)}.")
    flat = {arm.name: [_Run(run, scores, by_lead) for run in arm.runs.values()] for arm in arms}
    once = np.ones((1, first.episodes))
    common = _Run(first, scores, by_lead)
    values = {arm.name: np.empty((resamples, len(arm.runs), len(common.cells))) for arm in arms}
    for rows, weights in watch(_episode_draws(first.episodes, resamples, seed)):
        shared = common.shared(weights)
        for name, members in flat.items():
            for i, run in enumerate(members):
                values[name][rows, i] = run.values(weights, shared)
    return Benchmark(
        arms={arm.name: arm for arm in arms},
        cells=common.cells,
        scores={
            n: np.concatenate([r.values(once, common.shared(once)) for r in members]) for n, members in flat.items()
        },
        resampled=values,
        seed_draws={arm.name: _seed_draws(arm, resamples, seed) for arm in arms},
        weights={name: np.mean([run.weights() for run in members], axis=0) for name, members in flat.items()},
        without=_leave_one_out(common, flat),
    )


class _Run:
    """A run's sums laid out for matrix products: (episode, whatever) in float64, which holds counts exactly."""

    def __init__(self, sums: EpisodeSums, scores: Sequence[str], by_lead: bool) -> None:
        self.sums = sums
        self.skills = [name for name in scores if name in SKILL]
        self.errors = [name for name in scores if name in ERRORS]
        self.by_lead = by_lead
        columns: list[NDArray[Any]] = [sums.counts[c] for c in ("tp", "fp")] if self.skills else []
        if by_lead:
            columns += [sums.errors[name] for name in self.errors]
        else:  # a mean over leads of a sum: the leads may be summed first
            columns += [sums.errors[name].mean(1, keepdims=True) for name in self.errors]
        self.table = np.concatenate([np.reshape(c, (sums.episodes, -1)) for c in columns], 1).astype(np.float64)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        leads: list[float | None] = [None, *self.sums.lead_minutes.tolist()] if self.by_lead else [None]
        rates = self.sums.thresholds_mmh.tolist()
        skill = [Cell(score=s, threshold_mmh=r, lead_minutes=m) for s in self.skills for m in leads for r in rates]
        return (*skill, *(Cell(score=e, lead_minutes=m) for e in self.errors for m in leads))

    def shared(self, weights: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """What the truth alone decides, so that it is summed once for all runs."""
        out = {"sequences": weights @ self.sums.sequences.astype(np.float64)}
        if self.skills:
            for name, table in (("observed", self.sums.observed), ("pixels", sum(self.sums.counts[c] for c in COUNTS))):
                flat = np.reshape(table, (self.sums.episodes, -1)).astype(np.float64)
                out[name] = (weights @ flat).reshape(len(weights), *self.sums.observed.shape[1:])
        return out

    def values(self, weights: NDArray[np.float64], shared: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """(resample, cell). A cell without data is NaN."""
        sums = weights @ self.table
        parts = []
        if self.skills:
            shape = shared["observed"].shape
            size = shape[1] * shape[2]
            tp, fp = sums[:, :size].reshape(shape), sums[:, size : 2 * size].reshape(shape)
            fn = shared["observed"] - tp
            tn = shared["pixels"] - shared["observed"] - fp
            sums = sums[:, 2 * size :]
            for name in self.skills:
                leads = SKILL[name](tp, fn, fp, tn)
                parts.append(lead_mean(leads, axis=1).filled(np.nan))
                if self.by_lead:
                    parts.append(leads.filled(np.nan).reshape(len(weights), -1))
        errors = sums / shared["sequences"][:, None]
        if self.by_lead and self.errors:
            by_error = errors.reshape(len(weights), len(self.errors), -1)
            errors = np.concatenate([by_error.mean(2, keepdims=True), by_error], 2).reshape(len(weights), -1)
        return np.concatenate([*parts, errors], 1)

    def weights(self) -> NDArray[np.float64]:
        """(cell, episode): how much of a score an episode decides.

        For an error its share of the sequences; for skill its share of the pixels where the threshold was reached in
        truth or forecast, the denominator of CSI, averaged over the leads that have any.
        """
        sequences = self.sums.sequences / self.sums.sequences.sum()
        leads = len(self.sums.lead_minutes)
        rows = []
        if self.skills:
            reached = sum(np.asarray(self.sums.counts[c], np.float64) for c in ("tp", "fn", "fp"))
            total = np.sum(reached, 0)
            share = np.divide(reached, total, out=np.zeros_like(reached), where=total > 0)
            used = np.maximum((total > 0).sum(0), 1)
            one = [(share.sum(1) / used).T, *(share[:, i].T for i in range(leads) if self.by_lead)]
            rows = [np.concatenate(one)] * len(self.skills)
        rows += [np.repeat(sequences[None], 1 + leads * self.by_lead, 0)] * len(self.errors)
        return np.concatenate(rows)


def _leave_one_out(common: _Run, flat: Mapping[str, list[_Run]]) -> dict[str, NDArray[np.float64]]:
    episodes = common.sums.episodes
    if not 1 < episodes <= MOST_EPISODES:
        return dict.fromkeys(flat, np.empty((len(common.cells), 0)))
    weights = 1 - np.eye(episodes)
    shared = common.shared(weights)
    return {name: np.mean([run.values(weights, shared) for run in members], axis=0).T for name, members in flat.items()}


def _episode_draws(episodes: int, resamples: int, seed: int) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """How often each episode is drawn, a block of resamples at a time (10,000 sequences would fill the memory)."""
    rng = np.random.default_rng(seed)
    block = max(1, min(500, 4_000_000 // episodes))
    for first in range(0, resamples, block):
        size = min(block, resamples - first)
        drawn = rng.integers(episodes, size=(size, episodes)) + episodes * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * episodes)
        yield slice(first, first + size), counts.reshape(size, episodes).astype(np.float64)


def _seed_draws(arm: Arm, resamples: int, seed: int) -> NDArray[np.float64]:
    n = len(arm.runs)
    rng = np.random.default_rng([seed, zlib.crc32(arm.name.encode())])
    return rng.multinomial(n, np.full(n, 1 / n), size=resamples) / n
