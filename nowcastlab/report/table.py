"""A table as a value: what is in it, before how it looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nowcastlab.report.collect import Cell, Collection


@dataclass(frozen=True, kw_only=True)
class Column:
    title: str
    metric: str
    decimals: int
    scale: float = 1.0  # what is printed is the value times this
    better: str = "lower"  # or higher


@dataclass(frozen=True, kw_only=True)
class Row:
    title: str
    label: str = ""  # a plain cell before the scores, as the number of parameters
    cells: tuple[Cell | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Section:
    title: str
    rows: tuple[Row, ...]

    def ranks(self, columns: Sequence[Column]) -> dict[tuple[int, int], int]:
        """(row, column) -> 1 for the best, 2 for the second best, by the means as printed."""
        ranks: dict[tuple[int, int], int] = {}
        for j, column in enumerate(columns):
            means = {i: row.cells[j].mean for i, row in enumerate(self.rows) if row.cells[j] is not None}  # type: ignore[union-attr]
            shown = {i: round(mean * column.scale, column.decimals) for i, mean in means.items()}
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
    label_title: str = ""
    notes: tuple[str, ...] = field(default=())


def provenance(collection: Collection) -> tuple[str, ...]:
    """The lines every table ends with: what its numbers are, and are not."""
    seeds = sorted({trial.seed for trials in collection.arms.values() for trial in trials if trial.seed})
    lines = [
        f"Sweep {collection.sweep}, {collection.scale} scale, seeds {', '.join(map(str, seeds)) or 'none'}; "
        f"data {collection.data_digest[:16]}, code {collection.code[:16]}.",
        "Mean (standard deviation over seeds, n - 1 in the denominator).",
    ]
    if collection.scale != "paper":
        lines.append(
            f"These are {collection.scale}-scale results: small frames and networks, few updates. They say nothing "
            "about the paper's numbers."
        )
    return tuple(lines)
