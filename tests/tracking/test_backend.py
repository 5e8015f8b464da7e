"""The way to a tracking store: quick to say where there is none, and safe for many at once."""

from __future__ import annotations

import multiprocessing
import sqlite3
from pathlib import Path

import pytest
from mlflow import MlflowClient

from nowcastlab.errors import TrackingError
from nowcastlab.tracking import Mirror, TrialRecord, connect
from nowcastlab.tracking.backend import answering, reason, shown

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["nowcastlab.tracking"])  # imports take longer than all the rest


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        (
            "http://127.0.0.1:9",
            "No tracking store answers at http://127.0.0.1:9: Connection refused. Start that server, or unset MLFLOW",
        ),
        (
            "postgresql://127.0.0.1:9/runs",
            "No tracking store answers at postgresql://127.0.0.1:9/runs: Connection refused",
        ),
        (
            "ftp://127.0.0.1",
            "The tracking address 'ftp://127.0.0.1' is of no kind .*Set MLFLOW_TRACKING_URI to a server",
        ),
        ("http://", "is of no kind that MLflow keeps runs at"),
        ("work/mlflow.db", r"'work/mlflow.db' is of no kind .*a file, as sqlite:///work/mlflow.db"),
        ("http://user:secret@127.0.0.1:9", r"No tracking store answers at http://user:\*\*\*@127.0.0.1:9"),
    ],
)
def test_where_no_store_can_be_it_says_so_and_what_to_do(uri: str, text: str) -> None:
    with pytest.raises(TrackingError, match=text) as caught:
        connect(uri)
    assert "secret" not in str(caught.value)


def test_an_error_without_words_is_still_told() -> None:
    with (
        pytest.raises(TrackingError, match=r"answers at http://there: it does not say why\. Start"),
        answering("http://there"),
    ):
        raise OSError


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("http://ana:s3cret@there:5000/x", "http://ana:***@there:5000/x"),
        ("API request to http://ana:s3cret@there/api failed (http://ana:s3cret@there)", None),
        ("postgresql+psycopg2://ana:s3@cret@there/runs", "postgresql+psycopg2://ana:***@there/runs"),
        ("postgresql://there/runs?user=ana&password=s3cret&sslmode=require", None),
        ("http://127.0.0.1:5000/a@b", "http://127.0.0.1:5000/a@b"),
        ("sqlite:////work/mlflow.db", "sqlite:////work/mlflow.db"),
    ],
)
def test_no_address_is_shown_with_its_password(text: str, told: str | None) -> None:
    assert "cret" not in shown(text)
    assert told is None or shown(text) == told


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(28, "No space left on device", "/x"), "No space left on device"),
        (ValueError("(sqlite3.OperationalError) database is locked\n[SQL: INSERT]"), "database is locked"),
        (
            ValueError("API request to http://ana:s3cret@there failed.\nmore"),
            "API request to http://ana:***@there failed",
        ),
        (ValueError(), "it does not say why"),
    ],
)
def test_an_error_comes_down_to_a_line(error: Exception, told: str) -> None:
    assert reason(error) == told


def test_a_database_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TrackingError, match=r"file/runs.db cannot be written: (Not a directory|File exists)"):
        connect(f"sqlite:///{tmp_path}/file/runs.db")
    (tmp_path / "notes.txt").write_text("These are my notes, and no database at all. " * 20)
    with pytest.raises(TrackingError, match=r"notes.txt cannot be written: file is not a database"):
        connect(f"sqlite:///{tmp_path}/notes.txt")


def test_a_database_held_by_a_writer_is_waited_for(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/runs.db"
    connect(uri)
    writer = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    waiting = PROCESSES.Process(target=_connect, args=(uri,))
    waiting.start()
    waiting.join(1)
    writer.execute("ROLLBACK")
    writer.close()
    waiting.join(100)
    assert waiting.exitcode == 0


def _connect(uri: str) -> None:
    connect(uri)


def _begin(uri: str, number: int) -> None:
    """What a sweep's driver does first and last."""
    mirror = Mirror(connect(uri), "shared")
    mirror.open_sweep(key=f"sweep-{number}", name=f"sweep {number}", params={"n": number}, tags={})
    history = [{"step": step, "train/loss": step / 10} for step in range(1, 21)]
    for status in ("RUNNING", "FINISHED"):
        mirror.sync(
            TrialRecord(key=f"trial-{number}", name="a", params={"n": number}, tags={}, history=history, status=status)
        )
    mirror.close_sweep(status="FINISHED")


def test_eight_drivers_that_meet_an_empty_database_at_once_all_succeed(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/runs.db"
    drivers = [PROCESSES.Process(target=_begin, args=(uri, number)) for number in range(8)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join(300)
    assert [driver.exitcode for driver in drivers] == [0] * 8
    client = MlflowClient(uri)
    (experiment,) = [e for e in client.search_experiments() if e.name == "shared"]
    runs = client.search_runs([experiment.experiment_id])
    assert sorted(run.data.tags["nowcastlab.key"] for run in runs) == sorted(
        f"{what}-{number}" for what in ("sweep", "trial") for number in range(8)
    )
    assert {run.info.status for run in runs} == {"FINISHED"}
    for run in runs:
        if run.data.tags["nowcastlab.kind"] == "trial":
            steps = [value.step for value in client.get_metric_history(run.info.run_id, "train/loss")]
            assert steps == list(range(1, 21))
