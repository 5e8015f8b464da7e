"""The tables beyond the scores: correlation, rain, cost, power; how cells are explained; LaTeX that compiles."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import kendalltau

from nowcastlab.errors import ConfigError
from nowcastlab.report import Entry, Findings, Table, render
from nowcastlab.report.build import PARTS, explain, tables_for
from nowcastlab.report.claims import claims_table
from nowcastlab.report.collect import Cell
from nowcastlab.report.latex import as_latex, escape
from nowcastlab.report.seeds import Size, power_from_paper, power_from_runs
from nowcastlab.report.table import Column, number
from nowcastlab.significance import Design, seeds_needed

FORMS = ("text", "md", "latex", "csv", "json")
PAIRS = (("TrajGRU", "ConvGRU"), ("2D-CNN", "ROVER-Nonlinear"))


@pytest.fixture(scope="module")
def radar(made: SimpleNamespace) -> Findings:
    found: Findings = made.findings(arms=made.radar_arms(), comparisons=PAIRS)
    return found


def cell(table: Table, row: str, column: str, section: int = 0) -> Entry:
    (found,) = [r for r in table.sections[section].rows if r.title == row]
    entry = found.cells[[c.title for c in table.columns].index(column)]
    assert isinstance(entry, Entry)
    return entry


def test_kendalls_tau_is_over_every_run_in_every_setting(radar: Findings) -> None:
    (table,) = tables_for("kendall", radar)
    trials = [(s, t) for a, ts in radar.collection.arms.items() for s in radar.collection.settings(a) for t in ts]
    x, y = ([t.metrics[f"{s}/{name}"] for s, t in trials] for name in ("mae", "csi/r30"))
    tau = cell(table, "MAE", "CSI 30")
    assert len(trials) == 3 + 4 * 2 * 3 + 3
    assert tau.value == pytest.approx(kendalltau(x, y).statistic)
    assert tau.facts["n"] == "30 points of 8 arms"
    assert cell(table, "MAE", "CSI 30", section=1).text == "-0.27"  # the paper's


def test_rain_is_what_was_observed_whatever_was_forecast(radar: Findings, made: SimpleNamespace) -> None:
    (table,) = tables_for("rain", radar)
    scores = made.radar_scores(0.9, seed=5)  # any other run on the same weather
    observed, pixels = (scores.tp + scores.fn).sum((0, 1)), 20_000 * len(scores) * 3
    assert cell(table, "30 <= x", "These runs (%)").value == pytest.approx(100 * observed[4] / pixels)
    assert cell(table, "2 <= x < 5", "These runs (%)").value == pytest.approx(
        100 * (observed[1] - observed[2]) / pixels
    )
    shares = [row.cells[0].value for row in table.sections[0].rows if isinstance(row.cells[0], Entry)]
    assert np.sum(shares) == pytest.approx(100)
    assert cell(table, "0.5 <= x < 2", "The paper (%)").text == "4.38"


def test_the_front_is_marked_in_the_table_of_cost(radar: Findings) -> None:
    (table,) = tables_for("cost", radar)
    assert cell(table, "TrajGRU", "On the front of").text == "hours, parameters"
    assert cell(table, "ConvGRU", "On the front of").text == "-"  # as large and as slow as TrajGRU, and worse
    assert [section.title for section in table.sections] == ["Offline setting", "Online setting"]


def test_power_from_runs_is_that_of_their_own_variances(radar: Findings) -> None:
    table = power_from_runs(radar, Size("10%"))
    row = cell(table, "TrajGRU - ConvGRU, offline", "Seeds an arm")
    pair = radar.compare(("TrajGRU", "offline", "ConvGRU", "offline"), radar.cells[-2])
    mean = radar.benchmark.scores["ConvGRU (offline)"][:, -2].mean()
    plan = seeds_needed(Design.from_pilot(pair.comparison), difference=0.1 * float(mean))
    assert row.facts["sentence"] == plan.text()
    text = explain([table], "TrajGRU - ConvGRU, offline", "Seeds an arm")
    assert "not from a run" not in text
    assert "  run run-ConvGRU-3" in text


def test_the_number_of_parameters_leads_to_its_runs(made: SimpleNamespace) -> None:
    tables = tables_for("mnist", made.findings(arms=made.digits_arms(), name="links-vs-kernel", store={}))
    text = explain(tables, "Traj-L5", "#Parameters")
    assert "printed: 7,000\n  exactly: 7000.0\n  run run-Traj-L5-1" in text  # made with 1000 weights a letter
    first = json.loads(render(tables, "json"))["tables"][0]["sections"][0]["rows"][0]["cells"]["#Parameters"]
    assert (first["value"], len(first["runs"])) == (10_000, 3)


def test_power_from_the_papers_deviations_needs_no_run() -> None:
    table = power_from_paper("hko7", Size("135"))
    row = cell(table, "TrajGRU - ConvGRU", "Seeds an arm")
    assert row.text == "4"  # deviations of 52 and 18, as docs/statistics.md has it
    assert "what other weather adds is not in them" in " ".join(table.notes)


@pytest.mark.parametrize("text", ["much", "0", "-3", "0%"])
def test_a_difference_must_be_a_size(text: str) -> None:
    with pytest.raises(ConfigError, match="--difference"):
        Size(text)


@pytest.mark.parametrize("form", FORMS)
def test_every_format_of_every_table_says_what_the_runs_are_not(radar: Findings, form: str) -> None:
    for name in PARTS:
        if name != "mnist":
            for table in tables_for(name, radar):
                text = " ".join(render([table], form).split())
                assert "DEMO SCALE" in text, name
                assert "SYNTHETIC DATA" in text, name


@pytest.mark.parametrize("name", [name for name in PARTS if name != "mnist"])
def test_a_cell_of_every_table_leads_to_its_runs(radar: Findings, name: str) -> None:
    tables = tables_for(name, radar)
    for table in tables:
        row, column = table.sections[0].rows[-1].title, table.columns[0].title
        text = explain(tables, row, column)
        assert "run run-" in text
        assert "printed: " in text


def test_an_unknown_row_or_column_is_answered_with_the_known_ones(radar: Findings) -> None:
    tables = tables_for("hko7", radar)
    with pytest.raises(ConfigError, match=r"No row 'TrajGPU'\. The rows are: .*TrajGRU"):
        explain(tables, "TrajGPU", "B-MSE")
    with pytest.raises(ConfigError, match=r"No column 'CSI 31'\. The columns are: .*CSI 30"):
        explain(tables, "TrajGRU", "CSI 31")


def test_json_and_csv_hold_the_comparisons_unrounded(radar: Findings) -> None:
    tables = tables_for("hko7", radar)
    (plain,) = [t for t in json.loads(render(tables, "json"))["tables"] if t["table"] == "comparisons"]
    first = plain["sections"][0]["rows"][0]["cells"]["Difference"]
    comparison = radar.comparisons[0].comparison
    assert (first["difference"], first["low"], first["family"]) == (comparison.difference, comparison.low, 2 * 7)
    rows = list(csv.DictReader(io.StringIO(render(tables, "csv"))))
    assert {row["table"] for row in rows} == {"hko7", "hko7-std", "comparisons"}


def test_comparisons_on_moving_digits_speak_of_sequences_not_of_episodes(made: SimpleNamespace) -> None:
    pair = ("Traj-L13", "Traj-L5")
    tables = tables_for("mnist", made.findings(arms=made.digits_arms(), comparisons=[pair], store={}))
    said = render(tables, "text") + render(tables, "json")
    assert "Sequences" in said
    assert "episode" not in said.lower().replace("effective_episodes", "")


def test_a_table_of_comparisons_always_has_its_n(radar: Findings) -> None:
    table = tables_for("hko7", radar)[-1]
    for section in table.sections:
        for row in section.rows:
            seeds, episodes = (cell.text for cell in row.cells[6:8] if isinstance(cell, Entry))
            assert seeds in ("3+3", "3+1", "3+3 paired")
            assert episodes.startswith("12 (~")


def test_what_cannot_be_tested_says_why(made: SimpleNamespace) -> None:
    found = made.findings(arms=made.radar_arms(seeds=(1,)), comparisons=PAIRS)
    table = tables_for("hko7", found)[-1]
    assert cell(table, "TrajGRU - ConvGRU, offline", "95% interval").text == "not testable"
    said = "Not testable: TrajGRU (offline) and ConvGRU (offline) have one seed each, which says nothing about another"
    assert any(note.startswith(said) for note in table.notes)


def test_comparisons_that_nobody_named_leave_a_table_that_says_so(made: SimpleNamespace) -> None:
    arms = {arm: its for arm, its in made.radar_arms().items() if arm in ("Last-Frame", "ROVER-Linear")}
    (table,) = tables_for("comparisons", made.findings(arms=arms))
    assert not table.sections
    for form in ("text", "md", "latex", "json"):
        assert "The sweep named no comparisons" in render([table], form)


def test_a_threshold_that_was_never_observed_is_no_data_in_every_format(made: SimpleNamespace) -> None:
    dry = {}
    for arm, seeds in {"TrajGRU": (1, 2), "ConvGRU": (1, 2)}.items():
        runs = {}
        for seed in seeds:
            scores = made.radar_scores(0.5, seed=seed)
            counts = {name: getattr(scores, name).copy() for name in ("tp", "fn", "fp", "tn")}
            for name in ("tp", "fn", "fp"):
                counts[name][..., 4] = 0
            counts["tn"][..., 4] = 20_000
            runs[seed] = {"offline": replace(scores, **counts)}
        dry[arm] = runs
    tables = tables_for("hko7", made.findings(arms=dry, comparisons=PAIRS[:1]))
    tables += tables_for("comparisons", made.findings(arms=dry, comparisons=PAIRS[:1]))
    for form in FORMS:
        text = render(tables, form)
        assert "nan" not in text.lower(), form
        assert ("null" if form == "json" else "no data") in text, form


def test_latex_has_the_papers_head_and_marks(radar: Findings) -> None:
    text = render(tables_for("hko7", radar)[:1], "latex")
    assert r"Algorithms & \multicolumn{5}{c}{CSI $\uparrow$} & \multicolumn{5}{c}{HSS $\uparrow$}" in text
    assert r" & $r \ge 0.5$ & $r \ge 2$ & $r \ge 5$ & $r \ge 10$ & $r \ge 30$ & " in text
    assert r"\multicolumn{12}{c}{Offline setting}" in text
    (best,) = [line for line in text.splitlines() if line.startswith("TrajGRU") and r"\textbf{0.4256}" in line]
    assert best.count(r"\textbf") == 12
    assert text.count(r"\underline{0") == 20  # the second best: ten columns in two settings


def test_latex_takes_any_text() -> None:
    assert escape(r"50% of $x_1 & {a}^2 ~ \b") == (
        r"50\% of \$x\_1 \& \{a\}\textasciicircum{}2 $\sim$ \textbackslash{}b"
    )
    assert escape("-0.3 to -0.1, 3D-CNN, Traj-L5") == "$-$0.3 to $-$0.1, 3D-CNN, Traj-L5"


def test_latex_compiles_as_it_is(radar: Findings, tmp_path: Path) -> None:
    compiler = next((c for c in ("pdflatex", "tectonic") if shutil.which(c)), None)
    if compiler is None:
        pytest.skip("no pdflatex or tectonic here to compile with")
    tables = [t for name in PARTS if name != "mnist" for t in tables_for(name, radar)]
    tables.append(claims_table({"hko7": radar, "mnist": "no such sweep, 100% sure & more_"}))
    (tmp_path / "table.tex").write_text(render(tables, "latex"))
    options = ["-interaction=nonstopmode", "-halt-on-error"] if compiler == "pdflatex" else []
    done = subprocess.run([compiler, *options, "table.tex"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "table.pdf").read_bytes().startswith(b"%PDF")
    assert "Overfull" not in done.stdout
    assert "Float too large" not in done.stdout


def test_a_table_longer_than_a_page_goes_on_in_another(radar: Findings) -> None:
    """Seven comparisons in twelve scores: 84 rows."""
    (table,) = tables_for("comparisons", radar)
    text = as_latex(table)
    first, second = text.split(r"\begin{table}")[1:]
    assert r"\caption{Comparisons. \textbf{DEMO SCALE" in first
    assert r"\caption{Comparisons (continued). \textbf{DEMO SCALE" in second
    assert ("Better: shown at" in first, "Better: shown at" in second) == (True, False)  # the notes, once
    rows = [row.title for section in table.sections for row in section.rows]
    assert [line.split(" & ")[0] for line in text.splitlines() if line.split(" & ")[0] in rows] == rows


def test_a_section_that_a_page_cuts_says_on_the_next_that_it_goes_on(radar: Findings) -> None:
    (table,) = tables_for("comparisons", radar)
    section = table.sections[0]
    long = replace(table, sections=(replace(section, rows=section.rows * 10),))
    titles = [line for line in as_latex(long).splitlines() if r"\multicolumn" in line]
    head = r" & \multicolumn{9}{c}"
    assert titles == [head + r"{B-MSE} \\", head + r"{B-MSE (continued)} \\"]


def test_no_page_ends_with_the_title_of_what_follows(radar: Findings) -> None:
    (table,) = tables_for("comparisons", radar)
    for rows in range(1, 8):
        shorter = replace(table, sections=tuple(replace(s, rows=s.rows[:rows]) for s in table.sections * 6))
        for part in as_latex(shorter).split(r"\bottomrule")[:-1]:
            assert r"\multicolumn" not in part.splitlines()[-1]


def test_nothing_is_printed_without_a_minus() -> None:
    """A skill score may lie a hair below zero: -0.0000 would say more than its digits do."""
    column = Column(title="HSS", metric="offline/hss/r30", decimals=4)
    for mean, printed in ((-0.00001, "0.0000"), (-0.00012, "-0.0001")):
        assert number(Cell(values=(mean,), seeds=(1,), run_ids=("r",)), column) == printed
