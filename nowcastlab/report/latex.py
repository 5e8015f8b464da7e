"""Tables in LaTeX as the paper has them: two settings, CSI and HSS in groups, the best bold, the second underlined.

A whole document compiles as it is; a single table is for \\input, and needs \\usepackage{booktabs} and nothing else.
LaTeX does not break a table, so one that is longer than a page becomes several.
"""

from __future__ import annotations

import math
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

# In points: what the document's page has for a table, without the head; a line of a caption, of \tiny rows stretched by
# 1.25, of \scriptsize sentences. And letters in a point, a little fewer than there are on average.
_PAGE_PT, _WIDTH_PT = 460.0, 756.0
_CAPTION_PT, _ROW_PT, _SENTENCE_PT = 12.0, 7.8, 8.0
_CAPTION_LETTERS, _SENTENCE_LETTERS = 0.2, 0.26
_TITLE_SHARE, _SHARE = 0.16, 0.74  # of the width: the rows' titles, all columns of sentences together


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
    """A table environment for every page it needs. What the table is not is said in each caption, above the numbers."""
    marks = "".join(rf"\textbf{{{escape(mark)}}} " for mark in table.marks)
    first = f"{escape(table.title)}. {_key(table)}{marks}{' '.join(map(escape, table.notes))}".rstrip()
    further = f"{escape(table.title)} (continued). {marks}".rstrip()
    pages = _pages(table, _room(first), _room(further))
    return "\n".join(_float(table, further if i else first, lines) for i, lines in enumerate(pages))


def _float(table: Table, caption: str, lines: Sequence[str]) -> str:
    return "\n".join(
        [
            r"\begin{table}[tb!]",
            r"\scriptsize" if table.layout == "list" else r"\tiny",
            r"\centering",
            rf"\caption{{{caption}}}",
            r"\vspace{4pt}",
            r"\setlength{\tabcolsep}{4pt}\renewcommand{\arraystretch}{1.25}",
            rf"\begin{{tabular}}{{{_layout(table)}}}",
            r"\toprule",
            *_header(table),
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _pages(table: Table, room: float, further_room: float) -> list[list[str]]:
    """The rows, cut where a page is full. A section that goes on says so; no page ends with the title of one."""
    pages: list[list[str]] = [[]]
    for section in table.sections:
        title = escape(section.title)
        for i, (row, height) in enumerate(zip(_body(table, section), _heights(table, section), strict=True)):
            titled = title if i == 0 else ""
            if pages[-1] and height + _ROW_PT * bool(titled) > room:
                pages.append([])
                room, titled = further_room, f"{title} (continued)" if title and i else title
            if titled:
                pages[-1].append(rf" & \multicolumn{{{len(table.columns)}}}{{c}}{{{titled}}} \\")
            pages[-1].append(" & ".join(row) + r" \\")
            room -= height + _ROW_PT * bool(titled)
    return pages


def _room(caption: str) -> float:
    """What a caption leaves of a page, in points."""
    return _PAGE_PT - _CAPTION_PT * math.ceil(len(caption) / (_CAPTION_LETTERS * _WIDTH_PT))


def _heights(table: Table, section: Section) -> list[float]:
    """Of each row, in points: a line, or as many as its longest sentence takes in its column."""
    if table.layout != "list":
        return [_ROW_PT] * len(section.rows)
    widths = [_TITLE_SHARE, *_shares(table)]
    heights = []
    for row in section.rows:
        texts = [
            row.title,
            *(shown(table, cell, column) for cell, column in zip(row.cells, table.columns, strict=True)),
        ]
        lines = (
            math.ceil(len(text) / (_SENTENCE_LETTERS * width * _WIDTH_PT))
            for text, width in zip(texts, widths, strict=True)
        )
        heights.append(_SENTENCE_PT * max(lines) + 4)
    return heights


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


def _shares(table: Table) -> list[float]:
    """Of the width, the columns of sentences."""
    total = sum(column.width for column in table.columns)
    return [_SHARE * column.width / total for column in table.columns]


def _layout(table: Table) -> str:
    if table.layout == "list":
        return "".join(rf"p{{{share:.3f}\textwidth}}" for share in (_TITLE_SHARE, *_shares(table)))
    return "l" + "r" * len(table.columns)


def _header(table: Table) -> list[str]:
    """Two lines where columns stand in groups, with a rule under each group; else one."""
    if not any(column.group for column in table.columns):
        titles = [escape(column.title) + _ARROWS[column.better] for column in table.columns]
        return [" & ".join([escape(table.corner), *titles]) + r" \\", r"\midrule"]
    first, rules, at = [escape(table.corner)], [r"\cmidrule(r){1-1}"], 2
    for group, its in groupby(table.columns, key=lambda column: column.group):
        members = list(its)
        if group:
            first.append(rf"\multicolumn{{{len(members)}}}{{c}}{{{escape(group)}{_ARROWS[members[0].better]}}}")
        else:
            first += [escape(column.title) + _ARROWS[column.better] for column in members]
        rules.append(rf"\cmidrule(lr){{{at}-{at + len(members) - 1}}}")
        at += len(members)
    second = ["", *(_short(column) if column.group else "" for column in table.columns)]
    return [" & ".join(first) + r" \\", " & ".join(second) + r" \\", " ".join(rules)]


def _short(column: Column) -> str:
    return rf"${column.short.replace('>=', chr(92) + 'ge')}$" if ">=" in column.short else escape(column.short)


def _body(table: Table, section: Section) -> list[list[str]]:
    marks = {1: r"\textbf{{{}}}", 2: r"\underline{{{}}}"} if table.second else {1: r"\textbf{{{}}}"}
    ranks = section.ranks(table.columns)
    rows = []
    for i, row in enumerate(section.rows):
        cells = [
            marks.get(ranks.get((i, j), 0), "{}").format(escape(shown(table, cell, column)))
            for j, (cell, column) in enumerate(zip(row.cells, table.columns, strict=True))
        ]
        texts = [escape(row.title), *cells]
        rows.append([rf"{{\raggedright {text}\par}}" for text in texts] if table.layout == "list" else texts)
    return rows
