"""The command line of a search file: `search_command(build, __doc__)` at its end is all it needs."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nowcastlab.cli.sweep import CPUS_PER_TRIAL, FOLDER, GPUS_PER_TRIAL, as_help
from nowcastlab.cli.verbs import SCALE_HELP, run

if TYPE_CHECKING:
    from nowcastlab.config import TrainConfig
    from nowcastlab.sweep.search import Search
    from nowcastlab.sweep.search.driver import SearchResult

SHOWN = 8  # trials in the table


def search_command(build: Callable[[str], Search], doc: str | None, *, trials: int) -> None:
    """Run a search file as a command: `build(scale)` gives the search."""

    @click.command(help=as_help(doc), context_settings={"help_option_names": ["-h", "--help"]})
    @click.option(
        "--scale", type=click.Choice(["demo", "laptop", "paper"]), default="demo", show_default=True, help=SCALE_HELP
    )
    @click.option(
        "--trials",
        type=click.IntRange(1),
        default=trials,
        show_default=True,
        help="How many trials in all, those done before included.",
    )
    @CPUS_PER_TRIAL
    @GPUS_PER_TRIAL
    @FOLDER
    def command(scale: str, trials: int, cpus_per_trial: float, gpus_per_trial: float, folder: Path) -> None:
        from nowcastlab.sweep.search.driver import run_search

        search = build(scale)
        click.echo(f"{search.question}\n{search.name}, {scale} scale: {trials} trials over {', '.join(search.space)}.")
        result = run_search(
            search,
            trials=trials,
            root=folder,
            cpus_per_trial=cpus_per_trial,
            gpus_per_trial=gpus_per_trial,
            say=lambda line: click.echo(line, err=True),
        )
        click.echo(f"\n{as_text(result)}")
        code, why = how_it_ended(result)
        if code:
            click.echo(why, err=True)
            sys.exit(code)

    run(command)


def how_it_ended(result: SearchResult) -> tuple[int, str]:
    """The exit code, and for one that is not 0 what a person should know."""
    from nowcastlab.sweep.search.study import in_vain

    if result.interrupted:
        return 130, "Interrupted; the same command goes on."
    if in_vain(result.found):
        return 4, (
            f"Every trial failed, the first with {result.found[0].error}. Mend that and ask for more, as --trials "
            f"{2 * len(result.found)}: a point that failed is not tried again."
        )
    return 0, ""


def as_text(result: SearchResult) -> str:
    """The best trials as a table, what mattered, and the command that trains the best."""
    from nowcastlab.sweep.search.design import shown

    search = result.folder.search
    names = list(search.space)
    lines = [f"  {'trial':<6}  {'score':>9}  {'updates':>7}  {'outcome':<8}  " + "  ".join(f"{n:>13}" for n in names)]
    for one in result.found[:SHOWN]:
        score = "-" if one.score is None else f"{one.score:.5g}"
        values = "  ".join(f"{shown(one.values[name]):>13}" for name in names)
        lines.append(f"  t{one.number:03d}    {score:>9}  {one.step:>7}  {one.outcome:<8}  {values}")
    count = {
        outcome: sum(one.outcome == outcome for one in result.found) for outcome in ("finished", "pruned", "failed")
    }
    lines.append("  " + ", ".join(f"{n} {outcome}" for outcome, n in count.items() if n) + f"; runs: {result.link}")
    if result.importance:
        parts = ", ".join(f"{name} {share:.0%}" for name, share in result.importance.items())
        lines.append(f"  What the score depended on, by {count['finished']} finished trials, roughly: {parts}")
    best = result.best
    if best is None:
        return "\n".join([*lines, "No trial was trained to its end yet."])
    config = search.trial(best.number, best.values).config
    assert config is not None
    folder = result.folder.trial(search.trial(best.number, best.values))
    lines += [
        f"\nBest: t{best.number:03d}, validation score {best.score:.5g}, on one seed. Trained, in {folder}",
        f"To train it again, with another seed:\n  {train_command(config)}",
    ]
    return "\n".join(lines)


def train_command(config: TrainConfig) -> str:
    """The `nowcastlab train` that means this config."""
    from nowcastlab.config import DigitsData
    from nowcastlab.config.presets import RADAR_LOSSES, departures

    words = ["nowcastlab", "train", "--model", config.model]
    if isinstance(config.data, DigitsData):
        words += ["--digits", config.data.digits]
    else:
        words += ["--store", config.data.store]
        if config.loss != RADAR_LOSSES["balanced"]:  # train's default; of digits there is one loss
            named = {loss: name for name, loss in RADAR_LOSSES.items()}
            words += ["--loss", named.get(config.loss, config.loss)]
    words += ["--scale", config.scale]
    # as the loss: `departures` starts from the config's own, and so names neither
    words += ["--preset", config.preset] if config.preset != "paper" else []
    words += ["--seed", str(config.seed + 1)]
    for name, (_, own) in departures(config).items():
        words += ["--set", f"{name}={json.dumps(own, separators=(',', ':'))}"]
    return shlex.join(words)
