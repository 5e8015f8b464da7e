"""Where MLflow keeps its runs, and the way there."""

from __future__ import annotations

import fcntl
import logging
import os
import re
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from nowcastlab.errors import TrackingError

LOCAL_DATABASE = Path("work/mlflow.db")
SQLITE = "sqlite:///"
SERVERS = ("http", "https")
DATABASES = {"postgresql": 5432, "mysql": 3306, "mssql": 1433}  # with the port each listens on
KNOCK_S = 5.0


def tracking_uri() -> str:
    """MLFLOW_TRACKING_URI where it is set, else a file of this folder."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"{SQLITE}{LOCAL_DATABASE.resolve()}"


def connect(uri: str | None = None) -> MlflowClient:
    """A client of a tracking store that answers, or, within seconds, a TrackingError that says what to do."""
    uri = uri or tracking_uri()
    # A call that MLflow repeats by itself may make a run twice, when only the answer was lost; and it would go on for
    # minutes. The patience is ours: the sweep's clerk looks at what is there before it tries again.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
    os.environ.setdefault("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
    # What goes wrong is raised here and told in a line; MLflow would print its traceback as well, and every migration.
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    _knock(uri)
    with answering(uri):
        if uri.startswith(SQLITE):
            _create_schema(uri)
        client = MlflowClient(tracking_uri=uri)
        client.search_experiments(max_results=1)
    return client


def connect_existing(uri: str | None = None) -> MlflowClient:
    """`connect` for those who only read: a local database that is not there is not made, but asked for."""
    uri = uri or tracking_uri()
    if uri.startswith(SQLITE) and not database_path(uri).is_file():
        raise TrackingError(
            f"No runs yet: there is no {database_path(uri)}. Run a sweep first, as `python sweeps/links_vs_kernel.py`, "
            "or run this where you ran one, or set MLFLOW_TRACKING_URI."
        )
    return connect(uri)


@contextmanager
def answering(uri: str) -> Iterator[None]:
    """What MLflow raises when a store does not answer, as an error that a person can act on."""
    try:
        yield
    except (MlflowException, OSError, ImportError) as error:
        raise TrackingError(_no_answer(uri, error)) from None


def artifact_root(uri: str) -> str | None:
    """Beside a local database; a server knows its own."""
    return str(database_path(uri).parent / "mlflow-artifacts") if uri.startswith(SQLITE) else None


def database_path(uri: str) -> Path:
    """The file behind an address of sqlite's."""
    return Path(uri.removeprefix(SQLITE).partition("?")[0])


def _knock(uri: str) -> None:
    """See in a moment whether anybody can be there: MLflow would go on trying a database for more than an hour."""
    parts = urlsplit(uri)
    kind = parts.scheme.partition("+")[0]
    if uri.startswith(SQLITE):
        _knock_at_file(uri)
    elif kind in DATABASES:
        try:
            socket.create_connection((parts.hostname or "", parts.port or DATABASES[kind]), timeout=KNOCK_S).close()
        except (OSError, ValueError) as error:
            raise TrackingError(_no_answer(uri, error)) from None
    elif kind not in (*SERVERS, "databricks") or (kind in SERVERS and not parts.hostname):
        raise TrackingError(
            f"The tracking address {shown(uri)!r} is of no kind that MLflow keeps runs at. Set MLFLOW_TRACKING_URI to "
            f"a server, as http://127.0.0.1:5000, or a file, as {SQLITE}work/mlflow.db, or unset it to use that file."
        )


def _knock_at_file(uri: str) -> None:
    path = database_path(uri)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=60)  # others may be writing
        try:
            connection.execute("BEGIN IMMEDIATE").connection.rollback()
        finally:
            connection.close()
    except (OSError, sqlite3.Error) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise TrackingError(
            f"The tracking database {path} cannot be written: {why}. Make room for it or move it away, or set "
            f"MLFLOW_TRACKING_URI to another file, as {SQLITE}work/mlflow.db, or a server."
        ) from None


def shown(text: str) -> str:
    """An address, or words with addresses in them, as they may be printed: without passwords."""
    return re.sub(r"(?i)\b(password=)[^&\s]+", r"\1***", re.sub(r"(://[^\s/:@]*:)[^\s/]+@", r"\1***@", text))


def reason(error: BaseException) -> str:
    """What an error comes down to, in a line that may be printed."""
    text = str(error)
    # under a client's layers of words the system's; of a database's error its own, which stand among SQLAlchemy's
    for pattern in (r"\[Errno -?\d+\] ([\w ]+)", r"\(\w+\.\w*Error\) (.+)"):
        if own_words := re.search(pattern, text):
            return shown(own_words[1])
    return shown(next(iter(text.splitlines()), "it does not say why")).rstrip(".")


def _no_answer(uri: str, error: BaseException) -> str:
    return (
        f"No tracking store answers at {shown(uri)}: {reason(error)}. "
        "Start that server, or unset MLFLOW_TRACKING_URI to use a local file."
    )


def _create_schema(uri: str) -> None:
    """Let one process at a time meet an empty database: of several that migrate it at once all but one fail."""
    path = database_path(uri)
    with open(path.with_name(f".{path.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        MlflowClient(tracking_uri=uri).search_experiments(max_results=1)
