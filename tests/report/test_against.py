"""Beside the paper: what counts as reproduced, and which runs may be judged at all."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from nowcastlab.config import mnist_config
from nowcastlab.report import Entry, Findings
from nowcastlab.report.against import against_paper
from nowcastlab.report.paper import OFFLINE, published
from nowcastlab.sweep import DIGITS, Arm, Sweep
from nowcastlab.sweep.facts import protocol_of

OFFICIAL = {"sequences": 6053, "episodes": 56, "pixels": 10**9}


def scaled(made: SimpleNamespace, arm: str, factor: float, spread: float) -> Any:
    """A row of the paper with its errors times `factor`, three seeds that deviate by `spread` times the error."""
    row = OFFLINE[arm]
    return {
        seed: {
            "offline": made.printed_scores(
                row.csi, row.hss, row.bmse * (factor + step * spread), row.bmae * (factor + step * spread), **OFFICIAL
            )
        }
        for seed, step in ((1, -1), (2, 0), (3, 1))
    }


@pytest.fixture(scope="module")
def judged(made: SimpleNamespace) -> Findings:
    """Runs of the paper's scale on its own test set."""
    arms = {
        "Last-Frame": {0: {"offline": made.paper_runs("Last-Frame", **OFFICIAL)[0]}},
        "2D-CNN": scaled(made, "2D-CNN", 1.10, 0.001),
        "ConvGRU": scaled(made, "ConvGRU", 0.90, 0.001),
        "TrajGRU": {s: {"offline": run} for s, run in enumerate(made.paper_runs("TrajGRU", **OFFICIAL), 1)},
        "3D-CNN": scaled(made, "3D-CNN", 1.00, 0.05),
        "ConvLSTM": scaled(made, "ConvGRU", 1.00, 0.01),
    }
    return made.findings(arms=arms, scale="paper", store={"synthetic": False, "title": "HKO-7"})


def verdict(found: Findings, arm: str, column: str = "B-MSE", margin: float = 2.0) -> Entry:
    table = against_paper(found, margin_percent=margin)
    titles = [c.title for c in table.columns]
    (row,) = [row for section in table.sections for row in section.rows if row.title == f"{arm}: verdict"]
    cell = row.cells[titles.index(column)]
    assert isinstance(cell, Entry)
    return cell


def test_these_runs_may_be_judged(judged: Findings) -> None:
    assert judged.tested_on == (6053, 56)
    assert judged.standing.marks == ()
    assert judged.standing.no_verdict is None


@pytest.mark.parametrize(
    ("arm", "expected"),
    [
        ("TrajGRU", "reproduced"),  # mean and deviation the paper's own
        ("Last-Frame", "reproduced"),  # no seeds, the number itself
        ("2D-CNN", "worse"),  # 10% more error
        ("ConvGRU", "better"),  # 10% less
    ],
)
def test_equal_is_reproduced_and_different_is_better_or_worse(judged: Findings, arm: str, expected: str) -> None:
    assert verdict(judged, arm).facts["verdict"] == expected


def test_not_significantly_different_is_not_reproduced(judged: Findings) -> None:
    """The same mean, but seeds that scatter by 5%: nothing is shown, and how many seeds would show it is said."""
    cell = verdict(judged, "3D-CNN")
    assert cell.facts["p_difference"] > 0.9
    assert cell.facts["verdict"] == "undecided"
    assert cell.text == f"undecided ({cell.facts['seeds_to_decide']})"
    assert cell.facts["seeds_to_decide"] > 3


def test_a_tighter_margin_leaves_more_undecided(judged: Findings) -> None:
    assert verdict(judged, "TrajGRU", margin=0.1).facts["verdict"] == "undecided"


def test_the_margin_is_printed(judged: Findings) -> None:
    notes = " ".join(against_paper(judged, margin_percent=3.0).notes)
    assert "Margin: 3% of the paper's number." in notes
    assert "Verdicts: " in notes


def test_an_arm_the_paper_does_not_have_is_left_out(judged: Findings) -> None:
    titles = [row.title for section in against_paper(judged).sections for row in section.rows]
    assert "TrajGRU: paper" in titles
    assert not any("ConvLSTM" in title for title in titles)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"scale": "demo"}, "demo scale"),
        ({"store": {"synthetic": True, "title": "made up"}}, "synthetic data"),
        ({"store": {}}, "the sweep did not record whether its store is synthetic"),
        ({}, "tested on 8 sequences in 4 episodes, not on the paper's 6053 in 56 episodes"),
    ],
)
def test_other_runs_get_no_verdict(made: SimpleNamespace, changes: dict[str, Any], why: str) -> None:
    options = {"sequences": 8, "episodes": 4} if not changes else OFFICIAL
    arms = {"Last-Frame": {0: {"offline": made.paper_runs("Last-Frame", **options)[0]}}}
    sweep = {"arms": arms, "scale": "paper", "store": {"synthetic": False, "title": "HKO-7"}, **changes}
    found = made.findings(**sweep)
    assert found.standing.no_verdict == why
    assert verdict(found, "Last-Frame").text == "no verdict"


def test_other_handwriting_gets_no_verdict(made: SimpleNamespace) -> None:
    arms = {"Traj-L5": made.digits_arms(seeds=(1, 2))["Traj-L5"]}
    found = made.findings(arms=arms, name="links-vs-kernel", scale="paper", store={}, digits="sklearn-digits")
    assert found.standing.no_claims == "the digits are sklearn-digits, not MNIST"
    assert "60 sequences generated here, not on the paper's 10000" in (found.standing.no_verdict or "")


def digits_of_the_papers_size(made: SimpleNamespace, official_test: str | None) -> Findings:
    """Conv-K3-D2 at the paper's scale, tested on 10,000 sequences, with the protocol that a sweep gives such runs."""
    arm = Arm(name="Conv-K3-D2", config=mnist_config("conv-k3-d2", digits="sklearn-digits"), settings=(DIGITS,))
    (trial,) = Sweep(name="d", question="?", scale="demo", arms=[arm], seeds=(1,)).trials
    protocol = protocol_of(replace(trial, official_test=official_test))
    errors = made.digits_errors
    runs = {seed: {"digits": errors(0.01495, seed=seed, sequences=10_000)} for seed in (1, 2, 3)}
    found: Findings = made.findings(
        arms={"Conv-K3-D2": runs}, name="links-vs-kernel", scale="paper", store={}, protocol=protocol
    )
    return found


def test_as_many_digits_that_were_generated_are_not_the_papers(made: SimpleNamespace) -> None:
    found = digits_of_the_papers_size(made, official_test=None)
    assert found.standing.no_claims is None
    assert found.standing.no_verdict == (
        "tested on 10000 sequences generated here, not on the paper's 10000 (a sweep takes the authors' file of them "
        "as official_test=)"
    )
    assert verdict(found, "Conv-K3-D2", "Test MSE x 100").text == "no verdict"
    assert "same" not in " ".join(against_paper(found).notes)


def test_digits_of_the_official_file_are_judged(made: SimpleNamespace) -> None:
    found = digits_of_the_papers_size(made, official_test="movingmnist_10000_nodistr.npz")
    assert found.standing.no_verdict is None
    assert verdict(found, "Conv-K3-D2", "Test MSE x 100").facts["verdict"] == "undecided"
    table = against_paper(found)
    assert "Only seeds count here, ours and the paper's three, both tested on the same sequences." in table.notes
    assert [row.cells[0].text for row in table.sections[0].rows if isinstance(row.cells[0], Entry)] == [
        "10,000",  # made with 1000 weights a letter
        "2.84M",
        "",
    ]


def test_it_is_said_how_many_of_so_many_cells_chance_would_call(judged: Findings) -> None:
    """Five arms of the paper's, twelve cells each, at 5%: 60 x 0.05 = 3."""
    (note,) = [note for note in against_paper(judged).notes if note.startswith("Better and worse are tested cell by")]
    assert "up to 3.0 of 60 cells would still be called so." in note
    assert "after Holm's correction over all 60." in note
    assert (
        "Only seeds count here, ours and the paper's three, both tested on the same days."
        in against_paper(judged).notes
    )


def test_the_papers_numbers_are_found_by_the_metrics_name() -> None:
    number = published("TrajGRU", "online/hss/r30")
    assert number is not None
    assert (number.value, number.std, number.seeds, number.digit) == (0.3111, 0.0003, 3, 1e-4)
    single = published("ConvGRU-nobal", "offline/bmse")
    assert single is not None
    assert (single.value, single.std, single.seeds) == (9087, None, 1)  # trained once, deviation not printed
    assert published("ConvLSTM", "offline/bmse") is None
    assert published("Last-Frame", "online/bmse") is None
