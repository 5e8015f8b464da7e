"""What must not stand in one table, found in a real database; and the same bytes from the same runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nowcastlab.errors import ConfigError, ReportError
from nowcastlab.report import collect, find, from_mlflow, render
from nowcastlab.report.build import tables_for
from nowcastlab.tracking import TrackedTrial, connect, read_trials
from nowcastlab.tracking.sweep_record import read_sweep_records


def small(made: SimpleNamespace, **changes: Any) -> str:
    arms = {arm: made.digits_arms(seeds=(1, 2))[arm] for arm in ("Traj-L5", "Traj-L9")}
    return str(made.sweep(**{"arms": arms, "name": "links-vs-kernel", "store": {}, **changes}))


def test_a_trial_that_runs_still_is_named(made: SimpleNamespace) -> None:
    uri = small(made, unfinished=["Traj-L9-s2"])
    with pytest.raises(ReportError, match=r"1 of 4 trials have not finished: Traj-L9 seed 2 \(RUNNING\)"):
        from_mlflow(connect(uri), "links-vs-kernel")


def test_a_trial_that_was_never_begun_is_missed(made: SimpleNamespace) -> None:
    """It has no run: only the sweep's own record tells that it was asked for."""
    uri = small(made, left_out=["Traj-L9-s1", "Traj-L9-s2"])
    with pytest.raises(ReportError, match=r"2 of 4 trials have not finished: Traj-L9 seed 1 \(not begun\), Traj-L9"):
        from_mlflow(connect(uri), "links-vs-kernel")


@pytest.fixture(scope="module")
def trials(digits_uri: str) -> list[TrackedTrial]:
    return read_trials(connect(digits_uri), "links-vs-kernel")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"tags": {"nowcastlab.protocol": "the first 12 windows"}},
            r"of 2 protocols.*test split, all windows: Conv-K3",
        ),
        ({"params": {"data.digits": "sklearn-digits"}}, "of 2 sets of digits.*sklearn-digits: Conv-K3-D2 seed 1"),
        ({"params": {"data.digits": "mnist", "data.preset": "release"}}, "of 2 sets of digits"),
        ({"code": "f" * 40 + "+changed"}, "of 2 versions of the code"),
        ({"scale": "laptop"}, r"of 2 scales.*\. Choose one: --scale \w+ or --scale \w+\."),
        ({"tags": {"nowcastlab.protocol": "test split, all windows", "outcome": "pruned"}}, r"seed 1 \(pruned\)"),
    ],
)
def test_one_run_that_differs_is_refused(trials: list[TrackedTrial], change: dict[str, Any], text: str) -> None:
    first, *others = trials
    odd = TrackedTrial(**{**vars(first), **change})
    with pytest.raises(ReportError, match=text):
        collect([odd, *others])


def test_a_sweep_that_has_not_ended_is_refused_though_every_run_has(
    trials: list[TrackedTrial], digits_uri: str
) -> None:
    (record,) = read_sweep_records(connect(digits_uri), "links-vs-kernel")
    running = type(record)(**{**vars(record), "status": "RUNNING"})
    with pytest.raises(ReportError, match=r"The sweep itself has not finished \(RUNNING\)"):
        collect(trials, running)


def test_the_same_runs_read_in_another_order_give_the_same_bytes(digits_uri: str, trials: list[TrackedTrial]) -> None:
    one, load = from_mlflow(connect(digits_uri), "links-vs-kernel")
    other = collect(trials[::-1], one.record)
    made = [find(collection, load, resamples=200) for collection in (one, other)]
    first, again = ([*tables_for("mnist", found), *tables_for("cost", found)] for found in made)
    for form in ("text", "md", "latex", "csv", "json"):
        assert render(first, form) == render(again, form), form


def test_a_scale_at_which_nothing_ran_is_answered_with_those_at_which_something_did(digits_uri: str) -> None:
    text = "links-vs-kernel has no runs at paper scale; it has demo. Run the sweep with that --scale"
    with pytest.raises(ReportError, match=text):
        from_mlflow(connect(digits_uri), "links-vs-kernel", scale="paper")


def test_a_sweep_of_the_other_kind_is_refused(digits_uri: str) -> None:
    findings = find(*from_mlflow(connect(digits_uri), "links-vs-kernel"))
    with pytest.raises(ConfigError, match="links-vs-kernel was tested on moving digits: --table mnist shows it"):
        tables_for("hko7", findings)
    for name in ("kendall", "rain"):
        with pytest.raises(ReportError, match="Give a radar sweep"):
            tables_for(name, findings)
