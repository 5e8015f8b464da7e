"""Significance: may a difference between two arms be believed?

arms = [Arm(name="TrajGRU", runs={1: EpisodeSums.from_scores(scores), 2: ..., 3: ...}), ...]
benchmark = resample(arms, seed=0)                      # 10,000 resamples of episodes and seeds, all arms paired
cell = Cell(score="csi", threshold_mmh=30.0)
summarise(benchmark, "TrajGRU", cell)                   # mean and standard deviation over seeds
compare(benchmark, "TrajGRU", "ConvGRU", cell).text()   # difference, interval, p, n
family([...])                                           # Holm's correction over the comparisons named by the sweep
all_of([...])                                           # a claim that needs every one of them
reproduces(summary, Published(...), margin=..., better=cell.better)
seeds_needed(Design(std=(52.0, 18.0)), difference=135.0)

`docs/statistics.md` explains; `nowcastlab calibrate` proves.
"""

from nowcastlab.significance.comparison import Comparison, SeedSummary, compare, contrast, estimate, summarise
from nowcastlab.significance.episodes import EpisodeSums
from nowcastlab.significance.equivalence import Published, Reproduction, reproduces, seeds_to_decide, tost
from nowcastlab.significance.exact import permutation_p, sign_flip_p
from nowcastlab.significance.families import Claim, all_of, family, holm
from nowcastlab.significance.interval import Components
from nowcastlab.significance.kendall import Tau, kendall, kendall_gain
from nowcastlab.significance.power import Design, SeedPlan, power, seeds_needed, smallest_difference
from nowcastlab.significance.resample import BENCHMARK_SCORES, Arm, Benchmark, Cell, resample

__all__ = [
    "BENCHMARK_SCORES",
    "Arm",
    "Benchmark",
    "Cell",
    "Claim",
    "Comparison",
    "Components",
    "Design",
    "EpisodeSums",
    "Published",
    "Reproduction",
    "SeedPlan",
    "SeedSummary",
    "Tau",
    "all_of",
    "compare",
    "contrast",
    "estimate",
    "family",
    "holm",
    "kendall",
    "kendall_gain",
    "permutation_p",
    "power",
    "reproduces",
    "resample",
    "seeds_needed",
    "seeds_to_decide",
    "sign_flip_p",
    "smallest_difference",
    "summarise",
    "tost",
]
