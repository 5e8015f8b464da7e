"""The command line of a sweep file: `sweep_command(build, __doc__)` at its end is all it needs."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from nowcastlab.cli.verbs import SCALE_HELP, FiniteRange, run
from nowcastlab.sweep import Sweep, SweepResult

Build = Callable[..., Sweep]
CPUS_PER_TRIAL = click.option(
    "--cpus-per-trial",
    type=FiniteRange(0, min_open=True),
    default=1,
    show_default=True,
    help="CPUs that each trial reserves; as many trials run at once as there is room.",
)
GPUS_PER_TRIAL = click.option(
    "--gpus-per-trial",
    type=FiniteRange(0),
    default=0,
    show_default=True,
    help="GPUs that each trial reserves; with 0.5, two trials share one.",
)
FOLDER = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("work/sweeps"),
    show_default=True,
    help="Folder for the trials' results; the same one again goes on with them.",
)


def sweep_command(build: Build, doc: str | None) -> None:
    """Run a sweep file as a command.

    `build(scale, seeds)` gives the sweep. With a third parameter, `build(scale, seeds, store)`, it takes a radar store:
    the user must name one, unless that parameter has a default.
    """

    @click.command(help=as_help(doc), context_settings={"help_option_names": ["-h", "--help"]})
    @click.option(
        "--scale", type=click.Choice(["demo", "laptop", "paper"]), default="demo", show_default=True, help=SCALE_HELP
    )
    @click.option(
        "--seeds", default="1,2,3", show_default=True, help="Seeds that each arm is trained with, with commas between."
    )
    @_store_option(store_parameter(build))
    @CPUS_PER_TRIAL
    @GPUS_PER_TRIAL
    @FOLDER
    @click.option(
        "--plan", "plan_only", is_flag=True, help="Print what the sweep would do and how long it takes here, and stop."
    )
    def command(
        scale: str,
        seeds: str,
        cpus_per_trial: float,
        gpus_per_trial: float,
        folder: Path,
        plan_only: bool,
        store: str | None = None,
    ) -> None:
        extra = (store,) if store is not None else ()
        _run(build(scale, parse_seeds(seeds), *extra), folder, cpus_per_trial, gpus_per_trial, plan_only)

    run(command)


def store_parameter(build: Build) -> inspect.Parameter | None:
    """The third parameter of a function that builds a sweep, if it has one."""
    return next(iter(list(inspect.signature(build).parameters.values())[2:]), None)


def _store_option(wanted: inspect.Parameter | None) -> Callable[[Any], Any]:
    if wanted is None:
        return lambda command: command
    must = wanted.default is inspect.Parameter.empty
    told = "Path or URL of a radar store." + ("" if must else "  [default: a synthetic one, made first]")
    return click.option("--store", required=must, help=told)


def as_help(doc: str | None) -> str:
    """A module's docstring as click shows it: indented blocks stay as they are."""
    return "\n\n".join(f"\b\n{part}" if part.startswith(" ") else part for part in (doc or "").split("\n\n"))


def parse_seeds(text: str) -> tuple[int, ...]:
    """What --seeds says: whole numbers with commas between."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise click.UsageError(f"--seeds takes whole numbers with commas between, not {text!r}.") from None


def _run(sweep: Sweep, root: Path, cpus: float, gpus: float, plan_only: bool) -> None:
    from nowcastlab.sweep import SweepFolder
    from nowcastlab.sweep.folder import usable
    from nowcastlab.sweep.plan import as_text, plan_arms

    folder = SweepFolder(root, sweep)
    with usable(folder.path, "sweep"):
        missing = folder.missing()
    click.echo(f"{sweep.question}\n{sweep.name}, {sweep.scale} scale: {len(sweep.trials)} trials", nl=False)
    if not missing:
        click.echo(", all finished before.")
    else:
        done = len(sweep.trials) - len(missing)
        click.echo(f", {done} finished before, {len(missing)} to do." if done else ".")
        here = not gpus and not os.environ.get("RAY_ADDRESS")
        click.echo(as_text(plan_arms(sweep, missing), max(1, (os.cpu_count() or 1) // cpus) if here else None))
    if plan_only:
        return
    run_and_tell(sweep, root, cpus_per_trial=cpus, gpus_per_trial=gpus)


def run_and_tell(sweep: Sweep, root: Path, **options: Any) -> None:
    """Run a sweep, options as `run_sweep` takes them; say how it ended, and print its table."""
    from nowcastlab.sweep import run_sweep
    from nowcastlab.tracking import connect

    try:
        result = run_sweep(sweep, root=root, say=lambda line: click.echo(line, err=True), **options)
    except KeyboardInterrupt:  # outside of Ray Tune, which ends by itself
        click.echo("Interrupted; the same command goes on.", err=True)
        sys.exit(130)
    click.echo(f"{len(result.finished)} of {len(sweep.trials)} trials finished. Runs: {result.link}")
    for key, why in result.failed.items():
        click.echo(f"  failed: {key}: {why}", err=True)
    if result.failed:
        click.echo("The same command tries what failed again, and leaves the rest as it is.", err=True)
    if result.unfinished:
        click.echo(f"Interrupted with {len(result.unfinished)} trials to go; the same command goes on.", err=True)
    if code := exit_code(result):
        sys.exit(code)
    click.echo(f"\n{table_text(sweep, connect())}\n")
    click.echo(f"Again: nowcastlab report --table {sweep.table} --sweep {sweep.name} --scale {sweep.scale}")


def exit_code(result: SweepResult) -> int:
    """Of a sweep that came back: a trial that neither finished nor failed was interrupted."""
    return 130 if result.unfinished else 4 if result.failed else 0


def table_text(sweep: Sweep, client: Any) -> str:
    """A finished sweep's table, as it is printed at its end."""
    from nowcastlab.report import FORMATS, TABLES, from_mlflow

    collection, _ = from_mlflow(client, sweep.name, scale=sweep.scale)
    return FORMATS["text"](TABLES[sweep.table](collection))
