"""A table as HTML: the best bold, the second best underlined, every number with its runs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from nowcastlab.report.collect import Cell
from nowcastlab.report.page.markup import Html, join, tag
from nowcastlab.report.table import Column, Content, Entry, Row, Section, Table, number, shown

RANKS = {1: "best", 2: "second"}


def table_html(table: Table, runs: Mapping[str, str]) -> Html:
    """`runs`: what the page calls each run, as `TrajGRU s1`; it has an anchor of that run's id further down."""
    body = _list(table) if table.layout == "list" else _grid(table)
    ranked = table.layout != "list" and any(column.better for column in table.columns)
    best = "Bold: best" + ("; underlined: second best" if table.second else "") + ", by the numbers as printed."
    notes = tag("div", *(tag("p", note) for note in ([best] if ranked else []) + list(table.notes)), class_="notes")
    return join(body, notes, _behind(table, runs))


def scroll(content: Html, *, label: str) -> Html:
    """A box that scrolls sideways by itself, by touch and by keyboard, so that a page never does."""
    return tag("div", content, class_="scroll", role="region", aria_label=label, tabindex=0)


# --- rows and columns


def _grid(table: Table) -> Html:
    bodies = [tag("tbody", _section_title(table, section), *_rows(table, section)) for section in table.sections]
    words = all(isinstance(cell, Entry | None) for s in table.sections for row in s.rows for cell in row.cells)
    caption = tag("caption", tag("span", table.title))
    return scroll(tag("table", caption, _head(table), *bodies, class_="words" if words else None), label=table.title)


def _head(table: Table) -> Html:
    corner = tag("th", table.corner, scope="col")
    titles = [
        tag("th", column.short or column.title, scope="col", title=_direction(column)) for column in table.columns
    ]
    if not any(column.group for column in table.columns):
        return tag("thead", tag("tr", corner, *titles))
    groups = [(name, len(list(its))) for name, its in groupby(column.group for column in table.columns)]
    above = [tag("th", name, scope="colgroup", colspan=n) if name else tag("td", colspan=n) for name, n in groups]
    return tag("thead", tag("tr", tag("td"), *above), tag("tr", corner, *titles))


def _direction(column: Column) -> str | None:
    return f"{column.better} is better" if column.better else None


def _section_title(table: Table, section: Section) -> Html:
    columns = 1 + len(table.columns)
    return tag("tr", tag("th", section.title, scope="rowgroup", colspan=columns)) if section.title else Html()


def _rows(table: Table, section: Section) -> list[Html]:
    ranks = section.ranks(table.columns)
    rows = []
    for i, row in enumerate(section.rows):
        titles = [explained(content, column) for content, column in zip(row.cells, table.columns, strict=True)]
        # what rests on the same facts from end to end says so once
        whole = titles[0] if len(titles) > 1 and len(set(titles)) == 1 else None
        cells = []
        for j, (content, column) in enumerate(zip(row.cells, table.columns, strict=True)):
            rank = ranks.get((i, j), 0) if table.second or ranks.get((i, j)) == 1 else 0
            title = None if whole else titles[j]
            cells.append(tag("td", _cell(table, content, column), class_=RANKS.get(rank), title=title))
        rows.append(tag("tr", tag("th", row.title, scope="row"), *cells, title=whole))
    return rows


def _cell(table: Table, content: Content, column: Column) -> Html:
    if not isinstance(content, Cell) or table.shows != "mean (std)" or content.std is None:
        return tag("span", shown(table, content, column), class_="mean")
    mean, std = (number(content, column, shows=what) for what in ("mean", "std"))
    return join(tag("span", mean, class_="mean"), " ", tag("span", f"({std})", class_="std"))


def explained(content: Content, column: Column) -> str | None:
    """The seeds and runs behind a number, for whoever points at it."""
    if isinstance(content, Cell):
        runs = zip(content.seeds, content.values, content.run_ids, strict=True)
        each = "; ".join(f"seed {seed}: {value * column.scale:.6g} (run {run})" for seed, value, run in runs)
        return f"{column.title}, n = {content.n}. {each}"
    if isinstance(content, Entry) and content.facts:
        return "; ".join(f"{name}: {value}" for name, value in content.facts.items())
    return None


# --- sentences, and what lies behind the numbers


def _list(table: Table) -> Html:
    """Cells that are sentences: a paragraph each, under the row's title."""
    parts = []
    for section in table.sections:
        items = [join(tag("dt", row.title), *_sentences(table, row)) for row in section.rows]
        parts.append(join(tag("h3", section.title) if section.title else None, tag("dl", *items, class_="list")))
    return join(*parts)


def _sentences(table: Table, row: Row) -> list[Html]:
    return [
        tag("dd", tag("strong", f"{column.title}: "), shown(table, content, column), title=explained(content, column))
        for content, column in zip(row.cells, table.columns, strict=True)
        if content is not None
    ]


def _behind(table: Table, runs: Mapping[str, str]) -> Html:
    """Row by row, for readers without a pointer: the runs by name, each a link to its id."""
    rows = []
    for section in table.sections:
        for row in section.rows:
            its = dict.fromkeys(run for content in row.cells if content is not None for run in content.run_ids)
            links = [join(tag("a", runs.get(run, run), href=f"#run-{run}"), " ") for run in its]
            if its.keys() == runs.keys():
                links = [tag("a", f"all {len(its)} runs", href="#provenance")]
            if its:
                rows.append(tag("tr", tag("td", section.title), tag("th", row.title, scope="row"), tag("td", *links)))
    if not rows:
        return Html()
    head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in ("", "row", "runs"))))
    found = scroll(tag("table", head, tag("tbody", *rows), class_="runs long"), label="runs behind the table")
    return tag("details", tag("summary", "The runs behind these numbers"), found)
