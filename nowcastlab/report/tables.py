"""The paper's score tables: which rows and columns each has."""

from __future__ import annotations

from dataclasses import replace

from nowcastlab.metric_names import DIGITS_MSE, metric_name
from nowcastlab.report.collect import Collection
from nowcastlab.report.paper import MNIST, OFFLINE, ONLINE
from nowcastlab.report.standing import standing
from nowcastlab.report.table import Column, Entry, Row, Section, Table, provenance
from nowcastlab.units import THRESHOLDS_MMH

SWEEPS = {"mnist": "links-vs-kernel", "hko7": "hko7-benchmark"}
PARAMETERS = "parameters"  # of a run: how many weights its network has
SETTING_TITLES = {"offline": "Offline setting", "online": "Online setting", "digits": ""}


def mnist_table(collection: Collection) -> Table:
    """Table 1: MovingMNIST++ with parameter counts. Rows are the paper's columns: they fit a terminal better."""
    columns = (
        Column(title="#Parameters", metric=PARAMETERS, better=""),
        Column(title="Test MSE x 100", metric=DIGITS_MSE, decimals=3, scale=100.0),
    )
    rows = tuple(
        Row(title=arm, cells=(_parameters(collection, arm), collection.cell(arm, DIGITS_MSE)))
        for arm in ordered(collection, "digits")
    )
    return Table(
        title="MovingMNIST++",
        name="mnist",
        corner="Network",
        columns=columns,
        sections=(Section(title="", rows=rows),),
        marks=standing(collection).marks,
        notes=provenance(collection),
    )


def hko7_table(collection: Collection) -> Table:
    """Table 3: both settings, CSI and HSS at five thresholds, B-MSE, B-MAE; the means."""
    sections = []
    for setting in ("offline", "online"):
        columns = radar_columns(setting)
        rows = []
        for arm in ordered(collection, setting):
            cells = tuple(collection.cell(arm, column.metric) for column in columns)
            if any(cell is not None for cell in cells):
                rows.append(Row(title=arm, cells=cells))
        if rows:
            sections.append(Section(title=SETTING_TITLES[setting], rows=tuple(rows)))
    return Table(
        title="Radar benchmark",
        name="hko7",
        corner="Algorithms",
        columns=radar_columns("offline"),
        sections=tuple(sections),
        shows="mean",
        marks=standing(collection).marks,
        notes=(*provenance(collection)[:1], "Means over seeds; the deviations are in the table of deviations."),
    )


def hko7_std_table(collection: Collection) -> Table:
    """Table 4: the deviations over seeds of the rows that have seeds."""
    table = hko7_table(collection)
    sections = tuple(
        replace(section, rows=tuple(row for row in section.rows if not collection.deterministic(row.title)))
        for section in table.sections
    )
    return replace(
        table,
        title="Radar benchmark: standard deviations over seeds",
        name="hko7-std",
        columns=tuple(replace(column, better="") for column in table.columns),
        sections=tuple(section for section in sections if section.rows),
        shows="std",
        notes=(*provenance(collection)[:1], "Standard deviation over seeds, n - 1 in the denominator."),
    )


def radar_columns(setting: str) -> tuple[Column, ...]:
    """CSI and HSS at five thresholds, B-MSE and B-MAE, by their metrics in one setting."""
    skills = tuple(
        Column(
            title=f"{name.upper()} {rate:g}",
            metric=metric_name(setting, name, rate),
            decimals=4,
            better="higher",
            group=name.upper(),
            short=f"r >= {rate:g}",
        )
        for name in ("csi", "hss")
        for rate in THRESHOLDS_MMH
    )
    errors = tuple(
        Column(title=title, metric=metric_name(setting, name), decimals=0)
        for name, title in (("bmse", "B-MSE"), ("bmae", "B-MAE"))
    )
    return skills + errors


TABLES = {"mnist": mnist_table, "hko7": hko7_table}


def ordered(collection: Collection, setting: str) -> list[str]:
    """The arms tested so: the paper's order first, then arms it does not have."""
    paper = {"digits": tuple(MNIST), "offline": tuple(OFFLINE), "online": (*ONLINE, *OFFLINE)}[setting]
    paper = tuple(dict.fromkeys(paper))
    arms = [arm for arm in collection.arms if setting in collection.settings(arm)]
    return [arm for arm in paper if arm in arms] + [arm for arm in arms if arm not in paper]


def _parameters(collection: Collection, arm: str) -> Entry:
    trials = collection.arms[arm]
    count, runs = trials[0].params.get(PARAMETERS), tuple(trial.run_id for trial in trials)
    return Entry(text=f"{int(count):,}", value=float(count), run_ids=runs) if count else Entry(text="-", run_ids=runs)
