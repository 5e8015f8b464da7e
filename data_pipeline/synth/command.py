"""`python -m data_pipeline synth`."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from data_pipeline.local_path import LocalPath
from nowcastlab.cli.verbs import given
from nowcastlab.errors import ConfigError

if TYPE_CHECKING:
    from data_pipeline.synth.days import SyntheticPlan
    from data_pipeline.synth.describe import Figure

_DESCRIBE_DAYS = 12  # of weather; with fewer, a wet or dry spell more or less shows in the figures
OF_TARGET = ("--archive", "--undenoised", "--off-grid")


@click.command(name="synth")
@click.argument("target", type=LocalPath(), required=False)
@click.option(
    "--days", type=click.IntRange(1), help=f"How many days to make.  [default: {_DESCRIBE_DAYS}, with --describe]"
)
@click.option(
    "--size",
    type=int,
    default=480,
    show_default=True,
    help="Width and height of a frame in pixels, over an area of 512 km.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="Another seed makes another weather."
)
@click.option("--interval-minutes", type=int, default=6, show_default=True, help="Minutes from one frame to the next.")
@click.option(
    "--start",
    type=click.DateTime(["%Y-%m-%d"]),
    default="2014-05-01",
    show_default=True,
    help="The first day; days follow one another.",
)
@click.option("--archive", is_flag=True, help="Write files laid out like a real archive, not a store.")
@click.option("--undenoised", is_flag=True, help="Leave the clutter out of the exclusion map, for `denoise` to find.")
@click.option("--off-grid", is_flag=True, help="With --archive: stamp a frame now and then a minute late.")
@click.option("--describe", is_flag=True, help="Write nothing; compare the rain with the HKO-7 test set.")
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), help="Draw some hours of it into a PNG.")
@click.option("--json", "as_json", is_flag=True, help="With --describe: print one JSON object, for scripts.")
@click.pass_context
def command(
    ctx: click.Context,
    target: Path | None,
    days: int | None,
    size: int,
    seed: int,
    interval_minutes: int,
    start: dt.datetime,
    archive: bool,
    undenoised: bool,
    off_grid: bool,
    describe: bool,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Make synthetic radar from a seed: a store, or an archive of files.

    Rain that moves, turns, grows and decays, with ground clutter, a sun spike, sea clutter and missing frames on top,
    calibrated to resemble the HKO-7 test set, which it is not. A frame depends on seed, size and its own minute alone:
    a longer run begins like a shorter one, and a store that was cut short goes on where it stopped. An archive is
    written whole, into a new or empty folder: take away what is left of one that was cut short.

    A smaller size is a coarser picture of the same 512 km. The last sixth of the days is for testing, every sixth day
    before it for validation.

    \b
    Examples:
      python -m data_pipeline synth work/demo.zarr --days 12 --size 120
      python -m data_pipeline synth work/archive --days 3 --archive
      python -m data_pipeline synth --describe --size 120 --picture rain.png
    """
    from data_pipeline.synth.days import SyntheticPlan

    if target is None and not describe and picture is None:
        raise click.UsageError("Name the store or folder to write, or ask for --describe or --picture.")
    if target is not None and describe:
        raise click.UsageError(f"--describe writes nothing: leave out {target}.")
    if target is not None and days is None:
        raise click.UsageError("Say how many --days to make.")
    if as_json and not describe:
        raise click.UsageError("--json is for --describe: nothing else has figures to print.")
    if target is None and (misplaced := given(ctx, *OF_TARGET)):
        raise click.UsageError(f"{misplaced[0]} says what to write: name the TARGET, or leave it out.")
    plan = SyntheticPlan(
        start=start.date(),
        days=days or _DESCRIBE_DAYS,
        size=size,
        seed=seed,
        interval_minutes=interval_minutes,
        off_grid=off_grid,
    )
    if off_grid and not archive:
        raise ConfigError("Stamps off the grid come as files only: add --archive, then ingest it.")
    if target is not None:
        _write(plan, target, archive=archive, undenoised=undenoised)
    if describe:
        _describe(plan, as_json=as_json)
    if picture is not None:
        from data_pipeline.synth.picture import contact_sheet

        contact_sheet(plan, picture)
        click.echo(f"Drew {picture}.", err=as_json)


def _write(plan: SyntheticPlan, target: Path, *, archive: bool, undenoised: bool) -> None:
    from data_pipeline.synth.write import write_archive, write_store

    if archive:
        write_archive(plan, target, undenoised=undenoised)
    else:
        if target.suffix != ".zarr":
            target = target.with_name(f"{target.name}.zarr")
        write_store(plan, target, undenoised=undenoised)
    kind = "archive" if archive else "store"
    click.echo(f"{target}: synthetic {kind}, {plan.days} days of {plan.size}x{plan.size} pixels, seed {plan.seed}.")


def _describe(plan: SyntheticPlan, *, as_json: bool) -> None:
    from data_pipeline.synth.describe import describe_plan, table

    figures = describe_plan(plan)
    if as_json:
        click.echo(json.dumps({"days": plan.days, "size": plan.size, "seed": plan.seed, "figures": _rows(figures)}))
        return
    click.echo(
        f"Synthetic rain, {plan.days} days of {plan.size}x{plan.size} pixels, seed {plan.seed}, and the HKO-7 test set"
    )
    for line in table(figures):
        click.echo(line)


def _rows(figures: list[Figure]) -> list[dict[str, object]]:
    return [
        {**figure._asdict(), "relative_error": figure.relative_error, "agrees": figure.agrees} for figure in figures
    ]
