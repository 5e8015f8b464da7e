"""What may be believed of the differences: in words, as a table, and as forest plots of every pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from nowcastlab.figures.forest import draw_forest
from nowcastlab.report.comparison_table import comparison_table
from nowcastlab.report.findings import Findings
from nowcastlab.report.page.markup import Html, join, tag
from nowcastlab.report.page.pictures import figure_html
from nowcastlab.report.page.scores import run_names, score_scale, slug, tested_on
from nowcastlab.report.page.tables import table_html
from nowcastlab.report.tables import SETTING_TITLES as SETTINGS
from nowcastlab.report.tables import ordered
from nowcastlab.significance import Cell, Comparison, family

ALPHA = 0.05


def significance_html(findings: Findings) -> Html:
    """The paragraph a reader needs before any table: what was asked beforehand, what came of it, from how much."""
    decisive = [finding for finding in findings.comparisons if finding.decisive]
    if not decisive:
        return tag("p", "The sweep named no comparisons before it ran, so nothing is tested here.")
    shown = [f for f in decisive if f.comparison.winner(alpha=ALPHA)]
    collection = findings.collection
    seeds = sorted({len(trials) for arm, trials in collection.arms.items() if not collection.deterministic(arm)})
    baselines = any(collection.deterministic(arm) for arm in collection.arms)
    scores = " and ".join(dict.fromkeys(str(f.comparison.cell) for f in decisive))
    n = (
        f"n = {' or '.join(map(str, seeds))} {'seed' if seeds == [1] else 'seeds'} a network"
        f"{' (what is not trained has one run)' if baselines else ''}, {tested_on(findings)}, "
        f"{decisive[0].comparison.resamples:,} resamples."
    )
    summary = (
        f"{_count(len(decisive))} in {scores} {'were' if len(decisive) > 1 else 'was'} settled before the sweep ran. "
        f"{len(shown)} of them show{'s' * (len(shown) == 1)} a difference at the 5% level after Holm's correction over "
        f"all {len(decisive)}. {_untestable([f.comparison for f in decisive])}{n}"
    )
    sentences = tag("ul", *(tag("li", f.comparison.text(alpha=ALPHA, drawn=findings.drawn)) for f in decisive))
    means = (
        f"{findings.drawn.capitalize()} and seeds are resampled together, all arms on the same {findings.drawn}, with "
        "a correction for few seeds. “No difference shown” is not “no difference”."
    )
    words = tag("details", tag("summary", "Each of them in words"), sentences)
    return join(tag("p", summary), tag("p", means), words)


def comparisons_html(findings: Findings) -> Html:
    """The table of comparisons in the decisive scores; in all scores, folded away."""
    if not findings.comparisons:
        return Html()
    others = sum(not finding.decisive for finding in findings.comparisons)
    runs = run_names(findings.collection)
    parts = [table_html(comparison_table(findings), runs)]
    if others:
        title = f"The same pairs in all scores ({_count(len(findings.comparisons))})"
        every = table_html(comparison_table(findings, decisive=False), runs)
        parts.append(tag("details", tag("summary", title), every))
    return join(*parts)


def forests_html(findings: Findings) -> Html:
    """Every pair of arms in the first score that decides; in the others folded away."""
    decisive = [finding.comparison.cell for finding in findings.comparisons if finding.decisive]
    parts = [
        tag(
            "p",
            "Filled diamond and thick line: a difference is shown at the 5% level. Hollow circle and thin line: it is "
            "not. Bold: settled before the run, and corrected by Holm among all that were; the others were not settled "
            "before, and are corrected among themselves in each picture.",
        )
    ]
    for i, cell in enumerate(dict.fromkeys(decisive or findings.cells[-1:])):
        drawn = join(*(_forest(findings, cell, setting) for setting in SETTINGS), _online_gain(findings, cell))
        parts.append(drawn if i == 0 else tag("details", tag("summary", f"The same in {cell}"), drawn))
    return join(*parts)


def _forest(findings: Findings, cell: Cell, setting: str) -> Html:
    """All pairs within a setting."""
    named = [
        replace(f.comparison, a=f.a, b=f.b)
        for f in findings.comparisons
        if f.comparison.cell == cell and f.setting_a == f.setting_b == setting
    ]
    there = {frozenset((c.a, c.b)) for c in named}
    others = [pair for pair in combinations(ordered(findings.collection, setting), 2) if frozenset(pair) not in there]
    explored = family([_better_first(findings, cell, setting, *pair) for pair in others])
    return _drawn(cell, named, explored, title=SETTINGS[setting], name=setting)


def _online_gain(findings: Findings, cell: Cell) -> Html:
    """Each network online against itself offline."""
    crossed = [f for f in findings.comparisons if f.comparison.cell == cell and f.setting_a != f.setting_b]
    pairs = [replace(f.comparison, a=f"{f.a} {f.setting_a}", b=f.setting_b) for f in crossed]
    return _drawn(cell, pairs, [], title="Online against offline", name="gain")


def _drawn(cell: Cell, named: Sequence[Comparison], others: Sequence[Comparison], *, title: str, name: str) -> Html:
    pairs = [pair for pair in (*named, *others) if np.isfinite(pair.difference)]
    if not pairs:
        return Html()
    shown = sum(pair.winner(alpha=ALPHA) is not None for pair in pairs)
    caption = f"{cell}: {_count(len(pairs))}, {shown} of them shown. {_untestable(pairs)}".strip()
    figure = draw_forest(pairs, named=[(c.a, c.b) for c in named], scale=score_scale(cell), alpha=ALPHA)
    alt = f"Forest plot{f', {title.lower()}' if title else ''}. {caption}"
    drawn = figure_html(figure, name=f"forest-{slug(cell)}-{name}", alt=alt, caption=caption)
    return join(tag("h3", title) if title else None, drawn)


def _count(comparisons: int) -> str:
    return f"{comparisons} comparison{'s' * (comparisons != 1)}"


def _untestable(comparisons: Sequence[Comparison]) -> str:
    """How many, and why; nothing where all can be tested."""
    reasons = [c.untestable for c in comparisons if c.untestable]
    return f"{len(reasons)} cannot be tested: {'; or '.join(dict.fromkeys(reasons))}. " if reasons else ""


def _better_first(findings: Findings, cell: Cell, setting: str, a: str, b: str) -> Comparison:
    """A pair nobody named has no first arm, so the better one is."""
    found = findings.compare((a, setting, b, setting), cell).comparison
    if found.difference * cell.better < 0:
        a, b = b, a
        found = findings.compare((a, setting, b, setting), cell).comparison
    return replace(found, a=a, b=b)
