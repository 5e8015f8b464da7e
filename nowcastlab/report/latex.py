"""Tables in LaTeX as the paper has them: two settings, CSI and HSS in groups, the best bold, the second underlined.

A whole document compiles as it is; a single table is for \\input, and needs \\usepackage{booktabs} and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from nowcastlab.report.table import Column, Section, Table, shown

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "#": r"\#",
    "%": r"\%",
    "&": r"\&",
    "_": r"\_",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "~": r"$\sim$",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"$|$",
}
_MINUS = re.compile(r"(?<![\w.)-])-(?=\d)")
_ARROWS = {"higher": r" $\uparrow$", "lower": r" $\downarrow$", "": ""}


def latex_document(tables: Sequence[Table]) -> str:
    """For pdflatex, with what every TeX installation has."""
    return "\n".join(
        [
            r"\documentclass{article}",
            r"\usepackage[a4paper,landscape,margin=15mm]{geometry}",
            r"\usepackage{booktabs}",
            r"\begin{document}",
            *(as_latex(table) for table in tables),
            r"\end{document}",
        ]
    )


def as_latex(table: Table) -> str:
    """One table environment. What the table is not is said in its caption, above the numbers."""
    columns = _columns(table)
    caption = " ".join([*(rf"\textbf{{{escape(mark)}}}" for mark in table.marks), *map(escape, table.notes)])
    lines = [
        r"\begin{table}[tb!]",
        r"\scriptsize" if table.layout == "list" else r"\tiny",
        r"\centering",
        rf"\caption{{{escape(table.title)}. {_key(table)}{caption}}}",
        r"\vspace{4pt}",
        r"\setlength{\tabcolsep}{4pt}\renewcommand{\arraystretch}{1.25}",
        rf"\begin{{tabular}}{{{_layout(table)}}}",
        r"\toprule",
        *_header(table),
    ]
    for section in table.sections:
        if section.title:
            lines.append(rf" & \multicolumn{{{columns - 1}}}{{c}}{{{escape(section.title)}}} \\")
        lines += [" & ".join(row) + r" \\" for row in _body(table, section)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def escape(text: str) -> str:
    """Any text as LaTeX; the hyphen before a number becomes a minus sign."""
    escaped = "".join(_SPECIAL.get(character, character) for character in text)
    return _MINUS.sub("$-$", escaped)


def _key(table: Table) -> str:
    if not any(column.better for column in table.columns):
        return ""
    return r"The best of a setting is \textbf{bold}" + (
        r", the second best \underline{underlined}. " if table.second else ". "
    )


def _columns(table: Table) -> int:
    return 1 + bool(table.label_title) + len(table.columns)


def _layout(table: Table) -> str:
    if table.layout == "list":
        share = 0.74 / sum(column.width for column in table.columns)
        return r"p{0.16\textwidth}" + "".join(rf"p{{{share * c.width:.3f}\textwidth}}" for c in table.columns)
    return "l" + "r" * (_columns(table) - 1)


def _header(table: Table) -> list[str]:
    """Two lines where columns stand in groups, with a rule under each group; else one."""
    label = [escape(table.label_title)] if table.label_title else []
    if not any(column.group for column in table.columns):
        titles = [escape(column.title) + _ARROWS[column.better] for column in table.columns]
        return [" & ".join([escape(table.corner), *label, *titles]) + r" \\", r"\midrule"]
    first, rules, at = [escape(table.corner), *([""] * len(label))], [r"\cmidrule(r){1-1}"], 2 + len(label)
    for group, its in groupby(table.columns, key=lambda column: column.group):
        members = list(its)
        if group:
            first.append(rf"\multicolumn{{{len(members)}}}{{c}}{{{escape(group)}{_ARROWS[members[0].better]}}}")
        else:
            first += [escape(column.title) + _ARROWS[column.better] for column in members]
        rules.append(rf"\cmidrule(lr){{{at}-{at + len(members) - 1}}}")
        at += len(members)
    second = ["", *label, *(_short(column) if column.group else "" for column in table.columns)]
    return [" & ".join(first) + r" \\", " & ".join(second) + r" \\", " ".join(rules)]


def _short(column: Column) -> str:
    return rf"${column.short.replace('>=', chr(92) + 'ge')}$" if ">=" in column.short else escape(column.short)


def _body(table: Table, section: Section) -> list[list[str]]:
    marks = {1: r"\textbf{{{}}}", 2: r"\underline{{{}}}"} if table.second else {1: r"\textbf{{{}}}"}
    ranks = section.ranks(table.columns)
    rows = []
    for i, row in enumerate(section.rows):
        label = [escape(row.label)] if table.label_title else []
        cells = [
            marks.get(ranks.get((i, j), 0), "{}").format(escape(shown(table, cell, column)))
            for j, (cell, column) in enumerate(zip(row.cells, table.columns, strict=True))
        ]
        texts = [escape(row.title), *label, *cells]
        rows.append([rf"{{\raggedright {text}\par}}" for text in texts] if table.layout == "list" else texts)
    return rows
