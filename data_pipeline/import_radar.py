"""`import`: the user's own radar, from common files to a store."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from data_pipeline.local_path import LocalPath
from data_pipeline.npy_header import LARGEST_SIDE
from data_pipeline.radar_source import RadarSource, kind_of, open_source
from data_pipeline.radar_survey import Problem, commonest_gap, survey
from data_pipeline.regrid import UNITS, Regrid, known_units, part_of
from nowcastlab.cli.verbs import FiniteRange, given
from nowcastlab.errors import ConfigError
from nowcastlab.progress import progress
from nowcastlab.stamps import clock

# Options that only one kind of source heeds, and what that is.
OF_KIND = {
    "xarray": ("what xarray opens, which names its dimensions", ("--time", "--select")),
    "folder": ("folders, whose files tell the time in their names", ("--pattern",)),
}


@dataclass(kw_only=True)
class Summary:
    store: str
    digest: str = ""
    grid: tuple[int, int] = (0, 0)
    units: str = ""
    interval_minutes: int = 0
    km_per_pixel: float = 0.0
    days: int = 0
    days_written_now: int = 0
    frames: int = 0
    missing_pixels: int = 0
    missing_share: float = 0.0
    excluded_pixels: int = 0
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def split_of(date: dt.date, *, split: str, train_until: dt.date | None, valid_until: dt.date | None) -> str:
    if train_until is None and valid_until is None:
        return split
    if train_until is not None and date <= train_until:
        return "train"
    return "valid" if valid_until is not None and date <= valid_until else "test"


def _off_grid_note(minutes: NDArray[np.int64], interval_minutes: int) -> list[str]:
    off = minutes[minutes % interval_minutes != 0]
    if not len(off):
        return []
    return [
        f"{len(off)} of {len(minutes)} stamps are off the {interval_minutes}-minute grid, the first "
        f"{clock(off.min())}: kept under their own stamps, and windows that start on the grid do not see them."
    ]


def _pairs(items: Iterable[str]) -> dict[str, int]:
    try:
        return {name: int(position) for name, position in (item.split("=") for item in items)}
    except ValueError:
        raise ConfigError(f"--select takes NAME=POSITION, such as elevation=0, got {', '.join(items)}.") from None


def _crop(text: str | None) -> tuple[int, int, int] | None:
    if text is None:
        return None
    try:
        top, left, side = (int(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"--crop takes TOP,LEFT,SIDE in pixels, such as 56,120,512, got {text!r}.") from None
    return top, left, side


def as_text(summary: Summary) -> str:
    height, width = summary.grid
    lines = [
        f"store      {summary.store}",
        f"days       {summary.days:,}, {summary.days_written_now:,} of them written now",
        f"frames     {summary.frames:,}, every {summary.interval_minutes} minutes",
        f"grid       {height} x {width} pixels of {summary.km_per_pixel:.4g} km",
        f"units      {summary.units}",
        f"missing    {summary.missing_pixels:,} pixel values ({summary.missing_share:.2%}), stored as no echo",
        f"excluded   {summary.excluded_pixels:,} pixels ({summary.excluded_pixels / height / width:.2%}), never scored",
        f"digest     {summary.digest}",
        *(f"note       {note}" for note in summary.notes),
        *(f"problem    {problem.stamp} {problem.what}" for problem in summary.problems[:20]),
    ]
    if len(summary.problems) > 20:
        lines.append(f"           ... and {len(summary.problems) - 20} more: see --json")
    return "\n".join(lines)


@click.command(name="import")
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("store", type=LocalPath())
@click.option("--variable", help="Name of the variable that holds the radar.  [default: the only one there is]")
@click.option("--units", type=click.Choice(UNITS), help="Units of the values.  [default: as the source says]")
@click.option(
    "--interval-minutes",
    type=click.IntRange(1, 1440),
    help="Minutes from one frame to the next.  [default: the commonest gap between frames]",
)
@click.option(
    "--km-per-pixel", type=FiniteRange(0, min_open=True), required=True, help="Size of the source's pixels, in km."
)
@click.option("--size", type=click.IntRange(1, LARGEST_SIDE), help="Crop to a square and resample it to SIZE x SIZE.")
@click.option("--crop", metavar="TOP,LEFT,SIDE", help="The square to keep, in pixels.  [default: the middle]")
@click.option(
    "--scale", type=float, default=1.0, help="Factor for stored values: value = scale * stored + offset.  [default: 1]"
)
@click.option(
    "--offset", type=float, default=0.0, help="Added to stored values: value = scale * stored + offset.  [default: 0]"
)
@click.option("--missing", type=float, help="The stored value that means 'not known'.")
@click.option(
    "--exclude-missing-above",
    type=FiniteRange(0, 1),
    default=0.1,
    show_default=True,
    help="Never score a pixel that is missing in a larger share of the frames.",
)
@click.option("--time", help="Name of the time dimension.  [default: the one that holds dates]")
@click.option(
    "--select",
    multiple=True,
    metavar="NAME=POSITION",
    help="Pick one position of a further dimension, as elevation=0; may be repeated.",
)
@click.option("--pattern", default="%Y%m%d%H%M", show_default=True, help="How file names of a folder tell the time.")
@click.option("--title", help="What the store is called.  [default: the source's name]")
@click.option(
    "--split",
    type=click.Choice(["train", "valid", "test", "none"]),
    default="test",
    show_default=True,
    help="What all days are for, unless --train-until or --valid-until divide them.",
)
@click.option(
    "--train-until",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Last day to train on; later days are to validate or test on.",
)
@click.option(
    "--valid-until", type=click.DateTime(["%Y-%m-%d"]), help="Last day to validate on; later days are to test on."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for scripts.")
@click.pass_context
def command(
    ctx: click.Context,
    source: Path,
    store: Path,
    *,
    variable: str | None,
    units: str | None,
    interval_minutes: int | None,
    km_per_pixel: float,
    size: int | None,
    crop: str | None,
    scale: float,
    offset: float,
    missing: float | None,
    exclude_missing_above: float,
    time: str | None,
    select: tuple[str, ...],
    pattern: str,
    title: str | None,
    split: str,
    train_until: dt.datetime | None,
    valid_until: dt.datetime | None,
    as_json: bool,
) -> None:
    """Bring your own radar, SOURCE, into STORE.

    SOURCE is a NetCDF, HDF5 or zarr file that xarray opens; or an .npz with `frames`, `times` (datetimes, ISO text, or
    whole minutes since 1970-01-01) and perhaps `mask` (1 = valid); or a folder of grey PNG or npz frames with the stamp
    in each name. Values are dBZ, rain rates in mm/h, or bytes already encoded as HKO-7's. Rows are turned so that north
    is up where the source has coordinates.

    With --size the middle square (or --crop) is resampled: shrinking takes the area mean of the rain rate, so the
    amount of water stays. Missing values are stored as no echo and counted; a pixel missing too often, or invalid in
    the source's mask, is excluded from all scores; a frame with no value at all is a missing frame.

    All days go to the test split unless said otherwise: a few sequences serve to try a trained model on. For an archive
    to train with, --train-until and --valid-until divide it in time. Run again, it goes on with the days that are not
    in the store yet; a store begun with another grid, interval, title or split, or from values that were read otherwise
    (units, scale, offset, missing, crop, variable), is refused.

    \b
    Examples:
      python -m data_pipeline import radar.nc mine.zarr --variable DBZH --units dBZ --km-per-pixel 1 --size 480
      python -m data_pipeline import frames/ mine.zarr --pattern %Y%m%d_%H%M --units mm/h --scale 0.1 --km-per-pixel 2
      python -m data_pipeline import storm.npz storm.zarr --units pixel --km-per-pixel 1.0667
      python -m data_pipeline import radar.nc mine.zarr --km-per-pixel 1 \\
          --train-until 2022-12-31 --valid-until 2023-06-30
    """
    if train_until and valid_until and train_until > valid_until:
        raise click.UsageError(
            f"--train-until {train_until:%Y-%m-%d} is after --valid-until {valid_until:%Y-%m-%d}, which would leave no "
            "day for validation: training comes first, then validation, then the test."
        )
    for kind, (what, options) in OF_KIND.items():
        if source.exists() and kind_of(source) != kind and (misplaced := given(ctx, *options)):
            raise click.UsageError(f"{misplaced[0]} is for {what}: for {source} it would change nothing.")
    opened = open_source(source, variable=variable, pattern=pattern, time=time, select=_pairs(select))
    try:
        summary = import_radar(
            opened,
            store,
            units=known_units(units, opened.units),
            interval_minutes=interval_minutes or commonest_gap(opened.minutes),
            km_per_pixel=km_per_pixel,
            size=size,
            crop=_crop(crop),
            scale=scale,
            offset=offset,
            missing=missing,
            exclude_missing_above=exclude_missing_above,
            title=title or source.resolve().stem,
            source_name=source.resolve().name,
            split_of=lambda date: split_of(
                date,
                split=split,
                train_until=train_until.date() if train_until else None,
                valid_until=valid_until.date() if valid_until else None,
            ),
        )
    finally:
        opened.close()
    click.echo(json.dumps(dataclasses.asdict(summary), indent=2) if as_json else as_text(summary))


def import_radar(
    source: RadarSource,
    path: Path,
    *,
    units: str,
    interval_minutes: int,
    km_per_pixel: float,
    size: int | None,
    crop: tuple[int, int, int] | None,
    scale: float,
    offset: float,
    missing: float | None,
    exclude_missing_above: float,
    title: str,
    source_name: str,
    split_of: Callable[[dt.date], str],
) -> Summary:
    """Read every frame twice: once to see what can be used and what is excluded, once to write it day by day."""
    from nowcastlab.store import StoreWriter, open_store

    part, grid = part_of(source.grid, crop=crop, size=size)
    regrid = Regrid(units=units, part=part, grid=grid, scale=scale, offset=offset, missing=missing)
    found = survey(source, regrid, interval_minutes, watch=lambda order: progress(order, label="survey", unit="frame"))
    excluded = found.missing_share > exclude_missing_above
    if source.valid is not None:
        excluded |= ~regrid.mask(source.valid)
    dates = sorted(found.positions)
    with StoreWriter.create(
        path,
        dates=dates,
        grid=grid,
        interval_minutes=interval_minutes,
        km_per_pixel=km_per_pixel * part.width / grid[1],
        title=title,
        excluded=excluded,
        splits={date: split_of(date) for date in dates},
        attributes={"source": source_name, **source.chosen, **regrid.attributes()},
    ) as writer:
        to_write = [date for date in dates if date in set(writer.missing)]
        for date in progress(to_write, label="import", unit="day"):
            positions = found.positions[date]
            frames = np.stack([regrid(source.read(position))[0] for position in positions])
            writer.commit(writer.write_day(date, source.minutes[positions], frames))
    store = open_store(str(path))
    frames_used = sum(map(len, found.positions.values()))
    return Summary(
        store=str(path),
        digest=store.digest,
        grid=grid,
        units=units,
        interval_minutes=interval_minutes,
        km_per_pixel=store.km_per_pixel,
        days=len(store.days),
        days_written_now=len(to_write),
        frames=len(store.minutes()),
        missing_pixels=found.missing_pixels,
        missing_share=found.missing_pixels / (frames_used * grid[0] * grid[1]),
        excluded_pixels=int(excluded.sum()),
        notes=[*source.notes, *_off_grid_note(source.minutes, interval_minutes)],
        problems=found.problems,
    )
