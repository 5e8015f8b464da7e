"""`nowcastlab evaluate`: the benchmark, on a run or a baseline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nowcastlab.cli.forecasters import DEVICE, WHICH, open_data, open_forecaster
from nowcastlab.cli.verbs import FiniteRange, given
from nowcastlab.stamps import clock

if TYPE_CHECKING:
    from nowcastlab.cli.evaluation import Evaluation
    from nowcastlab.skill import SequenceScores

OF_SETTING = {"offline": ("--workers", "--batch-size"), "online": ("--preset", "--online-rate")}
# Moving digits have one test, whatever these say.
RADAR_ONLY = ("--store", "--setting", "--split", "--by-scale", "--pictures", *OF_SETTING["offline"])


@click.command()
@click.argument("what", metavar="RUN_FOLDER_OR_BASELINE")
@click.option("--store", "url", help="The radar store to score on.  [default: the run's own]")
@click.option(
    "--setting",
    type=click.Choice(["offline", "online"]),
    default="offline",
    show_default=True,
    help="Weights as trained (offline), or going on learning as rain is observed (online).",
)
@click.option(
    "--split",
    type=click.Choice(["train", "valid", "test"]),
    default="test",
    show_default=True,
    help="Which of the store's days: those to train on, to validate on, or to test on.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Score only so many of the first windows, for a quick look.")
@click.option(
    "--preset",
    type=click.Choice(["paper", "release"]),
    default="paper",
    show_default=True,
    help="Online: update as the paper says, or as the authors' released code does.",
)
@click.option(
    "--online-rate",
    type=FiniteRange(min=0, min_open=True),
    help="Online: learning rate of its AdaGrad steps.  [default: 1e-4, the paper's]",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Offline, on the CPU: so many processes at once; with more than one, over Ray.",
)
@click.option(
    "--by-scale", is_flag=True, help="Also skill by distance (fractions skill score) and spectra; several times slower."
)
@click.option(
    "--pictures", type=click.IntRange(min=0), default=3, show_default=True, help="How many sequences to draw."
)
@click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Offline: windows forecast at once; more take more memory.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for the results.  [default: the run's; of a baseline, work/baselines/NAME]",
)
@click.option("--again", is_flag=True, help="Score anew, replacing what an earlier evaluation left in the folder.")
@click.option("--json", "as_json", is_flag=True, help="The scores as one JSON object on standard output.")
@WHICH
@DEVICE
@click.pass_context
def command(
    ctx: click.Context,
    what: str,
    url: str | None,
    setting: str,
    split: str,
    limit: int | None,
    preset: str,
    online_rate: float | None,
    workers: int,
    by_scale: bool,
    pictures: int,
    batch_size: int,
    out: Path | None,
    again: bool,
    as_json: bool,
    which: str,
    device: str,
) -> None:
    """Score a trained network or a baseline (last-frame, rover, rover-nonlinear) by the HKO-7 benchmark.

    Both settings walk over the same windows of the split: 5 frames seen, 20 forecast, then 5 frames on. Offline, the
    weights stay as trained. Online, as rain is observed, one AdaGrad step is made for each new 5 frames from the last
    25 of them, emptied when an episode begins; a baseline has nothing to learn and is scored offline only. The paper's
    online preset updates before it forecasts, the authors' release one segment later. How fast a small network should
    go on learning is best found on days that are not those of the test: --split valid, with several --online-rate.

    Offline, --workers 2 spreads the windows over two processes of Ray, here or on the cluster RAY_ADDRESS names; the
    scores are the same to the bit. An online run goes on where it was stopped, on a CPU to the same bits too. What
    has been scored once is not scored again.

    The folder gets scores-SETTING.npz (what was counted, per sequence; `nowcastlab scores` prints it), .json (what
    made it), curves-SETTING.png (skill by lead) and forecast-SETTING.png and .gif files: input, truth and forecast of a
    few sequences. A run on moving digits is scored on 1,000 test sequences, or --limit.

    \b
    Examples:
      nowcastlab evaluate rover --store work/demo.zarr --out work/rover
      nowcastlab evaluate work/run
      nowcastlab evaluate work/run --setting online
      nowcastlab evaluate work/run --setting online --online-rate 1e-5 --split valid --out work/slower
      nowcastlab evaluate work/run --store other.zarr --split valid --limit 50 --out work/look
      nowcastlab evaluate work/run --workers 2 --json | jq .csi
    """
    from nowcastlab.config import DigitsData
    from nowcastlab.models import BASELINES
    from nowcastlab.training.machine import pick_device

    if what in BASELINES and setting == "online":
        raise click.UsageError(
            f"{what} has no weights to fine-tune, so the online setting is not for it: the benchmark scores it offline."
        )
    for other, options in OF_SETTING.items():
        if setting != other and (misplaced := given(ctx, *options)):
            raise click.UsageError(f"{misplaced[0]} is for --setting {other}: {setting}, it would change nothing.")
    place = pick_device(device)
    if workers > 1 and place.type != "cpu":
        raise click.UsageError(f"--workers {workers} is for the CPU, and this is {place}: add --device cpu.")
    subject = open_forecaster(what, which=which, device=place)
    folder = out or subject.folder or Path("work/baselines") / subject.name
    if subject.config is not None and isinstance(subject.config.data, DigitsData):
        from nowcastlab.cli.evaluate_digits import evaluate_run

        if misplaced := given(ctx, *RADAR_ONLY):
            raise click.UsageError(f"{what} forecasts moving digits, and {misplaced[0]} is for radar: leave it out.")
        evaluate_run(subject, folder, limit=limit or 1000, device=place, again=again, as_json=as_json)
        return
    from nowcastlab.cli.evaluation import Evaluation

    run = Evaluation(
        subject=subject,
        store=open_data(subject, url),
        setting=setting,
        split=split,
        limit=limit,
        preset=preset,
        online_rate=online_rate,
        by_scale=by_scale,
        workers=workers,
        batch_size=batch_size,
        folder=folder,
        device=place,
    )
    click.echo(_plan(run), err=as_json)
    scores = run.known() if not again else None
    if scores is not None:
        if given(ctx, "--pictures") and not run.has_pictures(pictures):
            raise click.UsageError(
                f"{folder} was scored before, with fewer pictures: --pictures {pictures} needs --again, to score anew."
            )
        click.echo("Scored before: these are the scores in the folder. --again scores and draws anew.", err=as_json)
    else:
        scores = run.scored(pictures, again=again)
    files = run.files()
    if as_json:
        from nowcastlab.skill import summarize

        click.echo(json.dumps({**run.facts, "files": [str(f) for f in files], **summarize(scores)}, allow_nan=False))
    else:
        click.echo(_ending(run, scores, files))


def _plan(run: Evaluation) -> str:
    first, last = run.sequences.start[0], run.sequences.start[-1]
    trained, episodes = run.subject.facts.get("trained_on"), int(run.sequences.episode[-1]) + 1
    lines = [
        f"Evaluate {run.subject.name}, {run.setting}"
        + (f" ({run.preset})" if run.setting == "online" else "")
        + f", on {run.store.url}",
        f"  windows  {len(run.sequences):,} of the {run.split} split, {clock(first)} to {clock(last)}, "
        f"{episodes} episode{'s' * (episodes != 1)}",
        f"  frames   {run.benchmark.frames_in} in, {run.benchmark.leads} out, every {run.store.interval_minutes} "
        f"minutes, {run.store.grid[0]}x{run.store.grid[1]}",
        f"  folder   {run.folder}",
    ]
    if run.split == "train":
        lines.append("  beware   the train split is what networks learn from: these scores flatter them.")
    if trained is not None and trained != run.store.digest:
        lines.append("  beware   the network was trained on another store: no split of it need be unseen here.")
    return "\n".join(lines)


def _ending(run: Evaluation, scores: SequenceScores, files: list[Path]) -> str:
    from nowcastlab.skill import as_text

    last_input = int(run.sequences.start[0]) + (run.benchmark.frames_in - 1) * run.store.interval_minutes
    what = run.subject.folder or run.subject.name
    store = "" if run.subject.store == run.store.url else f" --store {run.store.url}"
    steps = [f"nowcastlab scores {run.scores_file} --per-lead"]
    if run.setting == "offline" and run.subject.config is not None:
        steps.append(f"nowcastlab evaluate {what}{store} --setting online")
    steps.append(f'nowcastlab predict {what}{store} --at "{clock(last_input)}"')
    return "\n".join(
        [
            "",
            f"{run.subject.name}, {run.setting}: {as_text(scores)}",
            "",
            "Written:",
            *(f"  {file}" for file in files),
            "Next:",
            *(f"  {step}" for step in steps),
        ]
    )
