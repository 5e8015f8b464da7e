"""`nowcastlab report`: the paper's tables from what MLflow holds, and what may be believed of them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nowcastlab.cli.verbs import FiniteRange

if TYPE_CHECKING:
    from nowcastlab.report import Findings, Table

TABLES = ["mnist", "hko7", "comparisons", "kendall", "rain", "cost", "claims"]
DIFFERENCE = "2%"


@click.command()
@click.option(
    "--table",
    "name",
    type=click.Choice(TABLES),
    help="Which table to print.  [default: mnist or hko7, whichever the sweep fills]",
)
@click.option("--sweep", help="Name of the sweep.  [default: the table's own, links-vs-kernel or hko7-benchmark]")
@click.option(
    "--scale",
    type=click.Choice(["demo", "laptop", "paper"]),
    help="Only runs of this size: demo, laptop or paper.  [default: the only one there is]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "md", "latex", "csv", "json", "html"]),
    default="text",
    show_default=True,
    help="Form of the table.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead.")
@click.option("--fragment", is_flag=True, help="LaTeX without a document around it, for \\input; needs booktabs.")
@click.option("--against", type=click.Choice(["paper"]), help="Each cell beside the paper's, with a verdict.")
@click.option(
    "--margin",
    type=FiniteRange(0, min_open=True),
    help="How near the paper's a number must be to count as reproduced, per cent.  [default: 2]",
)
@click.option("--power", is_flag=True, help="How many seeds a difference needs, before they are paid for.")
@click.option(
    "--difference",
    help=f"Difference that --power is to find: in the score's units, or per cent as 2%.  [default: {DIFFERENCE}]",
)
@click.option(
    "--variance",
    type=click.Choice(["runs", "paper"]),
    help="What --power goes by: spread over seeds, from these runs or from the paper.  [default: runs]",
)
@click.option("--explain", nargs=2, metavar="ROW COLUMN", help="Print the runs behind one cell of the table.")
@click.option(
    "--scores",
    multiple=True,
    metavar="ARM:SEED[:online]=FILE",
    help="Read files of scores, not MLflow; may be repeated.",
)
def command(
    name: str | None,
    sweep: str | None,
    scale: str | None,
    form: str,
    out: Path | None,
    fragment: bool,
    against: str | None,
    margin: float | None,
    power: bool,
    difference: str | None,
    variance: str | None,
    explain: tuple[str, str] | None,
    scores: tuple[str, ...],
) -> None:
    """Print a table, with what its runs prove and no more.

    Everything is read from MLflow (MLFLOW_TRACKING_URI, or the local work/mlflow.db). Runs of different scales, data
    sets, protocols or versions of the code are never put into one table; nor is a seed counted twice, or an arm shown
    that has not finished. The same runs give the same bytes.

    \b
    mnist        MovingMNIST++: test MSE and parameters; then the comparisons the sweep named
    hko7         the radar benchmark: means, deviations over seeds; then the comparisons
    comparisons  the same in every score: difference, interval, effect size, p, Holm's p, n
    kendall      how well MSE, MAE, B-MSE and B-MAE track the skill scores
    rain         rain-rate statistics of the test frames
    cost         hours, parameters, FLOPs and score, with the arms that no other beats in both
    claims       the paper's findings, each with verdict, evidence and n

    --against paper calls a number reproduced only if it is shown to lie within the margin. Results of a smaller scale,
    on synthetic data or on another test set are marked, and get no verdict.

    --scores takes the counts of any benchmark run: an .npz with tp, fn, fp, tn (sequence, lead, threshold); mse, mae,
    bmse, bmae, gdl (sequence, lead) summed over a frame's valid pixels; start and episode (sequence);
    thresholds_mmh; lead_minutes. `nowcastlab evaluate` writes such files. A method without seeds is given as
    ARM:fixed=FILE; Last-Frame and the two ROVERs are known to be such.

    \b
    Examples:
      nowcastlab report --table hko7
      nowcastlab report --table hko7 --scale paper --against paper
      nowcastlab report --table hko7 --format latex > table.tex && pdflatex table.tex
      nowcastlab report --table hko7 --format html --out report.html
      nowcastlab report --table mnist --explain Traj-L13 "Test MSE x 100"
      nowcastlab report --table hko7 --power --difference 135
      nowcastlab report --table hko7 --power --variance paper --difference 2%
      nowcastlab report --table hko7 --scores Last-Frame=last.npz --scores TrajGRU:1=t1.npz
    """
    from nowcastlab.report import render
    from nowcastlab.report.build import explain as explained

    other_table = name not in (None, "mnist", "hko7")
    for misplaced, option, needed in (
        (against and other_table, "--against paper", "--table mnist or hko7"),
        (power and other_table, "--power", "--table mnist or hko7"),
        (against and power, "--power", "no --against: ask for one of them"),
        (margin is not None and not against, "--margin", "--against paper"),
        (difference is not None and not power, "--difference", "--power"),
        (variance is not None and not power, "--variance", "--power"),
        (variance == "paper" and (sweep or scale or scores), "--variance paper", "no runs: leave out what names some"),
        (variance == "paper" and form == "html", "--variance paper", "another --format: HTML shows runs"),
        (fragment and form != "latex", "--fragment", "--format latex"),
        (explain and form != "text", "--explain", "--format text, the only form it has"),
    ):
        if misplaced:
            raise click.UsageError(f"{option} goes with {needed}.")
    tables, sources = _tables(name, sweep, scale, against, margin, power, difference, variance, scores)
    if explain:
        text = explained(tables, *explain)
    elif form == "html":
        text = _html(tables, sources, scores)
    elif form == "latex" and fragment:
        from nowcastlab.report.latex import as_latex

        text = "\n".join(as_latex(table) for table in tables)
    else:
        text = render(tables, form)
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text + "\n", encoding="utf-8")
        click.echo(f"written: {out}", err=True)
    else:
        click.echo(text)


def _tables(
    name: str | None,
    sweep: str | None,
    scale: str | None,
    against: str | None,
    margin: float | None,
    power: bool,
    difference: str | None,
    variance: str | None,
    scores: tuple[str, ...],
) -> tuple[list[Table], list[Findings]]:
    """The tables that were asked for, and what they were made from."""
    from nowcastlab.report.against import MARGIN_PERCENT, against_paper
    from nowcastlab.report.build import tables_for
    from nowcastlab.report.seeds import Size, power_from_paper, power_from_runs

    if power and variance == "paper":
        return [power_from_paper("mnist" if name == "mnist" else "hko7", Size(difference or DIFFERENCE))], []
    if name == "claims":
        return _claims(sweep, scale, scores)
    findings = _findings(name, sweep, scale, scores)
    if power:
        return [power_from_runs(findings, Size(difference or DIFFERENCE))], [findings]
    if against:
        return [against_paper(findings, margin_percent=margin or MARGIN_PERCENT)], [findings]
    own = "mnist" if findings.collection.kind == "digits" else "hko7"
    return tables_for(name or own, findings), [findings]


def _findings(name: str | None, sweep: str | None, scale: str | None, scores: tuple[str, ...]) -> Findings:
    from nowcastlab.report import SWEEPS, ScoreFile, find, from_files, from_mlflow
    from nowcastlab.tracking import connect_existing

    if scores:
        if sweep or scale:
            raise click.UsageError("--scores stands for itself: leave out --sweep and --scale.")
        return find(*from_files([ScoreFile.parse(text) for text in scores]))
    if sweep is None and name is None:
        raise click.UsageError(f"Say which --table ({', '.join(TABLES)}) or which --sweep.")
    return find(*from_mlflow(connect_existing(), sweep or SWEEPS["mnist" if name == "mnist" else "hko7"], scale=scale))


def _claims(sweep: str | None, scale: str | None, scores: tuple[str, ...]) -> tuple[list[Table], list[Findings]]:
    """Of both sweeps, of the one that is named, or of files; what cannot be had is told beside its claims."""
    from nowcastlab.errors import NowcastlabError, TrackingError
    from nowcastlab.report import SWEEPS, Findings, find, from_mlflow
    from nowcastlab.report.claims import claims_table
    from nowcastlab.tracking import connect_existing

    if scores:
        files = _findings("hko7", sweep, scale, scores)
        return [claims_table({"hko7": files, "mnist": "files of scores are of radar."})], [files]
    client = connect_existing()
    sources: dict[str, Findings | str] = {}
    for table, own in SWEEPS.items():
        try:
            sources[table] = find(*from_mlflow(client, sweep or own, scale=scale))
        except NowcastlabError as error:
            if sweep and isinstance(error, TrackingError):  # named and not there: misspelt, and nothing to tell of
                raise
            sources[table] = str(error)
    for table, source in sources.items():
        kind = "digits" if table == "mnist" else "radar"
        if isinstance(source, Findings) and source.collection.kind != kind:
            sources[table] = f"{source.collection.sweep} has no {kind} runs."
    return [claims_table(sources)], [source for source in sources.values() if isinstance(source, Findings)]


def _html(tables: list[Table], sources: list[Findings], scores: tuple[str, ...]) -> str:
    from nowcastlab.report.page import as_html, claims_as_html
    from nowcastlab.tracking import connect_existing, read_examples

    command = shlex.join(["nowcastlab", *sys.argv[1:]])
    if tables[0].name == "claims":
        return claims_as_html(tables[0], [findings.collection for findings in sources], command=command)
    client = None if scores else connect_existing()
    return as_html(
        sources[0],
        [table for table in tables if table.name not in ("comparisons", "cost")] or tables,
        examples=lambda trial: read_examples(client, trial) if client else None,
        command=command,
    )
