"""MLflow's own server for one person: a child process on this machine alone, gone when it is left."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from nowcastlab.errors import TrackingError
from nowcastlab.tracking.backend import shown

HOST = "127.0.0.1"  # a default server takes anonymous writes: it is not for others
FIRST_PORT, PORTS = 5000, 40
PATIENCE_S = 120.0  # MLflow takes some seconds to import, on a busy machine many
GRACE_S = 10.0
UP = "Uvicorn running on"
# Whoever is killed with -9 ends nothing any more, but the system closes its end of the keeper's pipe. Then all go.
KEEPER = """
import os, signal, subprocess, sys, threading
threading.Thread(target=lambda: (os.read(0, 1), os.killpg(0, signal.SIGKILL)), daemon=True).start()
sys.exit(subprocess.call(sys.argv[1:], stdin=subprocess.DEVNULL))
"""


def experiment_link(base: str, experiment_id: str) -> str:
    """The page of an experiment's runs, without a user and password. The UI's own start page is for language models."""
    parts = urlsplit(base)
    public = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return f"{public.rstrip('/')}/#/experiments/{experiment_id}/runs"


@contextmanager
def serving(uri: str, *, port: int | None = None) -> Iterator[str]:
    """A server on a tracking store, for as long as the block lasts; gives its address once it answers."""
    port = _checked(port) if port is not None else _free_port()
    base = f"http://{HOST}:{port}"
    command = [sys.executable, "-m", "mlflow", "server", "--host", HOST, "--port", str(port), "--workers", "1"]
    environment = {
        **os.environ,
        "MLFLOW_BACKEND_STORE_URI": uri,  # not as an argument: those can be read by all, and it may hold a password
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(
            [sys.executable, "-c", KEEPER, *command],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is ours to pass on, and its workers are ended with it
        )
        try:
            _wait(server, f"{base}/health", log.fileno())
            yield base
        finally:
            _end(server)
            assert server.stdin is not None
            server.stdin.close()


def _wait(server: subprocess.Popen[bytes], health: str, log: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            if "address already in use" in _said(log):
                raise TrackingError(
                    "Another server took the port while this one was starting. The same command takes the next one."
                )
            raise TrackingError(f"MLflow's server ended at once: {_last_words(log)}")
        # Its own word comes first: another server that took the port a moment earlier would answer as well.
        if UP in _said(log):
            with suppress(urllib.error.URLError, OSError), urllib.request.urlopen(health, timeout=2):
                return
        time.sleep(0.2)
    raise TrackingError(f"MLflow's server did not answer within {PATIENCE_S:.0f} s: {_last_words(log)}")


def _said(log: int) -> str:
    """Read without moving the place where the server goes on writing."""
    return os.pread(log, os.fstat(log).st_size, 0).decode(errors="replace")


def _last_words(log: int) -> str:
    return shown(" / ".join(_said(log).strip().splitlines()[-3:])) or "it said nothing."


def _end(server: subprocess.Popen[bytes]) -> None:
    """The server and every process of its session: asked first, then made to."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(server.pid, how)
        with suppress(subprocess.TimeoutExpired):
            server.wait(GRACE_S)
            break
    deadline = time.monotonic() + GRACE_S
    while _lives(server.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    if _lives(server.pid):
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _checked(port: int) -> int:
    if not _is_free(port):
        raise TrackingError(
            f"Port {port} is taken, perhaps by another `nowcastlab ui`. Give another one with --port, or leave it out "
            "for the first that is free."
        )
    return port


def _free_port() -> int:
    for port in range(FIRST_PORT, FIRST_PORT + PORTS):
        if _is_free(port):
            return port
    raise TrackingError(f"No port from {FIRST_PORT} to {FIRST_PORT + PORTS - 1} is free. Give one with --port.")


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError:
            return False
    return True
