"""The exit codes that --help names, each provoked for real."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import click
import numpy as np
import pytest

from data_pipeline.__main__ import main_group as pipeline_group
from nowcastlab import errors
from nowcastlab.cli import main_group
from nowcastlab.cli.verbs import EXIT_CODES, run
from nowcastlab.skill import SequenceScores, save_scores
from nowcastlab.units import THRESHOLDS_MMH

ROOT = Path(__file__).parents[2]


def code_of(monkeypatch: pytest.MonkeyPatch, *words: str, group: click.Command = main_group) -> object:
    """What `nowcastlab WORDS` gives back to the shell."""
    monkeypatch.setattr(sys, "argv", ["nowcastlab", *words])
    try:
        run(group)
    except SystemExit as ended:
        return ended.code
    return 0


def test_a_cluster_that_is_away_is_said_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    program = "from nowcastlab import engine\ntry:\n engine.connect()\nexcept Exception as error:\n print(error)"
    environment = {**os.environ, "RAY_ADDRESS": f"127.0.0.1:{port}"}  # closed by now; Ray itself tries for minutes
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert f"Ray does not answer on 127.0.0.1:{port}: nothing listens there." in done.stdout


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_0_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    assert code_of(monkeypatch, "models", "--help") == 0


def test_1_is_what_doctor_ends_with_when_there_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    assert code_of(monkeypatch, "doctor", "--store", "nowhere.zarr") == 1


def test_1_is_what_cluster_check_ends_with_when_there_is_something_to_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    to_fill_in = ROOT / "docs" / "cluster" / "local.yaml"
    assert code_of(monkeypatch, "cluster", "check", str(to_fill_in)) == 1
    assert "`cluster check`" in EXIT_CODES[1]


def test_2_is_an_option_or_a_setting_that_cannot_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(monkeypatch, "train", "--model", "traj-l5", "--scale", "huge") == 2
    assert code_of(monkeypatch, "train", "--model", "no-such-model", "--plan") == 2
    said = capsys.readouterr().err
    assert "error: No model 'no-such-model'" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "words", [("--power", "--variance", "paper", "--difference", "abc"), ("--scores", "TrajGRU"), ("--margin", "2")]
)
def test_2_is_also_what_a_report_was_asked_for_in_vain(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    assert code_of(monkeypatch, "report", "--table", "hko7", *words) == 2


def test_3_is_a_store_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert code_of(monkeypatch, "info", "nowhere.zarr", group=pipeline_group) == 3


@pytest.mark.parametrize(("out", "why"), [("file", "file: File exists"), ("file/run", "file/run: Not a directory")])
def test_3_is_an_output_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, out: str, why: str
) -> None:
    (tmp_path / "file").touch()
    np.savez(tmp_path / "five.npz", pixels=np.zeros((5, 16, 16), np.uint8))
    words = ["predict", "last-frame", "five.npz", "--at", "2015-05-22 04:30", "--out", out]
    assert code_of(monkeypatch, *words) == 3
    assert capsys.readouterr().err == f"error: {why}.\n"


def test_3_is_a_full_disk() -> None:
    script = f"{sys.executable} -m data_pipeline --help > /dev/full"
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (3, "error: No space left on device.\n")


def test_4_is_a_run_that_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert code_of(monkeypatch, "evaluate", "run") == 4


def test_5_is_a_tracking_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{port}")  # closed by now
    assert code_of(monkeypatch, "report", "--table", "mnist") == 5


def test_6_is_runs_that_must_not_stand_in_one_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, first_minute in (("a", 0), ("b", 6)):  # of other sequences
        save_scores(tmp_path / f"{name}.npz", scores(first_minute))
    assert code_of(monkeypatch, "report", "--table", "hko7", "--scores", "A:1=a.npz", "--scores", "B:1=b.npz") == 6


def test_130_is_stopped_with_ctrl_c(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "data_pipeline", "synth", "rain.zarr", "--days", "300", "--size", "60"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while not (tmp_path / "rain.zarr").exists() and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert "Traceback" not in said


def test_a_reader_who_leaves_gets_no_traceback() -> None:
    script = f"{sys.executable} -m data_pipeline --help | true"
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_every_error_has_a_documented_code() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert {kind.exit_code for kind in kinds} <= set(EXIT_CODES)  # type: ignore[attr-defined]


def test_the_page_about_commands_has_the_same_table() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", (ROOT / "docs" / "commands.md").read_text(), re.M)
    assert {int(code): meaning for code, meaning in rows} == EXIT_CODES


def scores(first_minute: int) -> SequenceScores:
    counts, errors_ = np.ones((4, 2, len(THRESHOLDS_MMH)), int), np.ones((4, 2))
    return SequenceScores(
        **dict.fromkeys(("tp", "fn", "fp", "tn"), counts),
        **dict.fromkeys(("mse", "mae", "bmse", "bmae", "gdl"), errors_),
        start=first_minute + 30 * np.arange(4),
        episode=np.zeros(4, int),
        thresholds_mmh=np.array(THRESHOLDS_MMH),
        lead_minutes=np.array([6.0, 12.0]),
    )
