"""Which columns and rows each of the paper's tables has."""

from __future__ import annotations

from nowcastlab.report.collect import Collection
from nowcastlab.report.paper import MNIST, OFFLINE, ONLINE, THRESHOLDS_MMH
from nowcastlab.report.standing import standing
from nowcastlab.report.table import Column, Row, Section, Table, provenance

SWEEPS = {"mnist": "links-vs-kernel", "hko7": "hko7-benchmark"}


def mnist_table(collection: Collection) -> Table:
    """Table 1: MovingMNIST++ with parameter counts. Rows are the paper's columns: they fit a terminal better."""
    columns = (Column(title="Test MSE x 100", metric="test/mse", decimals=3, scale=100.0),)
    rows = tuple(
        Row(title=arm, label=_parameters(collection, arm), cells=(collection.cell(arm, "test/mse"),))
        for arm in _ordered(collection, tuple(MNIST))
    )
    return Table(
        title="MovingMNIST++",
        name="mnist",
        marks=standing(collection).marks,
        columns=columns,
        sections=(Section(title="", rows=rows),),
        label_title="#Parameters",
        notes=provenance(collection),
    )


def hko7_table(collection: Collection) -> Table:
    """Table 3: both settings, CSI and HSS at five thresholds, B-MSE, B-MAE."""
    sections = []
    for setting, order in (("offline", tuple(OFFLINE)), ("online", tuple(ONLINE))):
        columns = radar_columns(setting)
        rows = []
        for arm in _ordered(collection, order):
            cells = tuple(collection.cell(arm, column.metric) for column in columns)
            if any(cell is not None for cell in cells):
                rows.append(Row(title=arm, cells=cells))
        if rows:
            sections.append(Section(title=f"{setting.capitalize()} setting", rows=tuple(rows)))
    return Table(
        title="Radar benchmark",
        name="hko7",
        marks=standing(collection).marks,
        columns=radar_columns("offline"),
        sections=tuple(sections),
        notes=provenance(collection),
    )


def radar_columns(setting: str) -> tuple[Column, ...]:
    skills = tuple(
        Column(title=f"{name.upper()} {rate:g}", metric=f"{setting}/{name}/r{rate:g}", decimals=4, better="higher")
        for name in ("csi", "hss")
        for rate in THRESHOLDS_MMH
    )
    errors = tuple(
        Column(title=title, metric=f"{setting}/{name}", decimals=0)
        for name, title in (("bmse", "B-MSE"), ("bmae", "B-MAE"))
    )
    return skills + errors


TABLES = {"mnist": mnist_table, "hko7": hko7_table}


def _ordered(collection: Collection, paper: tuple[str, ...]) -> list[str]:
    """The paper's order first, then arms it does not have."""
    return [arm for arm in paper if arm in collection.arms] + [arm for arm in collection.arms if arm not in paper]


def _parameters(collection: Collection, arm: str) -> str:
    count = collection.arms[arm][0].params.get("parameters")
    return f"{int(count):,}" if count else ""
