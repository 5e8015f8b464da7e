"""`nowcastlab bench sweep`: what a sweep adds to the bare time of its trials."""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from nowcastlab.sweep import Sweep

TARGET_S, TARGET_PERCENT = 1.5, 5.0
FEW = 4  # trials a place, of the sweep that fixed costs are told by
ARM = "traj-l5"  # of laptop scale, neither its quickest nor its slowest
LAPTOP_TRIALS = 30  # of sweeps/links_vs_kernel.py: ten arms, three seeds


@click.command()
@click.option(
    "--trials", type=click.IntRange(1), help="How many trivial trials; more than four a core.  [default: twelve a core]"
)
@click.option(
    "--steps", type=click.IntRange(30), default=300, show_default=True, help="Training updates of a long trial."
)
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="How many rounds; each contender runs once in each.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for scripts.")
def command(trials: int | None, steps: int, rounds: int, as_json: bool) -> None:
    """Measure what Ray, Tune and MLflow add to the bare time of a sweep's trials.

    The bare way is `run_trial` in as many plain processes as there are cores. Both leave the same files. They run in
    turn, in wall time; Ray is started before the clock is, the sweep's workers are not.

    \b
    a trial      many trivial trials and few: what each one adds, and what a sweep costs once, as starting workers
    updates      trials of laptop scale, one a core, of --steps updates and of a third: what updates take more
                 than bare ones
    the sweep    the three together, for the thirty trials of sweeps/links_vs_kernel.py --scale laptop; their
                 validations and tests are not counted, so the true per cent is a little smaller

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
    sweeps = {
        "many": trivial(trials, "many"),
        "few": trivial(FEW * places, "few"),
        "long": laptop(places, steps),
        "short": laptop(places, steps // 3),
    }
    click.echo(f"{places} at a time; {trials} trivial trials, {places} of {steps} updates; {rounds} rounds", err=True)
    engine.connect(cpus=places)
    with bare_workers(places) as pool:
        contenders: dict[str, Callable[[], None]] = {}
        for name, sweep in sweeps.items():
            contenders[f"bare, {name}"] = partial(run_bare, sweep, pool)
            contenders[f"sweep, {name}"] = partial(run_swept, sweep, places)
        timings = interleave(contenders, rounds=rounds, warmup=0)
    each_round = [
        overheads({name: t.wall_s[i] for name, t in timings.items()}, trials=trials, steps=steps, places=places)
        for i in range(rounds)
    ]
    seconds = {name: timing.median_s for name, timing in timings.items()}
    cpu_s = statistics.median(timings["sweep, long"].cpu_s)
    result = {"places": places, "trials": trials, "updates": steps, "driver_cpu_s": cpu_s, "seconds": seconds}
    result |= {name: statistics.median(one[name] for one in each_round) for name in each_round[0]}
    # what the driver itself takes of the cores that train: steadier than wall time on a busy machine
    result["driver_cpu_percent"] = 100 * cpu_s / (places * seconds["bare, long"])
    click.echo(json.dumps(result, indent=2) if as_json else as_text(result))


def overheads(seconds: Mapping[str, float], *, trials: int, steps: int, places: int) -> dict[str, float]:
    """From seconds of each contender: what is added by a trial, once, by updates, and to a laptop sweep in all."""

    def added(name: str) -> float:
        return seconds[f"sweep, {name}"] - seconds[f"bare, {name}"]

    each = (added("many") - added("few")) / (_turns(trials, places) - FEW)
    once = added("few") - each * FEW
    bare = seconds["bare, long"] - seconds["bare, short"]
    running = (added("long") - added("short")) / bare
    whole_trial = seconds["bare, long"] + bare / (steps - steps // 3) * (laptop_updates() - steps)
    return {
        "overhead_s_per_trial": each,
        "target_s_per_trial": TARGET_S,
        "once_s": once,
        "overhead_percent_of_updates": 100 * running,
        "laptop_trial_s": whole_trial,
        "overhead_percent_of_sweep": 100 * (running + (each + once / _turns(LAPTOP_TRIALS, places)) / whole_trial),
        "target_percent": TARGET_PERCENT,
    }


def _turns(trials: int, places: int) -> int:
    """How many trials come one after another in a place."""
    return -(-trials // places)


def as_text(result: Mapping[str, Any]) -> str:
    """The figures, each beside what is wanted of it."""
    lines = [f"  {name:<12} {seconds:8.1f} s" for name, seconds in result["seconds"].items()]
    return "\n".join(
        [
            *lines,
            f"  a trial      {result['overhead_s_per_trial']:6.2f} s   (at most {TARGET_S} s wanted), and "
            f"{result['once_s']:.1f} s once a sweep",
            f"  updates      {result['overhead_percent_of_updates']:6.1f} %   more than bare ones; the driver's CPU is "
            f"{result['driver_cpu_percent']:.1f} % of the cores",
            f"  the sweep    {result['overhead_percent_of_sweep']:6.1f} %   (at most {TARGET_PERCENT:g} % wanted), of "
            f"{LAPTOP_TRIALS} trials of {result['laptop_trial_s']:.0f} s each at laptop scale",
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


def laptop_updates() -> int:
    """Of a whole trial."""
    from nowcastlab.config import mnist_config

    return mnist_config(ARM, digits="sklearn-digits", scale="laptop").max_steps


def laptop(trials: int, steps: int) -> Sweep:
    """Trials of laptop scale, cut short."""
    from nowcastlab.config import mnist_config
    from nowcastlab.sweep import DIGITS, Arm, Sweep

    config = mnist_config(ARM, digits="sklearn-digits", scale="laptop", threads=1, max_steps=steps)
    return Sweep(
        name=f"bench-{steps}",
        question="What does a sweep add?",
        scale="laptop",
        arms=[Arm(name=ARM, config=config, settings=(DIGITS,))],
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
    """Processes that have run a trial before."""
    with ProcessPoolExecutor(places, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(_warm_up, [0.5] * places))
        yield pool


def _warm_up(wait_s: float) -> None:
    """One trivial trial: the first of a process takes seconds longer than the second."""
    with tempfile.TemporaryDirectory() as folder:
        _run_one((trivial(1, "first").trials[0].to_plain(), folder))
    time.sleep(wait_s)  # so that every process of the pool takes one


def _run_one(work: tuple[dict[str, Any], str]) -> str:
    from nowcastlab.sweep import Trial, run_trial

    return run_trial(Trial.from_plain(work[0]), Path(work[1]))["status"]
