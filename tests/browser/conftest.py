"""A sweep that was really run, its MLflow pages really served, and a browser to look at them."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

TESTS = Path(__file__).parent.parent


def load(name: str) -> Any:
    """A module of the tests, by its path: they are no package."""
    key = f"browser_{name.replace('/', '_')}"
    if key not in sys.modules:
        spec = importlib.util.spec_from_file_location(key, TESTS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[key] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[key])
    return sys.modules[key]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    chromium = load("browser/chromium")
    program = chromium.find_chromium()
    if program is None:
        pytest.skip("no Chromium here: `apt-get install chromium` brings one")
    running = chromium.Browser(program, tmp_path_factory.mktemp("chromium") / "profile")
    yield running
    running.close()


@pytest.fixture
def new_page(browser: Any) -> Iterator[Callable[[], Any]]:
    pages: list[Any] = []

    def make() -> Any:
        pages.append(browser.new_page())
        return pages[-1]

    yield make
    for page in pages:
        page.close()


@pytest.fixture(scope="session")
def digits_run(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two small networks, two seeds each: trained, tested and copied to MLflow as a sweep's driver does it, without
    Ray. The address of the database."""
    from nowcastlab.config import mnist_config
    from nowcastlab.sweep import DIGITS, Arm, Sweep
    from nowcastlab.sweep.record import record_of
    from nowcastlab.sweep.trial import run_trial
    from nowcastlab.tracking import Mirror, connect

    folder = tmp_path_factory.mktemp("digits-run")
    settings: dict[str, Any] = {"data.size": 16, "data.valid_sequences": 4, "data.count": 1}
    settings |= {"max_steps": 6, "validate_every": 3, "report_every": 1, "checkpoint_every": 6}
    arms = [
        Arm(name=name, config=mnist_config(name, digits="sklearn-digits", threads=1, **settings), settings=(DIGITS,))
        for name in ("conv-k3-d1", "traj-l2")
    ]
    sweep = Sweep(
        name="looked-at",
        question="Is what is looked at there?",
        scale="demo",
        arms=arms,
        seeds=(1, 2),
        comparisons=[("traj-l2", "conv-k3-d1")],
        test_sequences=8,
    )
    uri = f"sqlite:///{folder}/mlflow.db"
    mirror = Mirror(connect(uri), sweep.name)
    record = folder / "sweep.json"
    record.write_text(json.dumps(sweep.to_plain()))
    tags = {"sweep": "looked-at", "scale": "demo"}
    mirror.open_sweep(key="looked-at/demo", name="looked-at demo", params={}, tags=tags, artifacts=[record])
    for trial in sweep.trials:
        result = run_trial(trial, folder / trial.key)
        assert result["status"] == "finished", result
        mirror.sync(record_of(trial, folder / trial.key, code_version="c" * 40, unfinished="RUNNING"))
    mirror.close_sweep(status="FINISHED")
    return uri


@pytest.fixture(scope="session")
def ui(digits_run: str) -> Iterator[str]:
    """MLflow's own server on that database."""
    from nowcastlab.tracking.server import serving

    with serving(digits_run) as base:
        yield base


@pytest.fixture(scope="session")
def digits_page(digits_run: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the report that the command writes of the real sweep."""
    return written(digits_run, "looked-at", tmp_path_factory.mktemp("report") / "digits.html")


@pytest.fixture(scope="session")
def radar_page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of a benchmark whose scores are made up: the widest tables and the most pictures."""
    made = load("report/conftest")
    folder = tmp_path_factory.mktemp("radar")
    sweep = made.MadeSweep(arms=made.radar_arms(), comparisons=made.RADAR_COMPARISONS)
    return written(made.make(folder, sweep), sweep.name, folder / "radar.html")


def written(uri: str, sweep: str, path: Path) -> str:
    from nowcastlab.cli.report import command

    result = CliRunner().invoke(
        command,
        ["--sweep", sweep, "--format", "html", "--out", str(path)],
        env={"MLFLOW_TRACKING_URI": uri},
        catch_exceptions=False,
    )
    assert result.exit_code == 0, result.output
    return path.as_uri()
