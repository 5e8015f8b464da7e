"""`nowcastlab bench sweep`: what a sweep adds to the bare time of its trials."""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from nowcastlab.sweep import Sweep

TARGET_S, TARGET_PERCENT = 1.5, 5.0
FEW = 4  # trials a place, of the sweep that fixed costs are told by


@click.command()
@click.option("--trials", type=click.IntRange(1), help="Trivial ones; more than four a core.  [twelve a core]")
@click.option("--steps", type=click.IntRange(10), default=150, show_default=True, help="Updates of a long trial.")
@click.option("--rounds", type=click.IntRange(1), default=2, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="For scripts.")
def command(trials: int | None, steps: int, rounds: int, as_json: bool) -> None:
    """Measure what Ray, Tune and MLflow add to the bare time of a sweep's trials.

    The bare way is `run_trial` in as many plain processes as there are cores. Both leave the same files. They run in
    turn, in wall time; Ray is started before the clock is, the sweep's workers are not.

    \b
    overhead a trial   many trivial trials: from the difference between many and few, so that what a sweep
                       costs once, as starting its workers, is told apart
    overhead at length one trial a core of laptop scale, cut to --steps updates; a whole one is 600, so its
                       per cent is smaller still

    \b
    Examples:
      nowcastlab bench sweep
      nowcastlab bench sweep --trials 60 --rounds 3
      nowcastlab bench sweep --json
    """
    from nowcastlab import engine
    from nowcastlab.bench.timing import interleave

    places = os.cpu_count() or 1
    trials = trials or 3 * FEW * places
    if trials <= FEW * places:
        raise click.UsageError(
            f"--trials {trials}: here, with {places} at a time, few are {FEW * places}. Give more than those."
        )
    many, few = trivial(trials, "many"), trivial(FEW * places, "few")
    long = laptop(places, steps)
    click.echo(f"{places} at a time; {trials} trivial trials, {places} of {steps} updates; {rounds} rounds", err=True)
    engine.connect(cpus=places)
    with bare_workers(places) as pool:
        timings = interleave(
            {
                "bare, many": lambda: run_bare(many, pool),
                "sweep, many": lambda: run_swept(many, places),
                "bare, few": lambda: run_bare(few, pool),
                "sweep, few": lambda: run_swept(few, places),
                "bare, long": lambda: run_bare(long, pool),
                "sweep, long": lambda: run_swept(long, places),
            },
            rounds=rounds,
            warmup=0,
        )
    seconds = {name: timing.median_s for name, timing in timings.items()}
    added_many, added_few = (seconds[f"sweep, {n}"] - seconds[f"bare, {n}"] for n in ("many", "few"))
    each = (added_many - added_few) * places / (trials - FEW * places)
    result = {
        "places": places,
        "overhead_s_per_trial": each,
        "target_s_per_trial": TARGET_S,
        "once_s": added_few - each * FEW,
        "overhead_percent_at_length": 100 * (timings["sweep, long"].ratio_to(timings["bare, long"]) - 1),
        "target_percent": TARGET_PERCENT,
        # what the driver itself takes of the cores that train: steadier than wall time on a busy machine
        "driver_cpu_percent": 100 * statistics.median(timings["sweep, long"].cpu_s) / (places * seconds["bare, long"]),
        "length_s": seconds["bare, long"],
        "length_updates": steps,
        "seconds": seconds,
    }
    click.echo(json.dumps(result, indent=2) if as_json else as_text(result))


def as_text(result: dict[str, Any]) -> str:
    """The figures, each beside what is wanted of it."""
    lines = [f"  {name:<12} {seconds:8.1f} s" for name, seconds in result["seconds"].items()]
    return "\n".join(
        [
            *lines,
            f"  overhead a trial    {result['overhead_s_per_trial']:6.2f} s    (at most {TARGET_S} s wanted), "
            f"and {result['once_s']:.1f} s once a sweep",
            f"  overhead at length  {result['overhead_percent_at_length']:6.1f} %    (at most {TARGET_PERCENT:g} % "
            f"wanted), with trials of {result['length_s']:.0f} s ({result['length_updates']} updates)",
            f"  the driver's CPU    {result['driver_cpu_percent']:6.1f} %    of those trials' time",
        ]
    )


def trivial(trials: int, name: str) -> Sweep:
    """Trials of one update of a tiny network."""
    from nowcastlab.config import mnist_config
    from nowcastlab.sweep import DIGITS, Arm, Sweep

    small: dict[str, Any] = {"data.size": 16, "data.count": 1, "data.valid_sequences": 1}
    config = mnist_config("conv-k3-d1", digits="sklearn-digits", threads=1, max_steps=1, **small)
    return Sweep(
        name=f"bench-{name}",
        question="What does a sweep add?",
        scale="demo",
        arms=[Arm(name="tiny", config=config, settings=(DIGITS,))],
        seeds=range(1, trials + 1),
        test_sequences=1,
    )


def laptop(trials: int, steps: int) -> Sweep:
    """Trials of laptop scale, cut short."""
    from nowcastlab.config import mnist_config
    from nowcastlab.sweep import DIGITS, Arm, Sweep

    config = mnist_config("traj-l5", digits="sklearn-digits", scale="laptop", threads=1, max_steps=steps)
    return Sweep(
        name="bench-long",
        question="What does a sweep add?",
        scale="laptop",
        arms=[Arm(name="Traj-L5", config=config, settings=(DIGITS,))],
        seeds=range(1, trials + 1),
        test_sequences=200,
    )


def run_swept(sweep: Sweep, places: int) -> None:
    """As a user's sweep runs: Ray Tune, the clerk, a database of its own."""
    from nowcastlab.sweep import run_sweep

    with tempfile.TemporaryDirectory() as folder:
        uri = f"sqlite:///{folder}/mlflow.db"
        result = run_sweep(sweep, root=Path(folder), cpus=places, tracking_uri=uri, say=lambda line: None)
        assert len(result.finished) == len(sweep.trials), result.failed


def run_bare(sweep: Sweep, pool: ProcessPoolExecutor) -> None:
    """The same trials in plain processes, without Ray and without MLflow."""
    with tempfile.TemporaryDirectory() as folder:
        plain = [(trial.to_plain(), str(Path(folder) / trial.key)) for trial in sweep.trials]
        assert set(pool.map(_run_one, plain)) == {"finished"}


@contextmanager
def bare_workers(places: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that have imported what a trial needs."""
    with ProcessPoolExecutor(places, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(_import_it, [0.5] * places))
        yield pool


def _import_it(wait_s: float) -> None:
    import nowcastlab.sweep  # noqa: F401

    time.sleep(wait_s)  # so that every process of the pool takes one


def _run_one(work: tuple[dict[str, Any], str]) -> str:
    from nowcastlab.sweep import Trial, run_trial

    return run_trial(Trial.from_plain(work[0]), Path(work[1]))["status"]
