"""The comparisons as a table: difference, interval, effect size, p before and after Holm, and n, always."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from nowcastlab.report.findings import Findings, PairFinding
from nowcastlab.report.table import Column, Entry, Row, Section, Table, provenance
from nowcastlab.significance.comparison import p_text


def comparison_table(findings: Findings, *, decisive: bool = True) -> Table:
    """The comparisons in the scores that decide the sweep; or, with decisive=False, in all scores."""
    chosen = [finding for finding in findings.comparisons if finding.decisive or not decisive]
    sections = tuple(
        Section(title=str(cell), rows=tuple(_row(findings, finding) for finding in its))
        for cell, its in groupby(chosen, key=lambda finding: finding.comparison.cell)
    )
    drawn = findings.drawn
    titles = (
        "Difference",
        "95% interval",
        "Effect size",
        "p",
        "p (Holm)",
        "3 std",
        "Seeds",
        drawn.capitalize(),
        "Better",
    )
    sequences, episodes = findings.tested_on
    where = f" in {episodes} episodes" if drawn == "episodes" else ""
    weight = " Episodes 12 (~8.4): 12, that weigh as 8.4 of equal weight." if drawn == "episodes" else ""
    notes = [
        *provenance(findings.collection)[:1],
        f"{sequences} test sequences{where}, {findings.benchmark.resamples} resamples of {drawn} and seeds "
        f"together.{weight}",
        "Effect size: the difference in pooled standard deviations over seeds (Hedges' g).",
        "3 std: whether the difference exceeds three times the larger deviation over seeds, the paper's own rule.",
        "Better: shown at 5% after Holm's correction over the comparisons named by the sweep in these scores. "
        "An empty cell is no difference shown, which does not show that there is none.",
    ]
    why = dict.fromkeys(f.comparison.untestable for f in chosen if f.comparison.untestable)
    notes += [f"Not testable: {reason}." for reason in why]
    if not chosen:
        notes.append("The sweep named no comparisons, or its record is not in MLflow: nothing is compared.")
    return Table(
        title="Comparisons",
        name="comparisons",
        corner="Comparison",
        columns=tuple(Column(title=title, metric="", better="") for title in titles),
        sections=sections,
        marks=findings.standing.marks,
        notes=tuple(notes),
    )


def _row(findings: Findings, finding: PairFinding) -> Row:
    c = finding.comparison
    d = c.decimals
    rule = "-" if c.three_deviations is None else "yes" if c.three_deviations else "no"
    winner = c.winner()
    better = {None: "", c.a: finding.a, c.b: finding.b}[winner]
    if winner and finding.setting_a != finding.setting_b:
        better = finding.setting_a if winner == c.a else finding.setting_b
    interval = "not testable" if c.low is None or c.high is None else f"{c.low:+.{d}f} to {c.high:+.{d}f}"
    texts = (
        f"{c.difference:+.{d}f}" if math.isfinite(c.difference) else "no data",
        interval,
        "-" if c.effect_size is None else f"{c.effect_size:+.1f}",
        p_text(c.p),
        p_text(c.p_holm),
        rule,
        f"{'+'.join(map(str, c.seeds))}{' paired' if c.paired_seeds else ''}",
        f"{c.episodes} (~{c.effective_episodes:.1f})" if findings.drawn == "episodes" else str(c.episodes),
        better if not c.untestable else "",
    )
    return Row(title=finding.title, cells=tuple(_entry(findings, finding, text) for text in texts))


def _entry(findings: Findings, finding: PairFinding, text: str) -> Entry:
    """Each cell of a comparison leads to all of it."""
    return Entry(
        text=text, value=None, facts=facts(finding, findings.drawn), run_ids=runs(findings, (finding.a, finding.b))
    )


def facts(finding: PairFinding, drawn: str) -> dict[str, Any]:
    """All that is known of a comparison, for JSON and --explain."""
    c = finding.comparison
    return {
        "sentence": c.text(drawn=drawn),
        "difference": c.difference,
        "low": c.low,
        "high": c.high,
        "p": c.p,
        "p_holm": c.p_holm,
        "family": c.family,
        "effect_size": c.effect_size,
        "three_deviations": c.three_deviations,
        "n": f"{'+'.join(map(str, c.seeds))} seeds, {c.episodes} {drawn}",
        "effective_episodes": c.effective_episodes,
        "paired_seeds": c.paired_seeds,
        "untestable": c.untestable,
    }


def runs(findings: Findings, arms: Sequence[str]) -> tuple[str, ...]:
    """The runs of some arms, each arm's once."""
    unique = dict.fromkeys(arms)
    return tuple(trial.run_id for arm in unique for trial in findings.collection.arms[arm])
