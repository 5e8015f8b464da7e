"""`nowcastlab bench significance`: 10,000 resamples as matrix products against drawing the sequences themselves."""

from __future__ import annotations

import json
import time
from typing import Any

import click
import numpy as np

from nowcastlab.significance.resample import BENCHMARK_SCORES
from nowcastlab.skill import COUNTS, ERRORS, SKILL, SequenceScores, lead_mean
from nowcastlab.units import THRESHOLDS_MMH

LEADS, SEEDS = 20, 3


def made_up_scores(rng: np.random.Generator, *, truth_seed: int = 0) -> SequenceScores:
    """A run on the official walk's 6053 sequences in 56 episodes: the truth of every run, a forecast of its own."""
    from nowcastlab.significance.simulate import OFFICIAL_LENGTHS

    truth = np.random.default_rng(truth_seed)
    lengths = truth.permutation(list(OFFICIAL_LENGTHS.elements()))
    episode = np.repeat(np.arange(len(lengths)), lengths)
    n = len(episode)
    shares = np.cumprod([0.1, 0.6, 0.55, 0.53, 0.27])  # of the pixels, at the five thresholds
    observed = (174_000 * shares * truth.gamma(0.5, 2.0, (n, LEADS, 1)).clip(0, 4)).astype(np.int64)
    tp = (observed * rng.uniform(0.3, 0.7, (n, LEADS, 1))).astype(np.int64)
    fp = observed - tp
    errors: dict[str, Any] = {name: rng.gamma(2.0, 3000.0, (n, LEADS)) for name in ERRORS}
    return SequenceScores(
        tp=tp,
        fn=observed - tp,
        fp=fp,
        tn=174_000 - observed - fp,
        **errors,
        start=30 * np.arange(n),
        episode=episode,
        thresholds_mmh=np.array(THRESHOLDS_MMH),
        lead_minutes=np.arange(6.0, 6.0 * LEADS + 1, 6.0, dtype=np.float64),
    )


def plain_resample(scores: SequenceScores, rng: np.random.Generator) -> list[float]:
    """One resample of one run as one writes it first: draw episodes, gather their sequences, sum, score."""
    ids = np.unique(scores.episode)
    rows = np.concatenate([np.flatnonzero(scores.episode == e) for e in rng.choice(ids, len(ids))])
    counts = [getattr(scores, name)[rows].sum(0) for name in COUNTS]
    skill = [lead_mean(SKILL[name](*counts)) for name in BENCHMARK_SCORES if name in SKILL]
    errors = [getattr(scores, name)[rows].mean() for name in BENCHMARK_SCORES if name not in SKILL]
    return [*np.concatenate(skill).tolist(), *errors]


def measure(*, arms_count: int, resamples: int, seed: int) -> dict[str, Any]:
    """Seconds for the sums, the resamples and the comparisons; and a resample of a run against the plain way."""
    from nowcastlab.bench.timing import interleave, one_core
    from nowcastlab.significance import Arm, EpisodeSums, compare, family, resample

    rng = np.random.default_rng(seed)
    reduce_s, arms = 0.0, []
    with one_core():
        for a in range(arms_count):
            runs = {}
            for s in range(1, SEEDS + 1):
                scores = made_up_scores(rng)
                clock = time.perf_counter()
                runs[s] = EpisodeSums.from_scores(scores)
                reduce_s += time.perf_counter() - clock
            arms.append(Arm(name=f"arm{a}", runs=runs))
        wall, cpu = time.perf_counter(), time.process_time()
        benchmark = resample(arms, seed=seed, resamples=resamples)
        resample_s, resample_cpu_s = time.perf_counter() - wall, time.process_time() - cpu
        wall, cpu = time.perf_counter(), time.process_time()
        pairs = [(a, b) for i, a in enumerate(benchmark.arms) for b in list(benchmark.arms)[:i]]
        for cell in benchmark.cells:
            family([compare(benchmark, a, b, cell) for a, b in pairs])
        compare_s, compare_cpu_s = time.perf_counter() - wall, time.process_time() - cpu
        one = [Arm(name="one", runs={1: arms[0].runs[1]})]
        rounds = interleave(
            {
                "plain": lambda: plain_resample(scores, rng),
                "product": lambda: resample(one, seed=seed, resamples=500),
            },
            rounds=5,
        )
    return {
        "sequences": len(scores),
        "episodes": benchmark.episodes,
        "arms": arms_count,
        "seeds": SEEDS,
        "cells": len(benchmark.cells),
        "resamples": resamples,
        "comparisons": len(pairs) * len(benchmark.cells),
        "sum_by_episode_s": reduce_s,
        "resample_s": resample_s,
        "resample_cpu_s": resample_cpu_s,
        "compare_s": compare_s,
        "compare_cpu_s": compare_cpu_s,
        # a resample of a run each: the product was timed on 500 at once
        "times_faster_than_plain": 500 * rounds["plain"].ratio_to(rounds["product"]),
    }


@click.command()
@click.option(
    "--resamples",
    default=10_000,
    show_default=True,
    type=click.IntRange(100),
    help="How often episodes and seeds are drawn anew.",
)
@click.option(
    "--arms", default=8, show_default=True, type=click.IntRange(2), help="Arms to compare, with 3 seeds each."
)
@click.option("--seed", default=0, show_default=True, help="Decides the made-up scores and the draws.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for scripts.")
def command(resamples: int, arms: int, seed: int, as_json: bool) -> None:
    """The paired bootstrap of a whole benchmark on one core, against drawing the sequences themselves.

    8 arms with 3 seeds each, on 6053 sequences in 56 episodes with 20 leads: CSI and HSS at five thresholds, B-MSE and
    B-MAE, and then all pairs of arms compared in all 12 cells with Holm's correction.

    \b
    Examples:
      nowcastlab bench significance
      nowcastlab bench significance --resamples 2000 --json
    """
    r = measure(arms_count=arms, resamples=resamples, seed=seed)
    if as_json:
        click.echo(json.dumps(r))
        return
    click.echo(
        f"{r['arms']} arms x {r['seeds']} seeds, {r['sequences']} sequences in {r['episodes']} episodes, one core\n\n"
        f"  sums by episode, all runs           {r['sum_by_episode_s']:7.2f} s\n"
        f"  {r['resamples']:,} resamples, {r['cells']} cells      {r['resample_s']:7.2f} s"
        f"  ({r['resample_cpu_s']:.2f} s of CPU)\n"
        f"  {r['comparisons']} comparisons with intervals     {r['compare_s']:7.2f} s"
        f"  ({r['compare_cpu_s']:.2f} s of CPU)\n\n"
        f"  a resample of a run is {r['times_faster_than_plain']:.0f} times as fast as drawing the sequences"
    )
