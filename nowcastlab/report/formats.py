"""A table as text, Markdown, LaTeX, CSV or JSON. The same table gives the same bytes."""

from __future__ import annotations

import csv
import io
import json

from nowcastlab.report.collect import Cell
from nowcastlab.report.table import Column, Section, Table


def number(cell: Cell | None, column: Column, *, with_std: bool = True) -> str:
    if cell is None:
        return "no data"
    text = f"{cell.mean * column.scale:.{column.decimals}f}"
    if with_std and cell.std is not None:
        text += f" ({cell.std * column.scale:.{column.decimals}f})"
    return text


def as_text(table: Table) -> str:
    """For a terminal: the best marked *, the second best +."""
    marks = {1: "*", 2: "+"}
    lines = [table.title, ""]
    header = _header(table)
    bodies = [
        (section, _body(table, section, lambda text, rank: text + marks.get(rank, " "))) for section in table.sections
    ]
    every = [header, *(row for _, rows in bodies for row in rows)]
    widths = [max(len(row[j]) for row in every) for j in range(len(header))]

    def line(row: list[str]) -> str:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        return "  ".join(cells).rstrip()

    lines.append(line(header))
    lines.append("-" * len(line(header)))
    for section, rows in bodies:
        if section.title:
            lines.append(section.title)
        lines += [line(row) for row in rows]
    return "\n".join([*lines, "", "* best, + second best, by the means as printed.", *table.notes])


def as_markdown(table: Table) -> str:
    marks = {1: "**{}**", 2: "<u>{}</u>"}
    header = _header(table)
    lines = [f"### {table.title}", ""]
    for section in table.sections:
        if section.title:
            lines += [f"**{section.title}**", ""]
        lines += ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
        for row in _body(table, section, lambda text, rank: marks.get(rank, "{}").format(text)):
            lines.append("| " + " | ".join(row) + " |")
        lines.append("")
    return "\n".join([*lines, *(f"{note}  " for note in table.notes)])


def as_latex(table: Table) -> str:
    """A tabular with booktabs: needs \\usepackage{booktabs} and nothing else."""
    marks = {1: "\\textbf{{{}}}", 2: "\\underline{{{}}}"}
    header = _header(table)
    lines = [f"\\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", "\\toprule"]
    lines.append(" & ".join(_escape(cell) for cell in header) + " \\\\")
    lines.append("\\midrule")
    for section in table.sections:
        if section.title:
            lines.append(f"\\multicolumn{{{len(header)}}}{{c}}{{{_escape(section.title)}}} \\\\")
        for row in _body(table, section, lambda text, rank: marks.get(rank, "{}").format(text)):
            lines.append(" & ".join([_escape(row[0]), *row[1:]]) + " \\\\")
    lines += ["\\bottomrule", "\\end{tabular}"]
    return "\n".join([*(f"% {note}" for note in (table.title, *table.notes)), *lines])


def as_csv(table: Table) -> str:
    """One line a cell: section, row, column, mean, std, n, seeds, runs; unrounded."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["section", "row", "column", "mean", "std", "n", "seeds", "runs"])
    for section in table.sections:
        for row in section.rows:
            for column, cell in zip(table.columns, row.cells, strict=True):
                if cell is not None:
                    std = "" if cell.std is None else repr(cell.std)
                    seeds, runs = " ".join(map(str, cell.seeds)), " ".join(cell.run_ids)
                    writer.writerow([section.title, row.title, column.title, repr(cell.mean), std, cell.n, seeds, runs])
    return out.getvalue().rstrip("\n")


def as_json(table: Table) -> str:
    sections = [
        {
            "title": section.title,
            "rows": [
                {
                    "title": row.title,
                    **({table.label_title: row.label} if table.label_title else {}),
                    "cells": {
                        column.title: None
                        if cell is None
                        else {
                            "mean": cell.mean,
                            "std": cell.std,
                            "n": cell.n,
                            "seeds": cell.seeds,
                            "runs": cell.run_ids,
                        }
                        for column, cell in zip(table.columns, row.cells, strict=True)
                    },
                }
                for row in section.rows
            ],
        }
        for section in table.sections
    ]
    return json.dumps({"title": table.title, "sections": sections, "notes": table.notes}, indent=1)


FORMATS = {"text": as_text, "md": as_markdown, "latex": as_latex, "csv": as_csv, "json": as_json}


def _header(table: Table) -> list[str]:
    label = [table.label_title] if table.label_title else []
    return ["", *label, *(column.title for column in table.columns)]


def _body(table: Table, section: Section, mark: object) -> list[list[str]]:
    assert callable(mark)
    ranks = section.ranks(table.columns)
    rows = []
    for i, row in enumerate(section.rows):
        label = [row.label] if table.label_title else []
        cells = [
            mark(number(cell, column), ranks.get((i, j), 0))
            for j, (cell, column) in enumerate(zip(row.cells, table.columns, strict=True))
        ]
        rows.append([row.title, *label, *cells])
    return rows


def _escape(text: str) -> str:
    for character in "#%&_":
        text = text.replace(character, f"\\{character}")
    return text
