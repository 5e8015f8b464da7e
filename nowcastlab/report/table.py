"""A table as a value: what is in it, before how it looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from nowcastlab.report.collect import Cell, Collection


@dataclass(frozen=True, kw_only=True)
class Column:
    """What stands above the cells, and how their numbers are printed and ranked."""

    title: str
    metric: str
    decimals: int = 0
    scale: float = 1.0  # what is printed is the value times this
    better: str = "lower"  # or higher; or "" where there is no best
    group: str = ""  # columns of one group stand under one heading, as CSI
    width: float = 1.0  # beside the other columns', where cells are sentences
    short: str = ""  # the title under its group's heading, as r >= 0.5


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A cell that is not a mean over seeds: a text, or a number with what it rests on."""

    text: str
    value: float | None = None  # for ranking, CSV and JSON; unrounded
    facts: dict[str, Any] = field(default_factory=dict)  # n, interval, p ...: all of it goes to JSON and --explain
    run_ids: tuple[str, ...] = ()


Content = Cell | Entry | None


@dataclass(frozen=True, kw_only=True)
class Row:
    title: str
    cells: tuple[Content, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Section:
    title: str
    rows: tuple[Row, ...]

    def ranks(self, columns: Sequence[Column]) -> dict[tuple[int, int], int]:
        """(row, column) -> 1 for the best, 2 for the second best, by the means as printed."""
        ranks: dict[tuple[int, int], int] = {}
        for j, column in enumerate(columns):
            if not column.better:
                continue
            values = {i: value_of(row.cells[j]) for i, row in enumerate(self.rows)}
            shown = {i: round(v * column.scale, column.decimals) for i, v in values.items() if v is not None}
            order = sorted(set(shown.values()), reverse=column.better == "higher")
            for i, value in shown.items():
                if order.index(value) < 2:
                    ranks[i, j] = order.index(value) + 1
        return ranks


@dataclass(frozen=True, kw_only=True)
class Table:
    title: str
    columns: tuple[Column, ...]
    sections: tuple[Section, ...]
    notes: tuple[str, ...] = field(default=())
    marks: tuple[str, ...] = field(default=())  # what every format must say above the numbers: demo scale, synthetic
    shows: str = "mean (std)"  # of a cell: or "mean", or "std"
    name: str = ""  # as in `nowcastlab report --table`
    second: bool = True  # whether the second best is marked too
    layout: str = "grid"  # or "list": a row a paragraph, where cells are sentences
    corner: str = ""  # the heading of the rows' titles


def value_of(content: Content) -> float | None:
    """The number by which a cell is ranked; None where it has none."""
    return content.mean if isinstance(content, Cell) else content.value if content is not None else None


def shown(table: Table, content: Content, column: Column) -> str:
    """A cell as it is printed."""
    return content.text if isinstance(content, Entry) else number(content, column, shows=table.shows)


def number(cell: Cell | None, column: Column, *, shows: str = "mean (std)") -> str:
    """A mean over seeds, its deviation, or both. One seed has no deviation; a threshold never observed, no score."""
    if cell is None:
        return "no data"
    mean, std = (None if v is None else f"{v * column.scale:z.{column.decimals}f}" for v in (cell.mean, cell.std))
    if shows == "std":
        return std or "one seed"
    return f"{mean} ({std})" if std and shows == "mean (std)" else f"{mean}"


def provenance(collection: Collection) -> tuple[str, ...]:
    """The lines every table ends with: what its numbers are, and are not."""
    seeds = sorted({trial.seed for trials in collection.arms.values() for trial in trials if trial.seed})
    return (
        f"Sweep {collection.sweep}, {collection.scale} scale, seeds {', '.join(map(str, seeds)) or 'none'}; "
        f"data {collection.data_digest[:16]}, code {collection.code[:16]}.",
        "Mean (standard deviation over seeds, n - 1 in the denominator).",
    )
