"""A tracking server that is killed in the middle of a sweep, and comes back."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from faults import Driver, folder_of, steps_done, violations
from mlflow import MlflowClient


class Server:
    """A real `mlflow server` on loopback, its runs in sqlite."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self._port)]
        command += ["--backend-store-uri", f"sqlite:///{self._folder}/server.db", "--workers", "1"]
        command += ["--artifacts-destination", str(self._folder / "artifacts")]
        environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        with open(self._folder / "server.log", "ab") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + 200
        while True:
            with suppress(OSError):
                urllib.request.urlopen(f"{self.uri}/health", timeout=5).close()
                return
            assert self._process.poll() is None, (self._folder / "server.log").read_text()[-3000:]
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.1)

    def kill(self) -> None:
        """The server and the workers it started, which are the processes of its session."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    server.start()
    yield server
    server.kill()


def test_a_tracking_server_that_is_away_loses_nothing(
    tmp_path: Path, undisturbed: Path, ray_address: str, server: Server
) -> None:
    root = tmp_path / "sweeps"
    driver = Driver(root, ray_address, uri=server.uri)
    driver.wait_until(lambda: steps_done(root) >= 6)
    server.kill()
    driver.wait_until(lambda: steps_done(root) >= 30)  # the sweep does not wait for it
    server.start()
    driver.wait()
    assert not violations(root, undisturbed, uri=server.uri)
    client = MlflowClient(server.uri)
    experiment = client.get_experiment_by_name("small")
    for run in client.search_runs([experiment.experiment_id], "tags.`nowcastlab.kind` = 'trial'"):
        names = {file.path for file in client.list_artifacts(run.info.run_id)}
        assert {"config.json", "history.jsonl", "scores-digits.npz"} <= names


def test_a_server_away_for_longer_than_the_drivers_patience_is_told_all_by_the_same_command(
    tmp_path: Path, undisturbed: Path, ray_address: str, server: Server
) -> None:
    root = tmp_path / "sweeps"
    driver = Driver(root, ray_address, uri=server.uri, patience_s=1)
    driver.wait_until(lambda: (folder_of(root, "traj-l2-s2") / "history.jsonl").exists())
    server.kill()
    said = driver.wait(5)
    assert said.count("Waiting for the tracking store") == 1
    assert "Nothing is lost" in said

    # before the server is back nothing is begun anew
    said = Driver(tmp_path / "other", ray_address, uri=server.uri).wait(5)
    assert f"No tracking store answers at {server.uri}" in said
    assert not (tmp_path / "other" / "small-demo" / "trials").exists()

    server.start()
    Driver(root, ray_address, uri=server.uri).wait()
    assert not violations(root, undisturbed, uri=server.uri)  # one finished run a trial, each step once
