"""`nowcastlab ui`, started and ended for real."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from nowcastlab.cli.ui import _pages, command
from nowcastlab.errors import TrackingError
from nowcastlab.tracking import Mirror, connect
from nowcastlab.tracking.server import serving


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of one sweep without trials."""
    uri = f"sqlite:///{tmp_path_factory.mktemp('ui')}/mlflow.db"
    Mirror(connect(uri), "links-vs-kernel").open_sweep(key="k", name="n", params={}, tags={})
    return uri


def start(uri: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from nowcastlab.cli import main; main()", "ui"],
        env={**os.environ, "MLFLOW_TRACKING_URI": uri},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def processes_of(session: int) -> list[int]:
    """Every living process of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


def sessions_of(process: subprocess.Popen[str]) -> list[int]:
    """Those that its children have made for themselves."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children]


def test_it_serves_the_sweep_on_loopback_and_leaves_nothing_behind(database: str) -> None:
    process = start(database)
    assert process.stdout is not None
    line = process.stdout.readline()
    try:
        found = re.fullmatch(r"links-vs-kernel  (http://127\.0\.0\.1:\d+)/#/experiments/(\d+)/runs\n", line)
        assert found, line + (process.stderr.read() if process.poll() is not None and process.stderr else "")
        address, experiment = found.groups()
        with urllib.request.urlopen(f"{address}/api/2.0/mlflow/experiments/get?experiment_id={experiment}") as answer:
            assert json.load(answer)["experiment"]["name"] == "links-vs-kernel"
        sessions = sessions_of(process)
        assert any(processes_of(session) for session in sessions)
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert [pid for session in sessions for pid in processes_of(session)] == []


def test_killed_it_leaves_nothing_behind_either(database: str) -> None:
    process = start(database)
    assert process.stdout is not None
    assert "links-vs-kernel" in process.stdout.readline()
    sessions = sessions_of(process)
    assert any(processes_of(session) for session in sessions)
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 60
    while left := [pid for session in sessions for pid in processes_of(session)]:
        assert time.monotonic() < deadline, f"{left} live on"
        time.sleep(0.1)


def test_the_sweep_that_ran_last_comes_first_unless_another_is_asked_for(tmp_path: Path) -> None:
    client = connect(f"sqlite:///{tmp_path}/mlflow.db")
    for name in ("older", "newer"):
        Mirror(client, name).open_sweep(key="k", name="n", params={}, tags={})
    assert list(_pages(client, None)) == ["newer", "older"]
    again = client.get_experiment_by_name("older")
    assert again is not None
    client.create_run(again.experiment_id)
    assert list(_pages(client, None)) == ["older", "newer"]
    assert list(_pages(client, "newer")) == ["newer", "older"]


def test_a_port_that_is_taken_is_named(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", database)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(TrackingError, match=f"Port {port} is taken"):
            command.main(["--port", str(port)], standalone_mode=False)


def test_a_server_that_took_the_port_meanwhile_is_not_mistaken_for_ours(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers as well as ours would, while ours is still starting."""

    def answer(request: SimpleHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()

    monkeypatch.setattr("nowcastlab.tracking.server._is_free", lambda port: True)
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as other:
        monkeypatch.setattr(SimpleHTTPRequestHandler, "do_GET", answer)
        threading.Thread(target=other.serve_forever, daemon=True).start()
        try:
            with (
                pytest.raises(TrackingError, match="Another server took the port while this one was starting"),
                serving(database, port=other.server_port),
            ):
                pass
        finally:
            other.shutdown()


def test_without_a_database_it_says_what_to_run_and_makes_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        TrackingError, match=r"No runs yet: .* Run a sweep first, as `python sweeps/links_vs_kernel.py`"
    ):
        command.main([], standalone_mode=False)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_sweep_is_answered_with_the_known_ones(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", database)
    with pytest.raises(TrackingError, match=r"No sweep 'nothing' there. The sweeps are: links-vs-kernel\."):
        command.main(["--sweep", "nothing"], standalone_mode=False)
