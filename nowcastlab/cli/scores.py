"""`nowcastlab scores`: the table of one file of scores."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--per-lead", is_flag=True, help="Every lead too, not only the mean over leads.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Print one JSON object, for scripts: lists over thresholds, null for "no data".',
)
def command(file: Path, per_lead: bool, as_json: bool) -> None:
    """Print the scores in FILE, an .npz written by `nowcastlab evaluate`.

    CSI, HSS, POD, FAR, GSS and bias are computed per lead, from counts summed over all sequences, and averaged over
    the leads. Errors are sums over a frame's valid pixels in p = pixel / 255, averaged over sequences and leads.
    A threshold that was never observed has no data; one observed at some leads only is averaged over those, and a line
    says so.

    \b
    Examples:
      nowcastlab scores scores.npz
      nowcastlab scores scores.npz --per-lead
      nowcastlab scores scores.npz --json | jq .csi
    """
    from nowcastlab.skill.score_file import load_scores
    from nowcastlab.skill.summary import as_text, summarize

    scores = load_scores(file)
    if as_json:
        click.echo(json.dumps(summarize(scores, by_lead=per_lead), allow_nan=False))
    else:
        click.echo(f"{file}: {as_text(scores, by_lead=per_lead)}")
