"""What a collection of runs shows: the tables, the comparisons, the curves over the leads, the cost.

    collection, load = from_mlflow(connect(), "hko7-benchmark")
    findings = find(collection, load)
    findings.comparisons[0].comparison.text()

Everything is computed from sums per episode that the runs left in MLflow, with a fixed seed: the same runs give the
same numbers to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from nowcastlab.report.collect import Collection
from nowcastlab.report.cost import CostRow, cost_rows
from nowcastlab.report.source import Load
from nowcastlab.report.standing import Standing, standing
from nowcastlab.significance import Arm, Benchmark, Cell, Comparison, compare, estimate, family, resample
from nowcastlab.significance.episodes import EpisodeSums

RESAMPLES, CURVE_RESAMPLES, SEED = 10_000, 1_000, 0
SCORES = {"radar": ("csi", "hss", "bmse", "bmae"), "digits": ("mse",)}
# What a sweep is decided by. The other scores are shown beside, corrected among themselves.
DECISIVE = {"radar": ("bmse", "bmae"), "digits": ("mse",)}


@dataclass(frozen=True, kw_only=True)
class PairFinding:
    """Two rows of a table compared in one score. `comparison` has difference, low, high, p, p_holm, family,
    effect_size, three_deviations, seeds, episodes, effective_episodes, winner() and text()."""

    a: str  # arms
    b: str
    setting_a: str  # offline, online, digits
    setting_b: str  # another one where an arm online is compared with itself offline
    comparison: Comparison
    decisive: bool  # one of the scores by which the sweep is decided

    @property
    def title(self) -> str:
        if self.setting_a != self.setting_b:
            return f"{self.a}: {self.setting_a} - {self.setting_b}"
        return f"{self.a} - {self.b}" + (f", {self.setting_a}" if self.setting_a != "digits" else "")


@dataclass(frozen=True, kw_only=True)
class LeadCurve:
    """A row's score at every lead, with a 95% interval over seeds and episodes; None where there is none to give."""

    arm: str
    setting: str
    cell: Cell  # score and threshold; its lead is left out
    lead_minutes: tuple[float, ...]  # of digits: frames ahead, 1 to 10
    mean: tuple[float, ...]  # NaN where a threshold was not observed at a lead
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    seeds: int
    episodes: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings:
    """All of it is computed when first asked for, and once."""

    collection: Collection
    load: Load
    resamples: int = RESAMPLES

    @cached_property
    def sums(self) -> dict[str, dict[int, EpisodeSums]]:
        """By row (`row_name`), by seed."""
        return {
            row_name(arm, setting): {trial.seed: self.load(trial, setting) for trial in trials}
            for arm, trials in self.collection.arms.items()
            for setting in self.collection.settings(arm)
        }

    @cached_property
    def rows(self) -> tuple[Arm, ...]:
        """Every arm in every setting it was tested in."""
        collection = self.collection
        return tuple(
            Arm(name=row_name(arm, s), runs=self.sums[row_name(arm, s)], deterministic=collection.deterministic(arm))
            for arm in collection.arms
            for s in collection.settings(arm)
        )

    @cached_property
    def tested_on(self) -> tuple[int, int]:
        """Sequences and episodes."""
        first = next(iter(self.rows[0].runs.values()))
        return int(first.sequences.sum()), first.episodes

    @property
    def drawn(self) -> str:
        """What is resampled beside seeds: a sequence of moving digits is an episode by itself."""
        return "episodes" if self.collection.kind == "radar" else "sequences"

    @cached_property
    def standing(self) -> Standing:
        sequences, episodes = self.tested_on
        return standing(self.collection, sequences=sequences, episodes=episodes)

    @cached_property
    def benchmark(self) -> Benchmark:
        """Every row on the same 10,000 resamples of episodes."""
        return resample(self.rows, seed=SEED, resamples=self.resamples, scores=SCORES[self.collection.kind])

    @cached_property
    def comparisons(self) -> tuple[PairFinding, ...]:
        """Those the sweep named, in each setting both arms were tested in, and online against offline of each network.

        Holm's correction is over all of them in the decisive scores together; over all of them in each other score.
        """
        pairs = self.pairs()
        found: list[PairFinding] = []
        decisive = DECISIVE[self.collection.kind]
        for scores in (decisive, *((s,) for s in SCORES[self.collection.kind] if s not in decisive)):
            its = [self.compare(pair, cell) for cell in self.cells if cell.score in scores for pair in pairs]
            corrected = family([finding.comparison for finding in its])
            found += [
                replace(finding, comparison=comparison) for finding, comparison in zip(its, corrected, strict=True)
            ]
        return tuple(found)

    @property
    def cells(self) -> tuple[Cell, ...]:
        return self.benchmark.cells

    def pairs(self) -> list[tuple[str, str, str, str]]:
        """(arm, setting, arm, setting) of every comparison that was settled before the sweep ran."""
        settings = self.collection.settings
        named = [(a, s, b, s) for a, b in self.collection.comparisons for s in settings(a) if s in settings(b)]
        online = [(arm, "online", arm, "offline") for arm in self.collection.arms if "online" in settings(arm)]
        return named + [pair for pair in online if "offline" in settings(pair[0])]

    def compare(self, pair: tuple[str, str, str, str], cell: Cell) -> PairFinding:
        """One comparison, uncorrected. Seeds are paired only where both rows are the same trainings."""
        a, setting_a, b, setting_b = pair
        comparison = compare(self.benchmark, row_name(a, setting_a), row_name(b, setting_b), cell, paired_seeds=a == b)
        decisive = cell.score in DECISIVE[self.collection.kind]
        return PairFinding(a=a, b=b, setting_a=setting_a, setting_b=setting_b, comparison=comparison, decisive=decisive)

    @cached_property
    def curves(self) -> tuple[LeadCurve, ...]:
        """Every row, score and threshold by lead."""
        benchmark = resample(
            self.rows,
            seed=SEED,
            resamples=min(self.resamples, CURVE_RESAMPLES),
            scores=SCORES[self.collection.kind],
            by_lead=True,
        )
        leads = sorted({cell.lead_minutes for cell in benchmark.cells if cell.lead_minutes is not None})
        return tuple(
            self._curve(benchmark, arm, setting, cell, leads)
            for cell in benchmark.cells
            if cell.lead_minutes is None
            for arm in self.collection.arms
            for setting in self.collection.settings(arm)
        )

    @cached_property
    def costs(self) -> tuple[CostRow, ...]:
        return cost_rows(self.collection)

    def _curve(self, benchmark: Benchmark, arm: str, setting: str, cell: Cell, leads: Sequence[float]) -> LeadCurve:
        cells = [Cell(score=cell.score, threshold_mmh=cell.threshold_mmh, lead_minutes=lead) for lead in leads]
        points = [estimate(benchmark, row_name(arm, setting), one) for one in cells]
        return LeadCurve(
            arm=arm,
            setting=setting,
            cell=cell,
            lead_minutes=tuple(leads),
            mean=tuple(point.difference for point in points),
            low=tuple(point.low for point in points),
            high=tuple(point.high for point in points),
            seeds=points[0].seeds[0],
            episodes=points[0].episodes,
        )


def find(collection: Collection, load: Load, *, resamples: int = RESAMPLES) -> Findings:
    """Nothing is read or computed before it is asked for."""
    return Findings(collection=collection, load=load, resamples=resamples)


def row_name(arm: str, setting: str) -> str:
    """What a row is called where online and offline stand side by side."""
    return arm if setting == "digits" else f"{arm} ({setting})"
