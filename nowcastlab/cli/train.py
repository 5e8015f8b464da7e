"""`nowcastlab train`: one network, trained here, in a folder it can always be resumed from."""

from __future__ import annotations

import json
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nowcastlab.cli.completion import complete_models
from nowcastlab.cli.forecasters import SYNTH
from nowcastlab.cli.verbs import SCALE_HELP
from nowcastlab.metric_names import TRAIN_LOSS, VALID_BEST_STEP, VALID_SCORE
from nowcastlab.progress import progress

if TYPE_CHECKING:
    from nowcastlab.config import TrainConfig
    from nowcastlab.training import Progress, TrainResult

OWN_OPTIONS = ("model", "scale", "preset")


@click.command()
@click.option(
    "--model", required=True, shell_complete=complete_models, help="A network; `nowcastlab models` lists them."
)
@click.option("--store", help="Radar: a zarr store, by path or URL. Without it the network learns moving digits.")
@click.option(
    "--digits",
    type=click.Choice(["mnist", "sklearn-digits"]),
    help="Moving digits: whose handwriting.  [default: mnist where it has been fetched]",
)
@click.option(
    "--scale", type=click.Choice(["demo", "laptop", "paper"]), default="demo", show_default=True, help=SCALE_HELP
)
@click.option(
    "--preset",
    type=click.Choice(["paper", "release"]),
    default="paper",
    show_default=True,
    help="Whose recipe, where they differ: the paper's, or the authors' released code's.",
)
@click.option(
    "--loss",
    default="balanced",
    show_default=True,
    help="Radar: balanced (heavy rain weighs more), plain, or a part, as b-mae.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Decides the first weights and the order of the data."
)
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Any other setting; may be repeated.")
@click.option("--out", type=click.Path(path_type=Path), help="The run's folder.  [default: work/runs/MODEL-SCALE-SEED]")
@click.option("--plan", "plan_only", is_flag=True, help="Say what would be done, and stop.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="The result, or with --plan the plan, as one JSON object on standard output.",
)
def command(
    model: str,
    store: str | None,
    digits: str | None,
    scale: str,
    preset: str,
    loss: str,
    seed: int,
    changes: tuple[str, ...],
    out: Path | None,
    plan_only: bool,
    as_json: bool,
) -> None:
    """Train one network.

    What it will do is printed first. The run can be stopped with Ctrl-C, or killed, at any time; the same command goes
    on from its last checkpoint and ends with the weights it would have had, to the bit on the same machine and number
    of threads. A run that is finished is not run again.

    A scale says how large a run is: demo takes minutes on two cores, laptop an hour or so, paper is every number of
    Shi et al. 2017. A preset says whose recipe it follows where the paper and the authors' release differ: the learning
    rate's decay and early stopping, clipping, the digits' rotation.

    Every setting can be changed with --set: learning_rate, batch_size, max_steps, validate_every, patience, clip_norm,
    precision=bfloat16, device=cuda, threads, data.leads, overrides.links and so on; a name that is not one is
    answered with the list. Values are JSON: 1e-3, true, null, [8,12,12].

    The folder holds config.json (the run), history.jsonl (a line for each report) and checkpoints (the newest two, and
    the best by validation: B-MSE + B-MAE for radar, MSE for digits).

    \b
    Examples:
      nowcastlab train --model trajgru --store work/demo.zarr --seed 1 --out work/run
      nowcastlab train --model convgru --store work/demo.zarr --loss plain      ConvGRU-nobal
      nowcastlab train --model traj-l13 --plan                                  moving digits; only the plan
      nowcastlab train --model traj-l13 --set max_steps=500 --set overrides.links=7
      nowcastlab train --model trajgru --store s3://bucket/hko7.zarr --scale paper --set device=cuda
    """
    config = _config(model, store, digits, scale, preset, loss, {"seed": seed, **_parse(changes)})
    folder = out or Path("work/runs") / f"{model}-{scale}-{config.seed}"
    with _plain_warnings():
        before = _progress_of(folder, config)
        parameters = _parameters(config)
        click.echo(_plan(config, folder, parameters), err=as_json)
        if plan_only:
            if as_json:
                plan = {"parameters": parameters, "folder": str(folder), "config": config.to_plain()}
                click.echo(json.dumps(plan))
            return
        if before is not None:
            click.echo(_whereabouts(before, config), err=as_json)
        result = _train(config, folder, before)
    if as_json:
        click.echo(json.dumps(_plain(result)))
    else:
        click.echo(_ending(result))
    if not result.finished:
        sys.exit(130)


def _config(
    model: str,
    store: str | None,
    digits: str | None,
    scale: str,
    preset: str,
    loss: str,
    changes: dict[str, Any],
) -> TrainConfig:
    from nowcastlab.config import mnist_config, radar_config
    from nowcastlab.models import BASELINES, names

    if store is not None:
        if digits is not None:
            raise click.UsageError("--digits is for moving digits, and --store for radar: give one of them.")
        return radar_config(model, store=store, scale=scale, preset=preset, **{"loss": loss, **changes})
    if model in set(names("hko7")) - set(names("mnist")) - set(BASELINES):
        raise click.UsageError(
            f"{model} is a radar network: give it a store with --store. One to try is made by\n  {SYNTH}"
        )
    if loss != "balanced":
        raise click.UsageError(
            f"--loss {loss} is for radar; moving digits have one loss, mse. Give --store, or drop it."
        )
    return mnist_config(model, scale=scale, preset=preset, digits=digits, **changes)


def _parse(changes: tuple[str, ...]) -> dict[str, Any]:
    """KEY=VALUE, the value as JSON, or as the word it is."""
    parsed: dict[str, Any] = {}
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals or not key:
            raise click.UsageError(f"--set {change}: write KEY=VALUE, as --set learning_rate=1e-3.")
        if key in OWN_OPTIONS:
            raise click.UsageError(f"--set {change}: use --{key} {value}.")
        if key in ("data.store", "data.digits"):
            option = key.removeprefix("data.")
            raise click.UsageError(f"--set {change}: use --{option} {value}.")
        try:
            parsed[key] = json.loads(value)
        except ValueError:
            parsed[key] = value
    return parsed


# --- words


def _parameters(config: TrainConfig) -> int:
    from nowcastlab.training import build_model

    return sum(p.numel() for p in build_model(config).parameters())


def _plan(config: TrainConfig, folder: Path, parameters: int) -> str:
    from nowcastlab.config import RadarData, departures
    from nowcastlab.training.machine import computing, machine_facts

    data = config.data
    with computing(config) as device:
        facts = machine_facts(device)
    what = data.store if isinstance(data, RadarData) else f"moving digits ({data.digits}, {data.count} in a frame)"
    decay = f", x {config.lr_decay:g} every {config.lr_decay_every:,}" if config.lr_decay < 1 else ""
    patience = f", stopping after {config.patience} without a better one" if config.patience else ""
    lines = [
        f"Train {config.model} ({parameters:,} parameters) on {what}",
        f"  frames    {data.in_frames} in, {data.leads} out, {data.height}x{data.width}",
        f"  loss      {config.loss}, scaled by {config.loss_scale:.3g}",
        f"  optimiser Adam, learning rate {config.learning_rate:g}{decay}, batch {config.batch_size}",
        f"  length    at most {config.max_steps:,} updates, validated every {config.validate_every:,}{patience}",
        f"  here      {facts['device']}, {facts['threads']} thread{'s'[: facts['threads'] > 1]}, {config.precision}",
        f"  settings  scale {config.scale}, preset {config.preset}, seed {config.seed}",
        f"  folder    {folder}",
    ]
    for name, (named, own) in departures(config).items():
        lines.append(f"  changed   {name} is {_short(own)}, not {_short(named)}")
    return "\n".join(lines)


def _short(value: Any) -> str:
    return "unset" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _whereabouts(before: Progress, config: TrainConfig) -> str:
    if before.stopped_early or before.step == config.max_steps:
        return f"Finished already, at step {before.step:,}."
    return f"Going on from step {before.step:,} of {config.max_steps:,}."


def _ending(result: TrainResult) -> str:
    if not result.finished:
        return f"Stopped at step {result.step:,}, all of it saved. The same command goes on from there."
    early = " (early: validation no longer improved)" if result.stopped_early else ""
    checkpoints = result.folder / "checkpoints"
    return "\n".join(
        [
            f"Trained for {result.step:,} updates{early}; the best validation, {result.best_score:.6g}, was at step "
            f"{result.best_step:,}.",
            f"  best weights  {checkpoints / f'best-{result.best_step:08d}'}",
            f"  last          {checkpoints / f'step-{result.step:08d}'}",
            f"  history       {result.folder / 'history.jsonl'}",
            f"Evaluate it with\n  nowcastlab evaluate {result.folder}",
        ]
    )


def _plain(result: TrainResult) -> dict[str, Any]:
    return {**vars(result), "folder": str(result.folder)}


# --- doing it


def _progress_of(folder: Path, config: TrainConfig) -> Progress | None:
    """How far this run is; another run in its folder is refused here, before a plan is printed for it."""
    from nowcastlab.training import progress_of
    from nowcastlab.training.run_folder import check_config

    check_config(folder, config)
    return progress_of(folder)


def _train(config: TrainConfig, folder: Path, before: Progress | None) -> TrainResult:
    from nowcastlab.training import train

    with progress(total=config.max_steps, label=config.model, unit="update") as bar:
        if before is not None:
            bar.initial = bar.n = before.step  # the remaining time is reckoned from what is done here
            bar.refresh()

        def report(metrics: dict[str, Any]) -> None:
            bar.update(metrics["step"] - bar.n)
            if TRAIN_LOSS in metrics:
                bar.set_postfix(loss=f"{metrics[TRAIN_LOSS]:.4g}", refresh=False)
            if VALID_SCORE in metrics:
                best = "  the best so far" if metrics[VALID_BEST_STEP] == metrics["step"] else ""
                bar.write(f"step {metrics['step']:,}: validation {metrics[VALID_SCORE]:.6g}{best}", file=sys.stderr)

        with _asked_to_stop() as stop:
            return train(config, report, folder=folder, stop=stop)


@contextmanager
def _asked_to_stop() -> Iterator[Any]:
    """Ctrl-C, or a machine being taken away, stops after the step that is being made; a second Ctrl-C at once."""
    asked = False

    def ask(number: int, frame: Any) -> None:
        nonlocal asked
        if asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked = True
        click.echo("\nStopping after this step, to save it. Once more stops at once.", err=True)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    from nowcastlab.training import CheckpointWarning

    seen: set[str] = set()

    def show(message: Warning | str, *rest: Any, **more: Any) -> None:
        if str(message) not in seen:  # the plan and the run both look at the checkpoints
            seen.add(str(message))
            click.echo(f"warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", CheckpointWarning)
        warnings.showwarning = show
        yield
