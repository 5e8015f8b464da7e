"""A table as text, Markdown, LaTeX, CSV or JSON. The same table gives the same bytes.

What a table is not (demo scale, synthetic data) stands above its numbers in every one of them.
"""

from __future__ import annotations

import csv
import io
import json
import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from nowcastlab.report.collect import Cell
from nowcastlab.report.latex import as_latex, latex_document
from nowcastlab.report.table import Content, Section, Table, shown

WIDTH = 110  # of running text in a terminal
CSV_HEADER = ["table", "section", "row", "column", "text", "mean", "std", "n", "seeds", "runs", "marks"]


def as_text(table: Table) -> str:
    """For a terminal: the best marked *, the second best +."""
    if table.layout == "list":
        return _as_list(table)
    marks = {1: "*", 2: "+"} if table.second else {1: "*"}
    ranked = any(column.better for column in table.columns)
    header = _header(table)
    bodies = [
        (section, _body(table, section, lambda text, rank: text + marks.get(rank, " "))) for section in table.sections
    ]
    every = [header, *(row for _, rows in bodies for row in rows)]
    widths = [max(len(row[j]) for row in every) for j in range(len(header))]

    def line(row: list[str]) -> str:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        return "  ".join(cells).rstrip()

    lines = [*_head(table), line(header), "-" * len(line(header))]
    for section, rows in bodies:
        if section.title:
            lines.append(section.title)
        lines += [line(row) for row in rows]
    best = "* best" + (", + second best" if table.second else "") + ", by the numbers as printed."
    return "\n".join([*lines, "", *([best] if ranked else []), *_wrapped(table.notes)])


def as_markdown(table: Table) -> str:
    marks = {1: "**{}**", 2: "<u>{}</u>"} if table.second else {1: "**{}**"}
    header = _header(table)
    lines = [f"### {table.title}", "", *(f"> **{mark}**\n" for mark in table.marks)]
    for section in table.sections:
        if section.title:
            lines += [f"**{section.title}**", ""]
        lines += ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
        for row in _body(table, section, lambda text, rank: marks.get(rank, "{}").format(text)):
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
        lines.append("")
    return "\n".join([*lines, *(f"{note}  " for note in table.notes)])


def as_csv(table: Table) -> str:
    """One line a cell, unrounded, with its seeds and runs and what the table is not."""
    return _csv([table])


def as_json(table: Table) -> str:
    return json.dumps(plain_table(table), indent=1, allow_nan=False)


def plain_table(table: Table) -> dict[str, Any]:
    """Everything in a table as lists, dictionaries and numbers."""
    return {
        "table": table.name,
        "title": table.title,
        "marks": list(table.marks),
        "sections": [
            {
                "title": section.title,
                "rows": [
                    {
                        "title": row.title,
                        "cells": {c.title: _plain(cell) for c, cell in zip(table.columns, row.cells, strict=True)},
                    }
                    for row in section.rows
                ],
            }
            for section in table.sections
        ],
        "notes": list(table.notes),
    }


FORMATS: dict[str, Callable[[Table], str]] = {
    "text": as_text,
    "md": as_markdown,
    "latex": as_latex,
    "csv": as_csv,
    "json": as_json,
}


def render(tables: Sequence[Table], form: str) -> str:
    """Several tables as one text: a LaTeX document that compiles, one CSV with one header, one JSON object."""
    if form == "latex":
        return latex_document(tables)
    if form == "csv":
        return _csv(tables)
    if form == "json":
        return json.dumps({"tables": [plain_table(table) for table in tables]}, indent=1, allow_nan=False)
    return "\n\n\n".join(FORMATS[form](table) for table in tables)


def _plain(cell: Content) -> dict[str, Any] | None:
    if cell is None:
        return None
    if isinstance(cell, Cell):
        return {"mean": cell.mean, "std": cell.std, "n": cell.n, "seeds": list(cell.seeds), "runs": list(cell.run_ids)}
    facts = {name: None if _is_nan(value) else value for name, value in cell.facts.items()}
    return {"text": cell.text, "value": cell.value, **facts, "runs": list(cell.run_ids)}


def _is_nan(value: object) -> bool:
    """JSON has no word for it: a difference in a threshold that was never observed."""
    return isinstance(value, float) and math.isnan(value)


def _csv(tables: Sequence[Table]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_HEADER)
    for table in tables:
        marks = " ".join(table.marks)
        for section in table.sections:
            for row in section.rows:
                for column, cell in zip(table.columns, row.cells, strict=True):
                    if cell is not None:
                        place = [table.name, section.title, row.title, column.title, shown(table, cell, column)]
                        writer.writerow([*place, *_csv_cell(cell), marks])
    return out.getvalue().rstrip("\n")


def _csv_cell(cell: Cell | Any) -> list[Any]:
    if isinstance(cell, Cell):
        std = "" if cell.std is None else repr(cell.std)
        return [repr(cell.mean), std, cell.n, " ".join(map(str, cell.seeds)), " ".join(cell.run_ids)]
    value = "" if cell.value is None else repr(cell.value)
    return [value, "", cell.facts.get("n", ""), "", " ".join(cell.run_ids)]


def _head(table: Table) -> list[str]:
    return [table.title, *_wrapped(table.marks, "! "), ""]


def _as_list(table: Table) -> str:
    """A row a paragraph, for tables whose cells are sentences."""
    lines = _head(table)
    width = max(len(column.title) for column in table.columns)
    for section in table.sections:
        lines += [section.title, ""] if section.title else []
        for row in section.rows:
            lines.append(row.title)
            for column, cell in zip(table.columns, row.cells, strict=True):
                first = f"  {column.title.lower():<{width}}  "
                text = shown(table, cell, column)
                lines += textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first))
            lines.append("")
    return "\n".join([*lines, *_wrapped(table.notes)])


def _wrapped(texts: Sequence[str], first: str = "") -> list[str]:
    return [line for text in texts for line in textwrap.wrap(first + text, WIDTH, subsequent_indent="  ")]


def _header(table: Table) -> list[str]:
    return ["", *(column.title for column in table.columns)]


def _body(table: Table, section: Section, mark: Callable[[str, int], str]) -> list[list[str]]:
    ranks = section.ranks(table.columns)
    rows = []
    for i, row in enumerate(section.rows):
        cells = []
        for j, (cell, column) in enumerate(zip(row.cells, table.columns, strict=True)):
            text = shown(table, cell, column)
            cells.append(mark(text, ranks.get((i, j), 0)) if column.better else text)
        rows.append([row.title, *cells])
    return rows
