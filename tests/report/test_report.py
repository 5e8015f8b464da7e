"""Tables from runs: what they refuse, what they print, and that every number leads back to its runs."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from nowcastlab.errors import ReportError
from nowcastlab.report import FORMATS, TABLES, collect
from nowcastlab.tracking import TrackedTrial


def trial(arm: str, seed: int, mse: float = 0.01, **changes: Any) -> TrackedTrial:
    values: dict[str, Any] = {
        "run_id": f"run-{arm}-{seed}",
        "sweep": "links-vs-kernel",
        "arm": arm,
        "seed": seed,
        "scale": "demo",
        "status": "FINISHED",
        "data_digest": "d" * 64,
        "code": "c" * 40,
        "params": {"parameters": "41857"},
        "metrics": {"test/mse": mse},
        "tags": {},
    }
    return TrackedTrial(**{**values, **changes})


PAIR = [
    trial("Traj-L5", 1, 0.010),
    trial("Traj-L5", 2, 0.014),
    trial("Conv-K3-D2", 1, 0.02),
    trial("Conv-K3-D2", 2, 0.02),
]


@pytest.mark.parametrize(
    ("extra", "text"),
    [
        (trial("Traj-L9", 1, scale="paper"), "of 2 scales, and one table must not mix them"),
        (trial("Traj-L9", 1, data_digest="e" * 64), "of 2 data sets"),
        (trial("Traj-L9", 1, code="f" * 40), "of 2 versions of the code"),
        (trial("Traj-L5", 2, 0.5), r"Traj-L5 has a seed twice \(\[1, 2, 2\]\)"),
        (trial("Traj-L9", 1, status="RUNNING"), r"1 of 5 trials have not finished: Traj-L9 seed 1 \(RUNNING\)"),
    ],
)
def test_what_must_not_stand_in_one_table_is_refused_with_the_list(extra: TrackedTrial, text: str) -> None:
    with pytest.raises(ReportError, match=text):
        collect([*PAIR, extra])


def test_no_runs_say_what_to_run() -> None:
    with pytest.raises(ReportError, match=r"Run a sweep first, as `python sweeps/links_vs_kernel.py`"):
        collect([])


def test_a_score_that_some_seeds_lack_is_not_averaged_over_the_rest() -> None:
    collection = collect([trial("A", 1), trial("A", 2, metrics={})])
    with pytest.raises(ReportError, match="A has no test/mse for seed 2"):
        collection.cell("A", "test/mse")


def test_mean_and_standard_deviation_are_over_seeds() -> None:
    cell = collect(PAIR).cell("Traj-L5", "test/mse")
    assert cell is not None
    assert cell.mean == pytest.approx(0.012)
    assert cell.std == pytest.approx(0.002 * 2**0.5)  # deviations of .002 each, n - 1 = 1
    assert (cell.seeds, cell.run_ids) == ((1, 2), ("run-Traj-L5-1", "run-Traj-L5-2"))


def test_one_seed_has_no_standard_deviation() -> None:
    cell = collect([trial("A", 1)]).cell("A", "test/mse")
    assert cell is not None
    assert cell.std is None
    assert "(" not in FORMATS["text"](TABLES["mnist"](collect([trial("A", 1)]))).splitlines()[4]


def test_text_marks_the_best_and_says_the_scale() -> None:
    text = FORMATS["text"](TABLES["mnist"](collect(PAIR)))
    assert "Traj-L5          41,857  1.200 (0.283)*" in text
    assert "Conv-K3-D2       41,857  2.000 (0.000)+" in text
    assert "! DEMO SCALE: small frames" in text


def test_rows_come_in_the_papers_order() -> None:
    (section,) = TABLES["mnist"](collect([*PAIR, trial("Mine", 1), trial("Mine", 2)])).sections
    assert [row.title for row in section.rows] == ["Conv-K3-D2", "Traj-L5", "Mine"]


def test_every_cell_of_csv_and_json_leads_to_its_runs() -> None:
    table = TABLES["mnist"](collect(PAIR))
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](table))))
    assert [(row["row"], row["column"], row["n"], row["runs"]) for row in rows] == [
        ("Conv-K3-D2", "#Parameters", "", "run-Conv-K3-D2-1 run-Conv-K3-D2-2"),
        ("Conv-K3-D2", "Test MSE x 100", "2", "run-Conv-K3-D2-1 run-Conv-K3-D2-2"),
        ("Traj-L5", "#Parameters", "", "run-Traj-L5-1 run-Traj-L5-2"),
        ("Traj-L5", "Test MSE x 100", "2", "run-Traj-L5-1 run-Traj-L5-2"),
    ]
    assert rows[0]["mean"] == "41857.0"
    cells = json.loads(FORMATS["json"](table))["sections"][0]["rows"][1]["cells"]["Test MSE x 100"]
    assert cells["runs"] == ["run-Traj-L5-1", "run-Traj-L5-2"]


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_the_same_runs_give_the_same_bytes(form: str) -> None:
    first, again = (FORMATS[form](TABLES["mnist"](collect(runs))) for runs in (PAIR, PAIR[::-1]))
    assert first == again


def test_the_radar_table_has_both_settings_and_no_data_where_there_is_none() -> None:
    scores = {"offline/bmse": 100.0, "offline/bmae": 200.0, "offline/csi/r0.5": 0.5, "online/bmse": 90.0}
    table = TABLES["hko7"](collect([trial("ConvGRU", 1, metrics=scores), trial("Last-Frame", 0, metrics=scores)]))
    assert [section.title for section in table.sections] == ["Offline setting", "Online setting"]
    assert [row.title for row in table.sections[0].rows] == ["Last-Frame", "ConvGRU"]
    assert "no data" in FORMATS["text"](table)
