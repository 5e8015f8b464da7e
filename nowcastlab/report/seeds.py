"""How many seeds a difference needs, told before they are paid for: from runs at hand, or the paper's deviations."""

from __future__ import annotations

from typing import Any

from nowcastlab.errors import ConfigError, ReportError
from nowcastlab.metric_names import DIGITS_MSE, metric_name
from nowcastlab.report.comparison_table import runs
from nowcastlab.report.findings import DECISIVE, Findings
from nowcastlab.report.paper import SEEDS, published
from nowcastlab.report.table import Column, Entry, Row, Section, Table, provenance
from nowcastlab.significance import Design, SeedPlan, seeds_needed, smallest_difference
from nowcastlab.significance.power import MOST_SEEDS

COLUMNS = tuple(
    Column(title=title, metric="", better="") for title in ("Difference", "Seeds an arm", "Power", "3 seeds find")
)
# The paper's deviations in the scores that decide, by the pairs its claims rest on.
PAPER_PAIRS = {
    "hko7": (("TrajGRU", "ConvGRU"), ("3D-CNN", "2D-CNN"), ("ConvGRU", "2D-CNN")),
    "mnist": (("Traj-L5", "Conv-K3-D2"), ("Traj-L13", "Conv-K7-D1"), ("Traj-L9", "Traj-L5"),
              ("Traj-L13", "Traj-L9"), ("Traj-L17", "Traj-L13")),
}  # fmt: skip
PAPER_METRICS = {
    "hko7": tuple(metric_name(setting, score) for setting in ("offline", "online") for score in DECISIVE["radar"]),
    "mnist": (DIGITS_MSE,),
}


class Size:
    """A difference as a user gives it: 135, or 2% of the second arm's score."""

    def __init__(self, text: str) -> None:
        try:
            self.value = float(text.removesuffix("%"))
        except ValueError:
            raise ConfigError(
                f"--difference {text!r}: give a number in the score's units, or per cent as 2%."
            ) from None
        if not self.value > 0:
            raise ConfigError(f"--difference {text!r} must be above 0: give the smallest one that would matter.")
        self.percent = text.endswith("%")

    def of(self, score: float) -> float:
        """In the units of a score that is this large."""
        return self.value / 100 * score if self.percent else self.value


def power_from_runs(findings: Findings, size: Size) -> Table:
    """For each comparison the sweep named: what its own runs' variances ask for, weather included."""
    kind = findings.collection.kind
    sections = []
    for cell in (cell for cell in findings.cells if cell.score in DECISIVE[kind]):
        rows = []
        for pair in findings.pairs():
            finding = findings.compare(pair, cell)
            c = finding.comparison
            score = findings.benchmark.scores[c.b][:, findings.benchmark.index(cell)].mean()
            its = runs(findings, (finding.a, finding.b))
            try:
                rows.append(_row(finding.title, Design.from_pilot(c), size.of(float(score)), its))
            except ReportError as error:
                none = Entry(text="-", facts={"why": str(error)}, run_ids=its)
                rows.append(Row(title=finding.title, cells=(none,) * len(COLUMNS)))
        sections.append(Section(title=str(cell), rows=tuple(rows)))
    others = "weather" if findings.drawn == "episodes" else "sequences"
    note = (
        f"From the variances of these runs over seeds and {findings.tested_on[1]} {findings.drawn}: for other {others} "
        "of the same kind."
    )
    return _table(sections, (*provenance(findings.collection)[:1], note), findings.standing.marks)


def power_from_paper(table: str, size: Size) -> Table:
    """From printed deviations: for the very same test days, since a paper prints nothing about the weather's share."""
    sections = []
    for metric in PAPER_METRICS[table]:
        rows = []
        for a, b in PAPER_PAIRS[table]:
            one, other = published(a, metric), published(b, metric)
            assert one is not None
            assert other is not None
            # what is printed as 0 may be up to half a digit
            stds = tuple(max(number.std or 0.0, number.digit / 2) for number in (one, other))
            rows.append(_row(f"{a} - {b}", Design(std=stds), size.of(other.value), ()))
        sections.append(Section(title=metric, rows=tuple(rows)))
    note = (
        f"From the paper's deviations over {SEEDS} seeds, which are known poorly themselves; for the very same days:"
        " what other weather adds is not in them."
    )
    return _table(sections, (note,), ())


def _table(sections: list[Section], notes: tuple[str, ...], marks: tuple[str, ...]) -> Table:
    return Table(
        title="How many seeds find a difference of this size",
        name="power",
        corner="Comparison",
        columns=COLUMNS,
        sections=tuple(sections),
        marks=marks,
        notes=(
            *notes,
            "Seeds an arm for 80% power in a two-sided test at 5%, before Holm's correction. 3 seeds find: the smallest"
            " difference that three seeds an arm find in 80% of cases.",
        ),
    )


def _row(title: str, design: Design, difference: float, run_ids: tuple[str, ...]) -> Row:
    plan: SeedPlan = seeds_needed(design, difference=difference)
    smallest = smallest_difference(design, seeds=SEEDS)
    facts: dict[str, Any] = {
        "sentence": plan.text(),
        "std_over_seeds": list(design.std),
        "variance_of_weather": design.episodes,
        "effective_episodes": design.effective_episodes,
    }
    texts = (
        f"{difference:.4g}",
        f"more than {MOST_SEEDS}" if plan.seeds is None else str(plan.seeds),
        f"{plan.power:.0%}",
        f"{smallest:.4g}",
    )
    return Row(title=title, cells=tuple(Entry(text=text, facts=facts, run_ids=run_ids) for text in texts))
