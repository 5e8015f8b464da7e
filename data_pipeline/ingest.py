"""`ingest`: an archive of PNG files into a store, a task a day, going on where it was stopped."""

from __future__ import annotations

import datetime as dt
import functools
import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from data_pipeline import archive_layout as layout
from data_pipeline.archive_day import KINDS, Problem, read_day
from data_pipeline.archive_plan import Plan, make_plan
from data_pipeline.local_path import LocalPath
from data_pipeline.npy_header import LARGEST_SIDE
from nowcastlab import engine
from nowcastlab.cli.verbs import FiniteRange
from nowcastlab.errors import StoreError
from nowcastlab.store import DayWriter, Receipt, StoreWriter, open_store
from nowcastlab.whole_files import write_atomically

PROBLEMS_SHOWN = 5  # of each kind, in the summary; the file holds all


@dataclass(frozen=True, kw_only=True)
class DayResult:
    receipt: Receipt
    problems: list[Problem]


@click.command()
@click.argument("archive", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("store", type=LocalPath())
@click.option(
    "--lists",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with the lists of days to train, validate and test on.  [default: ARCHIVE]",
)
@click.option(
    "--exclude",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Map of pixels never to be scored.  [default: ARCHIVE/mask_dat.npz, if it is there]",
)
@click.option(
    "--size",
    type=click.IntRange(1, LARGEST_SIDE),
    help="Pixels along a side.  [default: as the frames have]",
)
@click.option(
    "--interval-minutes",
    type=click.IntRange(1, 1440),
    default=6,
    show_default=True,
    help="Minutes from one frame to the next.",
)
@click.option(
    "--km-across",
    type=FiniteRange(0, min_open=True),
    default=512.0,
    show_default=True,
    help="Length of a frame's side, in km.",
)
@click.option("--title", help="What the store is called.  [default: the archive's folder name]")
@click.option(
    "--check-masks/--no-check-masks",
    default=True,
    help="Compare the archive's masks with those found here.  [default: yes]",
)
@click.option("--strict", is_flag=True, help="Stop at the first problem other than a missing frame.")
@click.option(
    "--cpus",
    type=click.IntRange(min=1),
    help="How many CPUs to use, where this command starts Ray itself.  [default: all]",
)
def command(
    archive: Path,
    store: Path,
    lists: Path | None,
    exclude: Path | None,
    size: int | None,
    interval_minutes: int,
    km_across: float,
    title: str | None,
    check_masks: bool,
    strict: bool,
    cpus: int | None,
) -> None:
    """Ingest an archive in the HKO-7 layout.

    ARCHIVE holds radarPNG/YYYY/MM/DD/RADyymmddHHMM00.png, and may hold radarPNG_mask/, mask_dat.npz and day lists
    NAME_rainy_{train,valid,test}_days.txt with lines `YYYYMMDD, mm`. Days are read in parallel. Stopped at any moment,
    the same command goes on. Every problem is listed in STORE.problems.jsonl; none is fatal for the rest unless
    --strict.

    \b
    Examples:
      python -m data_pipeline ingest ~/HKO-7 work/hko7.zarr
      python -m data_pipeline ingest ~/HKO-7 work/hko7.zarr --lists lists/ --exclude lists/mask_dat.npz
      python -m data_pipeline synth work/archive --archive --days 3 && \\
      python -m data_pipeline ingest work/archive work/small.zarr
    """
    archive, store = archive.resolve(), store.resolve()  # the workers of a cluster stand in other folders
    plan = make_plan(archive, lists=lists, exclude=exclude, size=size)
    if strict and plan.problems:
        raise StoreError(f"--strict: {describe(plan.problems[0])}")
    log = ProblemLog(store.with_name(store.name + ".problems.jsonl"))
    with StoreWriter.create(
        store,
        dates=plan.dates,
        grid=(plan.excluded.shape[0], plan.excluded.shape[1]),
        interval_minutes=interval_minutes,
        km_per_pixel=km_across / plan.excluded.shape[1],
        title=title or archive.name,
        excluded=plan.excluded,
        splits=plan.splits,
        gauge_mm=plan.gauge_mm,
    ) as writer:
        if writer.committed:
            click.echo(f"{len(writer.committed)} of {len(plan.dates)} days are in {store}; going on with the rest.")
        log.keep(plan.problems, committed=writer.committed)
        if writer.missing:
            masks = check_masks and (archive / layout.MASKS_FOLDER).is_dir()
            ingest(plan, writer, log, interval_minutes=interval_minutes, check_masks=masks, strict=strict, cpus=cpus)
    _print_summary(store, log)


def ingest(
    plan: Plan,
    writer: StoreWriter,
    log: ProblemLog,
    *,
    interval_minutes: int,
    check_masks: bool,
    strict: bool,
    cpus: int | None = None,
) -> None:
    """Read the days that are missing, wherever there is a worker, and commit each as it comes."""
    engine.connect(cpus=cpus)
    work = functools.partial(
        ingest_day,
        root=plan.root,
        writer=writer.day_writer,
        excluded=plan.excluded,
        interval_minutes=interval_minutes,
        check_masks=check_masks,
        strict=strict,
    )
    for _, result in engine.map_unordered(work, writer.missing, label="ingest", unit="day"):
        log.append(result.problems)  # before the day counts as done: a kill in between repeats it, and loses nothing
        writer.commit(result.receipt)


def ingest_day(
    date: dt.date,
    *,
    root: Path,
    writer: DayWriter,
    excluded: NDArray[np.bool_],
    interval_minutes: int,
    check_masks: bool,
    strict: bool,
) -> DayResult:
    day = read_day(root, date, excluded=excluded, interval_minutes=interval_minutes, check_masks=check_masks)
    if strict:
        for problem in day.problems:
            if problem.kind != "missing-frame":
                raise StoreError(f"--strict: {describe(problem)}")
    receipt = writer.write(date, day.minutes, day.frames)
    return DayResult(receipt=receipt, problems=day.problems)


class ProblemLog:
    """Every problem, a JSON line each; it survives a stop, and a day that is read again is not in it twice."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def keep(self, planned: list[Problem], *, committed: Iterable[dt.date]) -> None:
        """Start from what is known of the plan and of the days that are done."""
        days = {date.isoformat() for date in committed}
        kept = [problem for problem in self.problems() if problem.day in days]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, "".join(json.dumps(p.as_dict()) + "\n" for p in planned + kept).encode())

    def append(self, problems: list[Problem]) -> None:
        with open(self.path, "a") as file:
            file.write("".join(json.dumps(problem.as_dict()) + "\n" for problem in problems))
            file.flush()
            os.fsync(file.fileno())

    def problems(self) -> list[Problem]:
        if not self.path.exists():
            return []
        found = []
        for line in self.path.read_text().splitlines():
            try:
                found.append(Problem(**json.loads(line)))
            except (ValueError, TypeError):
                continue  # the last line of a writer that was killed; its day is read again
        return found


def describe(problem: Problem) -> str:
    where = problem.file or problem.day
    return f"{problem.kind}: {where}{': ' + problem.detail if problem.detail else ''}"


def _print_summary(path: Path, log: ProblemLog) -> None:
    store = open_store(str(path))
    problems = log.problems()
    click.echo(f"{path}: {len(store.days)} days, {len(store.minutes())} frames, digest {store.digest[:16]}")
    for kind, number in Counter(problem.kind for problem in problems).most_common():
        click.echo(f"\n  {number} x {kind} ({KINDS[kind]})")
        shown = [problem for problem in problems if problem.kind == kind]
        for problem in shown[:PROBLEMS_SHOWN]:
            click.echo(f"    {describe(problem).removeprefix(kind + ': ')}")
        if number > PROBLEMS_SHOWN:
            click.echo(f"    ... and {number - PROBLEMS_SHOWN} more")
    click.echo(f"\nEvery problem, a JSON line each: {log.path}" if problems else "\nNo problems.")
