"""Hours, parameters, FLOPs and score of every arm, with the front: arms that no other one beats in cost and score."""

from __future__ import annotations

from dataclasses import replace

from nowcastlab.metric_names import DIGITS_MSE, MAIN_SCORE, SECONDS
from nowcastlab.report.cost import CostRow
from nowcastlab.report.findings import Findings
from nowcastlab.report.table import Column, Content, Entry, Row, Section, Table, provenance
from nowcastlab.report.tables import SETTING_TITLES, ordered


def cost_table(findings: Findings) -> Table:
    """A section a setting, an arm a row; all of it also by --explain."""
    digits = findings.collection.kind == "digits"
    columns = (
        Column(title="Hours", metric=SECONDS, decimals=3, better=""),
        Column(title="#Parameters", metric="parameters", better=""),
        Column(title="GFLOPs", metric="flops", better=""),
        Column(title="Test MSE x 100", metric=DIGITS_MSE, decimals=3, scale=100.0)
        if digits
        else Column(title="B-MSE", metric="bmse"),
        Column(title="On the front of", metric="front", better=""),
    )
    rows = {(row.setting, row.arm): row for row in findings.costs}
    sections = []
    for setting in MAIN_SCORE:
        its = [rows[setting, arm] for arm in ordered(findings.collection, setting) if (setting, arm) in rows]
        if its:
            sections.append(Section(title=SETTING_TITLES[setting], rows=tuple(_row(row) for row in its)))
    return Table(
        title="What each arm cost",
        name="cost",
        corner="Arm",
        columns=columns,
        sections=tuple(sections),
        marks=findings.standing.marks,
        notes=(
            *provenance(findings.collection),
            "Hours of one trial, as its run recorded them: training and all its tests, on the machine that ran it.",
            "GFLOPs: convolutions and matrix products of one forecast; '-' for a method without a network.",
            "On the front: no arm of the setting is as cheap and as good, and better in one of the two. By means, "
            "without a test.",
        ),
    )


def _row(row: CostRow) -> Row:
    runs = row.score.run_ids
    cells: tuple[Content, ...] = (
        row.hours,
        _count(row.parameters, f"{row.parameters or 0:,}", runs),
        _count(row.flops, f"{(row.flops or 0) / 1e9:,.3g}", runs),
        row.score,
        Entry(text=", ".join(row.front) or "-", facts={"front": list(row.front)}, run_ids=runs),
    )
    return Row(title=row.arm, cells=cells)


def _count(value: int | None, text: str, runs: tuple[str, ...]) -> Entry:
    entry = Entry(text="-", run_ids=runs)
    return replace(entry, text=text, value=float(value)) if value else entry
