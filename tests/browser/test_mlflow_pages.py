"""MLflow's own pages on the runs of a real sweep: runs, grouping, curves and pictures are really there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nowcastlab.tracking import connect, read_trials
from nowcastlab.tracking.server import experiment_link

NewPage = Callable[[], Any]


@pytest.fixture(scope="module")
def run_ids(digits_run: str) -> dict[str, str]:
    return {f"{trial.arm} s{trial.seed}": trial.run_id for trial in read_trials(connect(digits_run), "looked-at")}


@pytest.fixture(scope="module")
def experiment(digits_run: str) -> str:
    found = connect(digits_run).get_experiment_by_name("looked-at")
    assert found is not None
    return found.experiment_id


def has(text: str) -> str:
    return f"document.body.innerText.includes({text!r})"


@pytest.fixture
def runs_page(new_page: NewPage, ui: str, experiment: str) -> Any:
    page = new_page().open(experiment_link(ui, experiment), width=1600, height=1200)
    page.until(has("looked-at demo"))
    return page


def test_the_sweeps_page_lists_every_trial_below_the_sweep(runs_page: Any, run_ids: dict[str, str]) -> None:
    runs_page.click("document.querySelector(\"[col-id='attributes.`Run Name`'] button\")")  # unfolds the sweep
    for name in run_ids:
        runs_page.until(has(name))


def test_trials_can_be_grouped_by_arm(runs_page: Any) -> None:
    runs_page.click("[...document.querySelectorAll('button')].find(b => b.innerText.trim() === 'Group by')")
    runs_page.click(
        "[...document.querySelectorAll('[role^=menuitem], [role=option]')].find(e => e.innerText.trim() === 'arm')"
    )
    for arm in ("conv-k3-d1", "traj-l2"):
        runs_page.until(has(f"Group: {arm}"))


def test_a_runs_curves_are_drawn(new_page: NewPage, ui: str, experiment: str, run_ids: dict[str, str]) -> None:
    link = f"{ui}/#/experiments/{experiment}/runs/{run_ids['traj-l2 s1']}/model-metrics"
    page = new_page().open(link, width=1600, height=2400)
    page.until(has("test/by_lead"))
    page.until("document.querySelectorAll('.js-plotly-plot .scatterlayer .trace').length >= 2")


def test_a_runs_picture_is_shown(new_page: NewPage, ui: str, experiment: str, run_ids: dict[str, str]) -> None:
    link = f"{ui}/#/experiments/{experiment}/runs/{run_ids['traj-l2 s1']}/artifacts/pictures/forecast.png"
    page = new_page().open(link, width=1600, height=1200)
    page.until("[...document.images].some(i => i.src.startsWith('blob:') && i.naturalWidth > 300)")
