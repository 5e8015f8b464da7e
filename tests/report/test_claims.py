"""The paper's findings as statements: supported, contradicted, undecided, or not testable and why."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from nowcastlab.report import Entry, Findings
from nowcastlab.report.claims import CLAIMS, claims_table
from nowcastlab.skill import SequenceScores

NONE = "no such sweep"
REAL = {"synthetic": False, "title": "some radar"}


def verdicts(hko7: Findings | str = NONE, mnist: Findings | str = NONE) -> dict[str, tuple[str, str, str]]:
    """{claim: (verdict, evidence, n)}."""
    (section,) = claims_table({"hko7": hko7, "mnist": mnist}).sections
    texts = {row.title: [cell.text for cell in row.cells if isinstance(cell, Entry)] for row in section.rows}
    return {title: (verdict, evidence, n) for title, (verdict, _, evidence, n) in texts.items()}


BALANCED, DEEP, BEST, ONLINE, LINKS, FEW_LINKS, TRACKING = (claim.title for claim in CLAIMS)


@pytest.fixture(scope="module")
def real(made: SimpleNamespace) -> Findings:
    """The paper's scale, on real radar, with the paper's order of quality and little noise."""
    return made.findings(arms=made.radar_arms(noise=0.002), scale="paper", store=REAL)


def test_runs_with_the_papers_order_support_its_claims(real: Findings) -> None:
    found = verdicts(real)
    for claim in (BALANCED, DEEP, BEST, ONLINE):
        assert found[claim][0] == "supported", claim
    assert found[DEEP][2] == "16 comparisons, 1 or 3 runs an arm, 12 episodes"  # 4 networks x 2 flows x 2 errors
    assert found[BALANCED][1].startswith("2 of 2 comparisons show it. ConvGRU - ConvGRU-nobal, offline, ")


def test_the_opposite_contradicts(made: SimpleNamespace) -> None:
    arms = made.radar_arms(noise=0.002)
    arms["TrajGRU"] = {s: {"offline": made.radar_scores(0.45, seed=s, noise=0.002)} for s in (1, 2, 3)}
    found = verdicts(made.findings(arms=arms, scale="paper", store=REAL))
    assert found[BEST][0] == "contradicted"
    assert "the opposite" in found[BEST][1]
    assert found[ONLINE][0] == "not testable"
    assert found[ONLINE][1] == "Not testable with these runs: hko7-benchmark has no online runs of TrajGRU."


def test_offline_alone_does_not_show_who_is_best_in_both_settings(made: SimpleNamespace) -> None:
    arms = made.radar_arms(noise=0.002)
    for runs in arms.values():
        for by_setting in runs.values():
            by_setting.pop("online", None)
    verdict, evidence, _ = verdicts(made.findings(arms=arms, scale="paper", store=REAL))[BEST]
    assert verdict == "undecided"
    assert evidence.startswith("14 of 14 comparisons show it.")  # against seven algorithms in two scores
    assert evidence.endswith(
        "The online setting is not shown: there are no online runs of 2D-CNN, 3D-CNN, ConvGRU, TrajGRU."
    )


def test_a_skill_that_never_differs_leaves_no_interval_that_is_not_a_number(made: SimpleNamespace) -> None:
    """Nobody but the last frame forecasts 30 mm/h: without it that skill is 0 for all, and tracks nothing."""

    def never_heavy(scores: SequenceScores) -> SequenceScores:
        counts = {name: getattr(scores, name).copy() for name in ("tp", "fn", "fp", "tn")}
        for missed, forecast in (("fn", "tp"), ("tn", "fp")):
            counts[missed][..., 4] += counts[forecast][..., 4]
            counts[forecast][..., 4] = 0
        return replace(scores, **counts)

    networks = {"A": 0.4, "B": 0.5, "C": 0.55, "D": 0.6, "E": 0.65}
    arms = {
        arm: {seed: {"offline": never_heavy(made.radar_scores(hits, seed=seed))} for seed in (1, 2, 3)}
        for arm, hits in networks.items()
    }
    for more in ({}, {"Last-Frame": {0: {"offline": made.radar_scores(0.3, seed=0)}}}):
        verdict, evidence, _ = verdicts(made.findings(arms=arms | more, scale="paper", store=REAL))[TRACKING]
        assert verdict in ("undecided", "not testable")
        assert "nan" not in evidence


def test_one_seed_decides_nothing(made: SimpleNamespace) -> None:
    found = verdicts(made.findings(arms=made.radar_arms(seeds=(1,)), scale="paper", store=REAL))
    assert found[DEEP][0] == "not testable"
    assert "has one seed, which says nothing about another" in found[DEEP][1]


def test_a_demo_gives_evidence_about_itself_and_no_verdict_on_the_paper(made: SimpleNamespace) -> None:
    found = verdicts(mnist=made.findings(arms=made.digits_arms(), name="links-vs-kernel"))
    for claim in (LINKS, FEW_LINKS):
        assert found[claim][0] == "no verdict on the paper (demo scale)"
        assert found[claim][1].startswith("In these runs the statement is supported. ")
    assert found[BALANCED][:2] == ("not testable", "Not testable: no such sweep")


def test_a_synthetic_store_of_the_papers_scale_gives_no_verdict_either(made: SimpleNamespace) -> None:
    arms = made.radar_arms(seeds=(1, 2))
    found = verdicts(made.findings(arms=arms, scale="paper"))
    assert found[DEEP][0] == "no verdict on the paper (synthetic data)"


def test_an_error_that_tracks_skill_no_better_leaves_the_claim_undecided(real: Findings) -> None:
    """Made so that all four errors fall as hits rise."""
    found = verdicts(real)
    assert found[TRACKING][0] == "undecided"
    assert "B-MSE over MSE: " in found[TRACKING][1]
    assert found[TRACKING][2] == "30 points (18 runs, by setting) of 8 arms"


def test_an_arm_beyond_the_papers_is_told_of_and_decides_nothing(made: SimpleNamespace) -> None:
    arms = made.radar_arms(noise=0.002)
    arms["ConvLSTM"] = {s: {"offline": made.radar_scores(0.80, seed=s, noise=0.002)} for s in (1, 2, 3)}
    verdict, evidence, _ = verdicts(made.findings(arms=arms, scale="paper", store=REAL))[BEST]
    assert verdict == "supported"
    assert "which the paper did not make: TrajGRU - ConvLSTM, offline, B-MSE: +" in evidence
