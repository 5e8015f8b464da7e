"""Which tables `nowcastlab report --table NAME` prints, and the runs behind one of their cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nowcastlab.errors import ConfigError
from nowcastlab.report.collect import Cell
from nowcastlab.report.comparison_table import comparison_table
from nowcastlab.report.cost_table import cost_table
from nowcastlab.report.findings import Findings
from nowcastlab.report.kendall import kendall_table
from nowcastlab.report.rain import rain_table
from nowcastlab.report.table import Column, Content, Table, shown
from nowcastlab.report.tables import hko7_std_table, hko7_table, mnist_table

Build = Callable[[Findings], Table]
# In the order they are printed.
PARTS: dict[str, tuple[Build, ...]] = {
    "mnist": (lambda f: mnist_table(f.collection), comparison_table),
    "hko7": (lambda f: hko7_table(f.collection), lambda f: hko7_std_table(f.collection), comparison_table),
    "comparisons": (lambda f: comparison_table(f, decisive=False),),
    "kendall": (kendall_table,),
    "rain": (rain_table,),
    "cost": (cost_table,),
}
KINDS = {"mnist": "digits", "hko7": "radar"}


def tables_for(name: str, findings: Findings) -> list[Table]:
    """The tables of one name. A sweep of the other kind is refused rather than shown as empty columns."""
    kind = findings.collection.kind
    if KINDS.get(name, kind) != kind:
        raise ConfigError(
            f"{findings.collection.sweep} was tested on {'moving digits' if kind == 'digits' else 'radar'}: "
            f"--table {'mnist' if kind == 'digits' else 'hko7'} shows it."
        )
    tables = [build(findings) for build in PARTS[name]]
    return [table for table in tables if table.sections] or tables  # the notes of an empty one say why it is


def explain(tables: Sequence[Table], row_title: str, column_title: str) -> str:
    """Where a cell's number comes from, down to its runs; in every table that has such a row and column."""
    columns = {column.title for table in tables for column in table.columns}
    titles = {row.title for table in tables for section in table.sections for row in section.rows}
    for what, wanted, known in (("row", row_title, titles), ("column", column_title, columns)):
        if wanted not in known:
            raise ConfigError(f"No {what} {wanted!r}. The {what}s are: {', '.join(sorted(known))}.")
    parts = []
    for table in tables:
        for section in table.sections:
            for row in section.rows:
                for column, cell in zip(table.columns, row.cells, strict=True):
                    if (row.title, column.title) == (row_title, column_title):
                        parts.append(
                            "\n".join([_where(table, section.title, row_title, column), *_lines(table, cell, column)])
                        )
    if not parts:
        raise ConfigError(f"No table here has both the row {row_title!r} and the column {column_title!r}.")
    return "\n".join([*tables[0].marks, *parts])


def _where(table: Table, section: str, row: str, column: Column) -> str:
    return f"{': '.join(filter(None, (table.title, section)))}: {row}, {column.title}"


def _lines(table: Table, cell: Content, column: Column) -> list[str]:
    if cell is None:
        return ["  no data"]
    printed = [f"  printed: {shown(table, cell, column)}"]
    if isinstance(cell, Cell):
        each = zip(cell.seeds, cell.values, cell.run_ids, strict=True)
        values = [f"  seed {seed}: {value!r}  run {run_id}" for seed, value, run_id in each]
        return [*printed, *values, f"  mean {cell.mean!r}, std {cell.std!r}, n = {cell.n}"]
    facts = [f"  {name}: {value}" for name, value in cell.facts.items() if value is not None]
    exact = [f"  exactly: {cell.value!r}"] if cell.value is not None else []
    runs = [f"  run {run_id}" for run_id in cell.run_ids] or ["  not from a run"]
    return [*printed, *exact, *facts, *runs]
