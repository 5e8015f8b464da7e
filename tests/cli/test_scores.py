"""`nowcastlab scores` and `nowcastlab bench scores`, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from nowcastlab.cli import main_group
from nowcastlab.errors import StoreError
from nowcastlab.skill import Scorer, lead_mean, load_scores, per_lead, save_scores


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two sequences of three leads; 30 mm/h is never observed, and the last target of the second is missing."""
    rng = np.random.default_rng(0)
    true = rng.integers(71, 185, (2, 3, 20, 20)).astype(np.uint8)
    predicted = (true / 255 + rng.normal(0, 0.05, true.shape)).astype(np.float32)
    scorer = Scorer(excluded=np.zeros((20, 20), bool), lead_minutes=[6, 12, 18])
    present = np.array([[True, True, True], [True, True, False]])
    scores = scorer.score(predicted, true, present=present, start=[0, 600], episode=[0, 1])
    save_scores(tmp_path / "scores.npz", scores)
    return tmp_path / "scores.npz"


def run(*arguments: str) -> str:
    result = CliRunner().invoke(main_group, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_table_names_what_it_is_made_of(path: Path) -> None:
    text = run("scores", str(path))
    assert "2 sequences in 2 episodes, 3 leads from 6 to 18 minutes; 1 target missing" in text
    for word in ("CSI", "HSS", "POD", "FAR", "B-MSE", "B-MAE", "MSE", "MAE", ">= 0.5", ">= 30"):
        assert word in text
    assert "30 mm/h was never observed: no data." in text
    assert "nan" not in text


def test_json_has_the_documented_keys_and_null_for_no_data(path: Path) -> None:
    output = json.loads(run("scores", str(path), "--json"))
    scores = load_scores(path)
    for name in ("csi", "hss", "pod", "far"):
        assert output[name] == lead_mean(per_lead(scores, name)).tolist()
        assert output[name][4] is None
    for name in ("bmse", "bmae", "mse", "mae"):
        assert output[name] == lead_mean(per_lead(scores, name)).tolist()
    assert (output["sequences"], output["episodes"]) == (2, 2)


def test_per_lead_adds_every_lead(path: Path) -> None:
    output = json.loads(run("scores", str(path), "--json", "--per-lead"))
    assert np.mean(output["per_lead"]["bmse"]) == pytest.approx(output["bmse"])
    assert np.mean([row[0] for row in output["per_lead"]["csi"]]) == pytest.approx(output["csi"][0])
    text = run("scores", str(path), "--per-lead")
    assert "CSI by lead" in text
    assert "Errors by lead" in text


def test_a_file_that_is_not_there_is_a_message(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"gone\.npz: no such file"):
        run("scores", str(tmp_path / "gone.npz"))


def test_the_benchmark_counts_the_same_integers_both_ways() -> None:
    output = json.loads(run("bench", "scores", "--frames", "2", "--size", "48", "--rounds", "1", "--json"))
    assert output["same_integers"]
    assert output["largest_relative_difference_of_errors"] < 1e-12
    assert output["times_faster_than_plain"] > 0
