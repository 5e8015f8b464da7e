"""`nowcastlab report` as a user runs it, on a real database."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nowcastlab.cli.report import command
from nowcastlab.errors import TrackingError


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A demo of moving digits, three arms."""
    made = _conftest()
    arms = {arm: made.digits_arms(seeds=(1, 2))[arm] for arm in ("Conv-K3-D2", "Traj-L5", "Traj-L9")}
    pairs = [("Traj-L5", "Conv-K3-D2")]
    sweep = made.MadeSweep(arms=arms, name="links-vs-kernel", comparisons=pairs, store={})
    address: str = made.make(tmp_path_factory.mktemp("report"), sweep)
    return address


def _conftest() -> Any:
    """The report's tests know how to make a sweep."""
    path = Path(__file__).parents[1] / "report" / "conftest.py"
    spec = importlib.util.spec_from_file_location("made_sweeps", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["made_sweeps"] = module
    spec.loader.exec_module(module)
    return module


def run(uri: str, *arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, env={"MLFLOW_TRACKING_URI": uri}, catch_exceptions=False)


def test_a_table_and_the_comparisons_its_sweep_named(uri: str) -> None:
    result = run(uri, "--table", "mnist")
    assert result.exit_code == 0
    assert result.output.startswith("MovingMNIST++\n! DEMO SCALE")
    assert "Traj-L5 - Conv-K3-D2 " in result.output


def test_a_sweep_alone_picks_its_own_table(uri: str) -> None:
    assert run(uri, "--sweep", "links-vs-kernel").output == run(uri, "--table", "mnist").output


def test_a_cell_is_explained_down_to_its_runs(uri: str) -> None:
    result = run(uri, "--table", "mnist", "--explain", "Traj-L5", "Test MSE x 100")
    assert result.output.count("  run ") == 2
    assert "n = 2" in result.output


def test_claims_say_which_sweep_is_not_there(uri: str) -> None:
    result = run(uri, "--table", "claims", "--format", "json")
    (section,) = json.loads(result.output)["tables"][0]["sections"]
    verdicts = {row["title"]: row["cells"]["Verdict"] for row in section["rows"]}
    assert len(verdicts) == 7
    few = verdicts["TrajGRU with 5 links beats ConvGRU with a dilated 3x3 kernel"]
    assert few["verdict"] == "no verdict on the paper"
    assert verdicts["TrajGRU is the best"]["verdict"] == "not testable"
    assert "No sweep 'hko7-benchmark'" in json.dumps(section)


@pytest.mark.parametrize("scale", [[], ["--scale", "demo"]])
def test_claims_of_a_misspelt_sweep_are_answered_with_the_sweeps_there_are(uri: str, scale: list[str]) -> None:
    with pytest.raises(TrackingError, match=r"No sweep 'links-vs-kernal'.*The sweeps there are: links-vs-kernel"):
        run(uri, "--table", "claims", "--sweep", "links-vs-kernal", *scale)


def test_claims_of_a_sweep_that_is_there_tell_what_it_has_no_runs_for(uri: str) -> None:
    result = run(uri, "--table", "claims", "--sweep", "links-vs-kernel", "--format", "json")
    assert result.exit_code == 0
    assert "links-vs-kernel has no radar runs." in result.output


def test_claims_can_be_had_as_a_page(uri: str, tmp_path: Path) -> None:
    out = tmp_path / "claims.html"
    assert run(uri, "--table", "claims", "--format", "html", "--out", str(out)).exit_code == 0
    page = out.read_text()
    assert page.startswith("<!doctype html>")
    assert "<dt>TrajGRU with 5 links beats ConvGRU with a dilated 3x3 kernel</dt>" in page
    assert "No sweep &#x27;hko7-benchmark&#x27;" in page


def test_a_file_that_cannot_be_written_is_named(uri: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    out = tmp_path / "taken" / "table.txt"
    with pytest.raises(FileExistsError, match="taken"):  # which every verb tells in a line
        run(uri, "--table", "mnist", "--out", str(out))


def test_power_says_how_many_seeds(uri: str) -> None:
    assert "Traj-L5 - Conv-K3-D2" in run(uri, "--table", "mnist", "--power", "--difference", "5%").output
    paper = run(uri, "--table", "hko7", "--power", "--variance", "paper", "--difference", "135")
    assert "From the paper's deviations over 3 seeds" in paper.output


def test_a_demo_beside_the_paper_gets_no_verdict(uri: str) -> None:
    result = run(uri, "--table", "mnist", "--against", "paper")
    assert "Traj-L5: paper" in result.output
    assert "No verdict: demo scale" in result.output


def test_latex_is_a_document_or_a_fragment(uri: str, tmp_path: Path) -> None:
    out = tmp_path / "table.tex"
    assert run(uri, "--table", "mnist", "--format", "latex", "--out", str(out)).exit_code == 0
    assert out.read_text().startswith(r"\documentclass")
    fragment = run(uri, "--table", "mnist", "--format", "latex", "--fragment").output
    assert fragment.startswith(r"\begin{table}")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--scale", "demo"], "Say which --table"),
        (["--table", "rain", "--against", "paper"], "--against paper goes with --table mnist or hko7"),
        (["--scores", "A=x.npz", "--scale", "demo"], "--scores stands for itself"),
        (["--table", "claims", "--scores", "A=x.npz", "--sweep", "mine"], "--scores stands for itself"),
        (["--table", "mnist", "--margin", "5"], "--margin goes with --against paper"),
        (["--table", "mnist", "--difference", "5%"], "--difference goes with --power"),
        (["--table", "mnist", "--power", "--against", "paper"], "--power goes with no --against"),
        (["--table", "mnist", "--fragment"], "--fragment goes with --format latex"),
        (["--table", "mnist", "--variance", "paper"], "--variance goes with --power"),
        (["--table", "claims", "--power"], "--power goes with --table mnist or hko7"),
        (["--power", "--variance", "paper", "--sweep", "mine"], "--variance paper goes with no runs"),
        (["--power", "--variance", "paper", "--format", "html"], "--variance paper goes with another --format"),
        (["--table", "mnist", "--explain", "A", "B", "--format", "json"], "--explain goes with --format text"),
        (["--table", "mnist", "--explain", "A", "B", "--format", "html"], "--explain goes with --format text"),
    ],
)
def test_what_cannot_work_is_said(uri: str, arguments: list[str], text: str) -> None:
    result = run(uri, *arguments)
    assert result.exit_code == 2
    assert text in result.output


def test_a_sweep_that_is_not_there_is_answered_with_those_that_are(uri: str) -> None:
    with pytest.raises(TrackingError, match=r"No sweep 'hko7-benchmark'.*The sweeps there are: links-vs-kernel"):
        run(uri, "--table", "hko7")


@pytest.mark.parametrize("table", ["mnist", "claims"])
def test_without_a_database_it_says_what_to_run_and_makes_none(tmp_path: Path, table: str) -> None:
    with pytest.raises(TrackingError, match=r"No runs yet: .* Run a sweep first"):
        run(f"sqlite:///{tmp_path}/mlflow.db", "--table", table)
    assert list(tmp_path.iterdir()) == []


def test_help_ends_with_examples() -> None:
    text = CliRunner().invoke(command, ["--help"]).output
    assert "nowcastlab report --table hko7 --scale paper --against paper" in text
