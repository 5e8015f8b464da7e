"""`nowcastlab report`: the paper's tables from what MLflow holds."""

from __future__ import annotations

import click


@click.command()
@click.option(
    "--table", "name", type=click.Choice(["mnist", "hko7"]), required=True, help="Which of the paper's tables."
)
@click.option("--scale", type=click.Choice(["demo", "laptop", "paper"]), help="[the only one there is]")
@click.option("--sweep", help="Which sweep, where it is not the table's own.")
@click.option("--format", "form", type=click.Choice(["text", "md", "latex", "csv", "json"]), default="text")
@click.option("--explain", nargs=2, metavar="ROW COLUMN", help="The runs behind one cell.")
def command(name: str, scale: str | None, sweep: str | None, form: str, explain: tuple[str, str] | None) -> None:
    """Print a table of mean and standard deviation over seeds.

    Everything is read from MLflow (MLFLOW_TRACKING_URI, or the local work/mlflow.db). Runs of different scales, data
    sets or versions of the code are never put into one table.

    \b
    Examples:
      nowcastlab report --table mnist
      nowcastlab report --table hko7 --scale laptop --format latex > table.tex
      nowcastlab report --table mnist --explain Traj-L13 "Test MSE x 100"
    """
    from nowcastlab.report import FORMATS, SWEEPS, TABLES, collect
    from nowcastlab.tracking import connect, read_trials

    collection = collect(read_trials(connect(), sweep or SWEEPS[name], scale=scale))
    table = TABLES[name](collection)
    if explain:
        _explain(table, *explain)
    else:
        click.echo(FORMATS[form](table))


def _explain(table: object, row_title: str, column_title: str) -> None:
    from nowcastlab.report import Table

    assert isinstance(table, Table)
    titles = [column.title for column in table.columns]
    rows = [(section.title, row) for section in table.sections for row in section.rows if row.title == row_title]
    if not rows:
        known = sorted({row.title for section in table.sections for row in section.rows})
        raise click.UsageError(f"No row {row_title!r}. The rows are: {', '.join(known)}.")
    if column_title not in titles:
        raise click.UsageError(f"No column {column_title!r}. The columns are: {', '.join(titles)}.")
    for section, row in rows:
        cell = row.cells[titles.index(column_title)]
        click.echo(f"{section or table.title}: {row.title}, {column_title}")
        if cell is None:
            click.echo("  no data")
            continue
        for seed, value, run_id in zip(cell.seeds, cell.values, cell.run_ids, strict=True):
            click.echo(f"  seed {seed}: {value!r}  run {run_id}")
        click.echo(f"  mean {cell.mean!r}, std {cell.std!r}, n = {cell.n}")
