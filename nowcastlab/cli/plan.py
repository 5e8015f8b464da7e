"""`nowcastlab plan`: what a sweep would cost on a cluster, before there is one."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nowcastlab.cli.verbs import SCALE_HELP, FiniteRange
from nowcastlab.errors import ConfigError, NowcastlabError

if TYPE_CHECKING:
    from nowcastlab.sweep import Sweep, Trial
    from nowcastlab.sweep.capacity import Assumptions, Outlook, TrialWork

COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
# HKO-7's walks at stride 5 over its official days: 6,053 windows to test on; 11,736 frames to validate on.
HKO7_WINDOWS = {"valid": 2_300, "test": 6_053}
FORWARD_AND_BACKWARD = 3
FROM_0, ABOVE_0 = FiniteRange(0), FiniteRange(0, min_open=True)
TRACKED_A_REPORT = 5  # loss, rate, norm of the gradient, speed, and a share of the validation's


@click.command()
@click.argument("sweep", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--scale", type=click.Choice(["demo", "laptop", "paper"]), default="paper", show_default=True, help=SCALE_HELP
)
@click.option(
    "--gpus",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="How many GPUs you think of: that row of the table is marked.",
)
@click.option(
    "--seeds", default="1,2,3", show_default=True, help="Seeds that each arm is trained with, with commas between."
)
@click.option("--store", help="A radar store, for its grid and number of windows.  [default: HKO-7's]")
@click.option(
    "--tflops", type=ABOVE_0, help="Speed of one GPU in practice, in 10^12 operations a second.  [default: 6]"
)
@click.option("--price", "price_per_hour", type=FROM_0, help="Price per hour of a one-GPU machine.  [default: 0.55]")
@click.option(
    "--head-price",
    "head_price_per_hour",
    type=FROM_0,
    help="Price per hour of the head, which has no GPU.  [default: 0.10]",
)
@click.option(
    "--interruptions",
    "interruptions_per_hour",
    type=FROM_0,
    help="How often an hour a spot machine is taken away.  [default: 0.02]",
)
@click.option("--store-gb", type=FROM_0, help="Size of the store, in GB.  [default: 4, HKO-7's]")
@click.option(
    "--bandwidth", "store_gb_per_s", type=ABOVE_0, help="Speed of the shared storage, in GB a second.  [default: 1]"
)
@click.option(
    "--tracking-rate", "tracked_values_per_s", type=ABOVE_0, help="Values a second that MLflow takes.  [default: 400]"
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, for scripts.")
def command(sweep: Path, scale: str, gpus: int, seeds: str, store: str | None, as_json: bool, **given: Any) -> None:
    """Say what a sweep file would take on 1 to 1,000 GPUs: hours, money, and what runs short first.

    The FLOPs are counted on the networks themselves; updates, batches, checkpoints and reports are the config's; a
    training update is three forward passes. The rest is assumed and can be given: how fast a GPU really is, what it
    costs, how often a spot machine is taken away, what the shared storage and the tracking server bear. Early stopping
    is not counted on, nor is what no multiplication does: a TrajGRU's sampling takes longer than its FLOPs say.

    A trial needs one GPU. More GPUs than trials therefore do nothing; more seeds or arms would use them.

    \b
    Examples:
      nowcastlab plan sweeps/hko7_benchmark.py --scale paper --gpus 8
      nowcastlab plan sweeps/hko7_benchmark.py --gpus 21 --tflops 20 --price 3.2      a faster machine
      nowcastlab plan sweeps/links_vs_kernel.py --scale laptop --seeds 1,2,3,4,5,6,7,8,9,10 --json
    """
    from nowcastlab.cli.sweep import parse_seeds, store_parameter
    from nowcastlab.sweep.capacity import Assumptions, outlook

    assumptions = Assumptions(**{name: value for name, value in given.items() if value is not None})
    build = load_build(sweep)
    reads_store = store_parameter(build) is not None
    if store is not None and not reads_store:
        raise click.UsageError(f"--store {store} is for sweeps of radar, and {sweep} reads no store: leave it out.")
    with _store_for(store) as path:
        planned = build(scale, parse_seeds(seeds), *([path] if reads_store else []))
        work = [_work(trial, measured=store) for trial in planned.trials]
    rows = [outlook(work, count, assumptions) for count in sorted({*COUNTS, gpus})]
    if as_json:
        click.echo(json.dumps(_plain(planned, work, rows, assumptions), indent=2))
    else:
        click.echo(_text(planned, work, rows, gpus, assumptions))


def load_build(path: Path) -> Callable[..., Sweep]:
    """What gives the sweep that a file would run, and starts nothing: its function of the file's own name."""
    spec = importlib.util.spec_from_file_location(f"planned_{path.stem}", path)  # its own may be that of a library
    build: Callable[..., Sweep] | None = None
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # where a dataclass looks for what its annotations name
        sys.path.insert(0, str(path.parent.absolute()))  # as Python does for a script: it may import its neighbours
        try:
            spec.loader.exec_module(module)
        except NowcastlabError:
            raise
        except Exception as error:
            raise ConfigError(f"{path} cannot be loaded: {type(error).__name__}: {error}.") from error
        finally:
            sys.path.pop(0)
        build = getattr(module, path.stem, None)
    if build is None:
        raise ConfigError(f"{path} has no function {path.stem}(scale, seeds) that builds its sweep, as sweeps/ have.")
    return build


@contextmanager
def _store_for(store: str | None) -> Iterator[str]:
    """The user's store; or an empty one on the paper's grid, because a config wants to know the grid, not the rain."""
    if store is not None:
        yield store
        return
    import datetime as dt

    from nowcastlab.models.zoo import SETTINGS
    from nowcastlab.store import StoreWriter

    paper = SETTINGS["hko7"]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/paper.zarr"
        StoreWriter.create(
            path,
            dates=[dt.date(2015, 1, 1)],
            grid=(paper.height, paper.width),
            interval_minutes=6,
            km_per_pixel=1.07,
            title="the paper's grid, without frames",
        ).close()
        yield path


def _work(trial: Trial, *, measured: str | None) -> TrialWork:
    from nowcastlab.sweep import ONLINE
    from nowcastlab.sweep.capacity import TrialWork

    config = trial.config
    if config is None:  # a baseline: minutes on a CPU
        return TrialWork(
            key=trial.key, flops=0, updates=0, frames=0, checkpoint_bytes=0, checkpoints=0, tracked_values=50
        )
    flops, parameters = _network(trial.arm, config)
    windows = _windows(trial, measured)
    validations = -(-config.max_steps // config.validate_every)
    forwards = FORWARD_AND_BACKWARD * config.batch_size * config.max_steps + validations * windows["valid"]
    forwards += windows["test"] * sum(1 + FORWARD_AND_BACKWARD * (s == ONLINE) for s in trial.settings)
    reports = config.max_steps // config.report_every
    return TrialWork(
        key=trial.key,
        flops=float(flops) * forwards,
        updates=config.max_steps,
        frames=config.max_steps * config.batch_size * config.data.frames,
        checkpoint_bytes=3 * 4 * parameters,  # weights, and Adam's two moments
        checkpoints=config.max_steps // config.checkpoint_every + validations,
        tracked_values=reports * TRACKED_A_REPORT + validations * 10 + 100,
    )


_counted: dict[str, tuple[int, int]] = {}


def _network(arm: str, config: Any) -> tuple[int, int]:
    """FLOPs of one forecast and the number of weights, counted once an arm."""
    from nowcastlab.cli.models import sequence_flops
    from nowcastlab.training import build_model

    key = f"{arm}/{config.model}/{config.scale}/{config.data.height}"
    if key not in _counted:
        model = build_model(config)
        _counted[key] = sequence_flops(model, config.data), sum(weight.numel() for weight in model.parameters())
    return _counted[key]


def _windows(trial: Trial, store: str | None) -> dict[str, int]:
    """How many sequences a validation and a test have."""
    assert trial.config is not None
    data: Any = trial.config.data
    if data.kind == "digits":
        return {"valid": data.valid_sequences, "test": trial.test_sequences}
    assert trial.radar is not None
    if store is None:
        found = dict(HKO7_WINDOWS)
    else:
        from nowcastlab.store import open_store

        opened = open_store(store)
        splits = {"valid": "valid", "test": trial.radar.split}
        found = {name: len(opened.minutes(split)) // data.walk_stride for name, split in splits.items()}
    for name, limit in (("valid", data.valid_windows), ("test", trial.radar.limit)):
        found[name] = min(found[name], limit) if limit else found[name]
    return found


def _text(sweep: Sweep, work: list[TrialWork], rows: list[Outlook], marked: int, given: Assumptions) -> str:
    from nowcastlab.sweep.capacity import loads, trial_seconds, uncopied_load

    arms = {trial.arm: trial_seconds(each, given) / 3600 for trial, each in zip(sweep.trials, work, strict=True)}
    width = max(map(len, arms))
    hours = sum(trial_seconds(each, given) for each in work) / 3600
    lines = [
        f"{sweep.name}, {sweep.scale} scale: {len(work)} trials, {hours:,.0f} GPU hours at {given.tflops:g} TFLOP/s "
        "(assumed).",
        "",
        *(f"  {arm:<{width}}  {_each(hours)}" for arm, hours in arms.items()),
        "",
        "    GPUs   used     hours      cost   GPUs busy   copying the store   storage   tracking   held up by",
    ]
    for row in rows:
        lines.append(
            f"{'>' if row.gpus == marked else ' '} {row.gpus:>6} {row.used:>6} {row.hours:>9,.1f} {row.cost:>9,.0f}"
            f" {row.gpu_busy:>10.0%} {row.copy_minutes:>15,.1f} min {row.storage_busy:>9.1%} {row.tracking_busy:>9.1%}"
            f"   {row.bottleneck}"
        )
    storage, tracking = loads(work, COUNTS[-1], given)
    lines += [
        "",
        f"There are {len(work)} trials, and a trial has one GPU: more than {len(work)} GPUs change nothing.",
        f"With trials for all of them, {COUNTS[-1]:,} GPUs would take {storage:.0%} of the shared storage "
        f"({uncopied_load(work, COUNTS[-1], given) + storage:.0%} without a copy of the store on each node) and "
        f"{tracking:.0%} of what one driver writes to MLflow.",
        "",
        "Assumed, so give what you know: "
        + ", ".join(f"{k} {v:g}" for k, v in dataclasses.asdict(given).items())
        + ".",
        "Not counted: early stopping (shorter), a TrajGRU's sampling (longer), storage by the month, traffic.",
    ]
    return "\n".join(lines)


def _each(hours: float) -> str:
    return f"{hours:,.1f} h a trial" if hours else "minutes, without a GPU"


def _plain(sweep: Sweep, work: list[TrialWork], rows: list[Outlook], given: Assumptions) -> dict[str, Any]:
    return {
        "sweep": sweep.name,
        "scale": sweep.scale,
        "assumed": dataclasses.asdict(given),
        "trials": [dataclasses.asdict(each) for each in work],
        "gpus": [dataclasses.asdict(row) for row in rows],
    }
