"""`nowcastlab bench scale`: does the driver bear a thousand trials? Its memory and MLflow's delay, as trials add up.

The sweep, Ray Tune, the clerk and MLflow are the real ones. Only what a trial does is a recording: a real, short
training run is made first, and each trial writes that run's reports into its folder at their recorded pace, made
faster. So a machine with two cores plays a cluster.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nowcastlab.metric_names import VALID_SCORE

if TYPE_CHECKING:
    from nowcastlab.sweep import Sweep, Trial

WRITTEN = "written_at"  # a metric of the recording: when its report was written
EXPERIMENT = "bench-scale"
ARMS = 10
BINS = 8
SAMPLE_S = 0.5


@click.command()
@click.option(
    "--trials",
    type=click.IntRange(min=ARMS),
    default=1000,
    show_default=True,
    help="How many trials, a multiple of ten.",
)
@click.option(
    "--at-once", type=click.IntRange(min=1), default=8, show_default=True, help="Trials that run side by side."
)
@click.option(
    "--reports",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="How often each trial reports to MLflow.",
)
@click.option(
    "--speed-up",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="How much faster than recorded the trials run.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="Folder for the sweep and its database.  [default: a temporary one]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, for scripts.")
def command(trials: int, at_once: int, reports: int, speed_up: int, folder: Path | None, as_json: bool) -> None:
    """Run a sweep of recorded trials and print the driver's memory and MLflow's delay as they add up.

    Memory is the driver's, in MB. The delay is the time from a trial's writing a report to its being in MLflow. Neither
    should grow with the number of trials that are done; the last line is the same sweep run again, which finds all of
    it finished.

    \b
    Examples:
      nowcastlab bench scale --trials 200
      nowcastlab bench scale --trials 1000 --at-once 8 --json
    """
    if trials % ARMS:
        raise click.UsageError(f"--trials {trials}: the sweep has {ARMS} arms, so give a multiple of {ARMS}.")
    with _place(folder) as root:
        found = measure(root, trials=trials, at_once=at_once, reports=reports, speed_up=speed_up)
    click.echo(json.dumps(found, indent=2) if as_json else _text(found))


def measure(root: Path, *, trials: int, at_once: int, reports: int, speed_up: int) -> dict[str, Any]:
    """Record a training run, replay it in every trial of a sweep, and run the finished sweep once more."""
    from nowcastlab.errors import NowcastlabError
    from nowcastlab.sweep import run_sweep
    from nowcastlab.sweep.trial import RESULT

    if (root / "recording").exists():
        raise NowcastlabError(f"{root} holds a run of this already, which cannot be timed twice. Name an empty folder.")
    sweep = _sweep(trials, reports)
    recording = record(sweep, root / "recording")
    uri = f"sqlite:///{root}/mlflow.db"
    options: dict[str, Any] = {"root": root / "sweeps", "tracking_uri": uri, "cpus": at_once, "say": lambda line: None}
    began = time.time()
    with _memory() as samples:
        result = run_sweep(sweep, **options, run=Replay(recording, reports=reports, speed_up=speed_up))
        seconds = time.time() - began
    if len(result.finished) < BINS:
        why = next(iter(result.failed.values()), "it was interrupted")
        raise NowcastlabError(f"{len(result.finished)} of {len(sweep.trials)} trials finished, too few to judge: {why}")
    ended = sorted((result.folder.trial(trial) / RESULT).stat().st_mtime for trial in result.finished)
    again = time.time()
    run_sweep(sweep, **options)
    again = time.time() - again
    delays = _delays(uri)
    return {
        "trials": len(sweep.trials),
        "finished": len(result.finished),
        "at_once": at_once,
        "reports": reports,
        "seconds": seconds,
        "values": sum(len(part) for part in delays.values()) * len(recording[0]),
        "values_per_s": sum(len(part) for part in delays.values()) * len(recording[0]) / seconds,
        "again_seconds": again,
        "bins": _bins(began, seconds, ended, samples, [pair for part in delays.values() for pair in part]),
    }


class Replay:
    """In the place of `run_trial`: the recorded reports, written as a trial writes them."""

    def __init__(self, recording: list[dict[str, float]], *, reports: int, speed_up: int) -> None:
        self._recording, self._reports, self._speed_up = recording, reports, speed_up

    def __call__(self, trial: Trial, folder: Path, report: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        from nowcastlab.sweep.trial import FINISHED, RESULT
        from nowcastlab.training.history import History
        from nowcastlab.whole_files import write_atomically

        folder.mkdir(parents=True, exist_ok=True)
        began = time.time()
        with History(folder) as history:
            for step in range(history.last_step + 1, self._reports + 1):
                entry = dict(self._recording[(step - 1) % len(self._recording)])
                time.sleep(entry["seconds"] / self._speed_up)
                metrics = {**entry, "step": step, WRITTEN: time.time()}
                history.append(metrics)
                report(metrics)
        result = {
            "identity": trial.identity,
            "key": trial.key,
            "status": FINISHED,
            "parameters": 1,
            "scores": {"digits": {"mse": 0.01, "mse_per_lead": [0.01], "sequences": 1}},
            "seconds": time.time() - began,
        }
        write_atomically(folder / RESULT, json.dumps(result).encode())
        return result


def record(sweep: Sweep, folder: Path) -> list[dict[str, float]]:
    """The reports of a short, real training run, each with the seconds it took."""
    from dataclasses import replace

    from nowcastlab.training import read_history, train

    config = sweep.arms[0].config
    assert config is not None
    config = replace(config, max_steps=20, validate_every=20, report_every=1)
    times = [time.perf_counter()]
    train(config, lambda metrics: times.append(time.perf_counter()), folder=folder)
    entries = [entry for entry in read_history(folder) if VALID_SCORE not in entry]
    return [
        {**{name: value for name, value in entry.items() if name != "step"}, "seconds": after - before}
        for entry, before, after in zip(entries, times, times[1:], strict=False)
    ][1:]  # the first compiles


def _sweep(trials: int, reports: int) -> Sweep:
    from nowcastlab.config import mnist_config
    from nowcastlab.sweep import DIGITS, Arm, Sweep

    small: dict[str, Any] = {"data.size": 16, "data.count": 1, "max_steps": reports}
    config = mnist_config("conv-k3-d1", digits="sklearn-digits", threads=1, **small)
    return Sweep(
        name=EXPERIMENT,
        question="Does the driver bear it?",
        scale="demo",
        arms=[Arm(name=f"arm-{i}", config=config, settings=(DIGITS,)) for i in range(ARMS)],
        seeds=tuple(range(1, trials // ARMS + 1)),
    )


@contextmanager
def _memory() -> Iterator[list[tuple[float, float]]]:
    """(time, MB of this process), twice a second."""
    samples: list[tuple[float, float]] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(SAMPLE_S):
            samples.append((time.time(), _resident_mb()))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()


def _resident_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _delays(uri: str) -> dict[str, list[tuple[float, float]]]:
    """By run, when each report was written and how many seconds later MLflow had it."""
    from nowcastlab.tracking import connect, read_trials

    client = connect(uri)
    return {
        trial.run_id: [
            (point.value, point.timestamp / 1000 - point.value)
            for point in client.get_metric_history(trial.run_id, WRITTEN)
        ]
        for trial in read_trials(client, EXPERIMENT)
    }


def _bins(
    began: float,
    seconds: float,
    ended: list[float],
    samples: list[tuple[float, float]],
    delays: list[tuple[float, float]],
) -> list[dict[str, float]]:
    """The run in equal parts of trials done."""
    rows = []
    for part in range(BINS):
        last = ended[(part + 1) * len(ended) // BINS - 1]
        first = ended[part * len(ended) // BINS - 1] if part else began
        late = sorted(delay for written, delay in delays if first <= written < last) or [0.0]
        memory = [mb for when, mb in samples if first <= when < last] or [0.0]
        rows.append(
            {
                "trials": (part + 1) * len(ended) // BINS,
                "driver_mb": max(memory),
                "delay_s": statistics.median(late),
                "delay_p95_s": late[int(0.95 * (len(late) - 1))],
                "trials_per_s": (len(ended) / BINS) / max(last - first, 1e-9),
            }
        )
    return rows


@contextmanager
def _place(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder.resolve()
        return
    with tempfile.TemporaryDirectory() as temporary:
        yield Path(temporary)


def _text(found: dict[str, Any]) -> str:
    lines = [
        f"{found['finished']} of {found['trials']} recorded trials, {found['at_once']} at once, {found['reports']} "
        f"reports each, in {found['seconds']:.0f} s: {found['values_per_s']:.0f} values a second into MLflow.",
        "",
        "  trials done   driver, MB   delay, s   95 in 100 within   trials/s",
    ]
    for row in found["bins"]:
        lines.append(
            f"  {row['trials']:>11.0f}   {row['driver_mb']:>10.0f}   {row['delay_s']:>8.2f}   "
            f"{row['delay_p95_s']:>16.2f}   {row['trials_per_s']:>8.2f}"
        )
    return "\n".join([*lines, "", f"The same sweep again, all of it finished: {found['again_seconds']:.1f} s."])
