"""The findings of Shi et al. 2017 as statements that runs can support or contradict.

Each is a set of comparisons that must all hold, decided by the machinery of the comparisons themselves: shown needs
every one of them at 5% (an intersection-union test), contradicted one that shows the opposite after Holm's correction.
Runs of a smaller scale, or on synthetic data, give evidence about themselves and no verdict on the paper.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from nowcastlab.errors import NowcastlabError, ReportError
from nowcastlab.report.findings import DECISIVE, Findings, PairFinding
from nowcastlab.report.kendall import Points, tracking_gains
from nowcastlab.report.table import Column, Entry, Row, Section, Table
from nowcastlab.significance import Cell, all_of
from nowcastlab.significance.comparison import p_text

NETWORKS = ("2D-CNN", "3D-CNN", "ConvGRU", "TrajGRU")
OPTICAL_FLOW = ("ROVER-Linear", "ROVER-Nonlinear")
LINKS = ("Traj-L5", "Traj-L9", "Traj-L13", "Traj-L17")
HEAVY_MMH = 30.0
SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
NOT_TESTABLE, NO_VERDICT = "not testable", "no verdict"
SHOWN = 6  # comparisons told in full


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What the runs say of a claim, whatever they may be said to prove."""

    verdict: str
    evidence: str
    n: str
    run_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PaperClaim:
    """A finding of the paper, and how runs are asked about it."""

    title: str
    statement: str  # what is tested
    table: str  # whose sweep can decide it: hko7 or mnist
    judge: Callable[[Findings], Judgement]


Pair = tuple[str, str, str, str]  # arm, setting, arm, setting; the first should be better


def _balanced(findings: Findings) -> Judgement:
    _need(findings, ("ConvGRU", "ConvGRU-nobal"))
    cells = [cell for cell in findings.cells if cell.threshold_mmh == HEAVY_MMH and cell.score in ("csi", "hss")]
    return _all(findings, [("ConvGRU", "offline", "ConvGRU-nobal", "offline")], cells)


def _deep(findings: Findings) -> Judgement:
    _need(findings, (*NETWORKS, *OPTICAL_FLOW))
    pairs = [(network, "offline", flow, "offline") for network in NETWORKS for flow in OPTICAL_FLOW]
    return _all(findings, pairs, _decisive(findings))


def _best(findings: Findings) -> Judgement:
    """Against the paper's own algorithms, in every setting both have: the claim is of both, so it may fail in one and
    needs the other to hold. Arms that are not the paper's are told of, and decide nothing."""
    others = ("Last-Frame", *OPTICAL_FLOW, "2D-CNN", "3D-CNN", "ConvGRU-nobal", "ConvGRU")
    _need(findings, ("TrajGRU", *others))
    pairs = _in_every_setting(findings, [("TrajGRU", other) for other in others])
    judgement = _all(findings, pairs, _decisive(findings))
    lacking = _lacking(findings, NETWORKS, "online")
    if lacking:
        verdict = UNDECIDED if judgement.verdict == SUPPORTED else judgement.verdict
        open_still = f"The online setting is not shown: there are no online runs of {', '.join(lacking)}."
        judgement = replace(judgement, verdict=verdict, evidence=f"{judgement.evidence} {open_still}")
    more = [arm for arm in findings.collection.arms if arm not in (*others, "TrajGRU")]
    if not more:
        return judgement
    beside = [
        findings.compare(pair, cell)
        for pair in _in_every_setting(findings, [("TrajGRU", arm) for arm in more])
        for cell in _decisive(findings)
    ]
    told = "; ".join(map(_brief, beside))
    evidence = f"{judgement.evidence} Beside the claim, which the paper did not make: {told}."
    return replace(judgement, evidence=evidence)


def _online(findings: Findings) -> Judgement:
    _need(findings, NETWORKS, setting="online")
    pairs = [(network, "online", network, "offline") for network in NETWORKS]
    return _all(findings, pairs, _decisive(findings))


def _links(findings: Findings) -> Judgement:
    _need(findings, LINKS, setting="digits")
    pairs = [(more, "digits", fewer, "digits") for fewer, more in itertools.pairwise(LINKS)]
    return _all(findings, pairs, _decisive(findings))


def _few_links(findings: Findings) -> Judgement:
    _need(findings, ("Traj-L5", "Conv-K3-D2"), setting="digits")
    return _all(findings, [("Traj-L5", "digits", "Conv-K3-D2", "digits")], _decisive(findings))


def _tracking(findings: Findings) -> Judgement:
    gains, points = tracking_gains(findings), Points(findings.collection)
    told = []
    for name, gain in gains.items():
        if gain.low is None or gain.high is None:
            raise ReportError(
                f"Kendall's tau has no interval over their {gain.arms} arms; below five there is none, nor where too "
                "few of them differ"
            )
        told.append(f"{name}: {gain.tau:+.2f} in |tau|, 95% interval {gain.low:+.2f} to {gain.high:+.2f}")
    low, high = (min(g.low or 0.0 for g in gains.values()), min(g.high or 0.0 for g in gains.values()))
    verdict = SUPPORTED if low > 0 else CONTRADICTED if high < 0 else UNDECIDED
    return Judgement(verdict=verdict, evidence="; ".join(told) + ".", n=points.n, run_ids=points.run_ids)


CLAIMS = (
    PaperClaim(
        title="Training with balanced losses is essential for heavy rain",
        statement="ConvGRU has higher CSI and HSS at 30 mm/h than the same network trained without balancing",
        table="hko7",
        judge=_balanced,
    ),
    PaperClaim(
        title="Every deep model trained with balanced losses beats optical flow",
        statement="each of four networks has lower B-MSE and B-MAE than each variant of ROVER, offline",
        table="hko7",
        judge=_deep,
    ),
    PaperClaim(
        title="TrajGRU is the best",
        statement="TrajGRU has lower B-MSE and B-MAE than every other algorithm of the paper, in both settings",
        table="hko7",
        judge=_best,
    ),
    PaperClaim(
        title="Online fine-tuning beats leaving a network as it was",
        statement="each of four networks has lower B-MSE and B-MAE online than offline, seed by seed",
        table="hko7",
        judge=_online,
    ),
    PaperClaim(
        title="More links help",
        statement="TrajGRU's test MSE falls with each step from 5 to 9 to 13 to 17 links",
        table="mnist",
        judge=_links,
    ),
    PaperClaim(
        title="TrajGRU with 5 links beats ConvGRU with a dilated 3x3 kernel",
        statement="Traj-L5 has a lower test MSE than Conv-K3-D2",
        table="mnist",
        judge=_few_links,
    ),
    PaperClaim(
        title="B-MSE and B-MAE track the skill scores better than MSE and MAE",
        statement="their |Kendall's tau| with CSI and HSS, averaged over the thresholds, is larger",
        table="hko7",
        judge=_tracking,
    ),
)


def claims_table(sources: Mapping[str, Findings | str]) -> Table:
    """`sources`: by table (hko7, mnist), the findings of its sweep, or why there are none; without one, its claims
    are left out."""
    rows = tuple(_row(claim, sources[claim.table]) for claim in CLAIMS if claim.table in sources)
    marks: dict[str, None] = {}
    notes = []
    for table, source in sources.items():
        if isinstance(source, Findings):
            collection = source.collection
            marks |= dict.fromkeys(f"{collection.sweep}: {mark}" for mark in source.standing.marks)
            notes.append(
                f"{table}: sweep {collection.sweep}, {collection.scale} scale; data {collection.data_digest[:16]}, "
                f"code {collection.code[:16]}."
            )
    return Table(
        title="The claims of Shi et al. 2017",
        name="claims",
        corner="Claim",
        columns=tuple(
            Column(title=title, metric="", better="", width=width)
            for title, width in (("Verdict", 1.2), ("Tested", 1.7), ("Evidence", 4.5), ("n", 1.0))
        ),
        sections=(Section(title="", rows=rows),),
        layout="list",
        marks=tuple(marks),
        notes=(
            *notes,
            "Supported: every comparison shows it at 5%. Contradicted: one shows the opposite, after Holm's correction."
            " Undecided: neither, which is not a refutation.",
        ),
    )


def _row(claim: PaperClaim, source: Findings | str) -> Row:
    judgement, why = _judged(claim, source)
    verdict = judgement.verdict if why is None else f"{NO_VERDICT} on the paper ({why})"
    if judgement.verdict == NOT_TESTABLE:
        verdict = NOT_TESTABLE
    evidence = judgement.evidence
    if why is not None and judgement.verdict != NOT_TESTABLE:
        evidence = f"In these runs the statement is {judgement.verdict}. {evidence}"
    facts = {"verdict": verdict.split(" (")[0], "in_these_runs": judgement.verdict, "why": why, "n": judgement.n}
    texts = (verdict, claim.statement, evidence, judgement.n)
    return Row(title=claim.title, cells=tuple(Entry(text=t, facts=facts, run_ids=judgement.run_ids) for t in texts))


def _judged(claim: PaperClaim, source: Findings | str) -> tuple[Judgement, str | None]:
    """The judgement, and why it says nothing about the paper."""
    if isinstance(source, str):
        return Judgement(verdict=NOT_TESTABLE, evidence=f"Not testable: {source}", n="0 runs", run_ids=()), None
    try:
        return claim.judge(source), source.standing.no_claims
    except NowcastlabError as error:
        evidence = f"Not testable with these runs: {error}"
        return Judgement(verdict=NOT_TESTABLE, evidence=evidence.rstrip(".") + ".", n="0 comparisons", run_ids=()), None


def _all(findings: Findings, pairs: Sequence[Pair], cells: Sequence[Cell]) -> Judgement:
    found: list[PairFinding] = [findings.compare(pair, cell) for cell in cells for pair in pairs]
    comparisons = [finding.comparison for finding in found]
    claim = all_of(comparisons)
    untestable = [c for c in comparisons if c.untestable]
    if len(untestable) == len(comparisons):
        raise ReportError(comparisons[0].untestable or "")
    weakest = sorted(found, key=_strength)
    told = "; ".join(_brief(finding) for finding in weakest[:SHOWN])
    rest = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    verdict = {"shown": SUPPORTED, "contradicted": CONTRADICTED}.get(claim.verdict, UNDECIDED)
    seeds = sorted({n for c in comparisons for n in c.seeds})
    arms = dict.fromkeys(arm for a, _, b, _ in pairs for arm in (a, b))
    _, episodes = findings.tested_on
    return Judgement(
        verdict=verdict,
        evidence=f"{claim.text().partition(': ')[2]}. {told}{rest}.",
        n=f"{len(found)} comparison{'s' * (len(found) > 1)}, {' or '.join(map(str, seeds))} runs an arm, "
        f"{episodes} {findings.drawn}",
        run_ids=tuple(trial.run_id for arm in arms for trial in findings.collection.arms[arm]),
    )


def _strength(finding: PairFinding) -> float:
    """Of the evidence for the claim: the more against it, the smaller."""
    c = finding.comparison
    if c.p is None:
        return 0.0
    return (1 - c.p) * (1 if c.difference * c.cell.better > 0 else -1)


def _brief(finding: PairFinding) -> str:
    c = finding.comparison
    if c.low is None or c.high is None:
        return f"{finding.title}, {c.cell}: not testable ({c.untestable})"
    difference = f"{finding.title}, {c.cell}: {c.difference:+.{c.decimals}f}"
    return f"{difference}, 95% interval {c.low:+.{c.decimals}f} to {c.high:+.{c.decimals}f}, p {p_text(c.p)}"


def _decisive(findings: Findings) -> list[Cell]:
    return [cell for cell in findings.cells if cell.score in DECISIVE[findings.collection.kind]]


def _in_every_setting(findings: Findings, pairs: Sequence[tuple[str, str]]) -> list[Pair]:
    settings = findings.collection.settings
    return [(a, s, b, s) for a, b in pairs for s in settings(a) if s in settings(b)]


def _need(findings: Findings, arms: Sequence[str], *, setting: str = "offline") -> None:
    lacking = _lacking(findings, arms, setting)
    if lacking:
        raise ReportError(f"{findings.collection.sweep} has no {setting} runs of {', '.join(lacking)}")


def _lacking(findings: Findings, arms: Sequence[str], setting: str) -> list[str]:
    collection = findings.collection
    return [arm for arm in arms if arm not in collection.arms or setting not in collection.settings(arm)]
