"""Where MLflow keeps its runs, and the way there."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from nowcastlab.errors import TrackingError

LOCAL_DATABASE = Path("work/mlflow.db")
SQLITE = "sqlite:///"


def tracking_uri() -> str:
    """MLFLOW_TRACKING_URI where it is set, else a file of this folder."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"{SQLITE}{LOCAL_DATABASE.resolve()}"


def connect(uri: str | None = None) -> MlflowClient:
    """A client of a tracking store that answers, or a TrackingError that says what to do."""
    uri = uri or tracking_uri()
    # MLflow's own patience is minutes a call; ours is the mirror's, which goes on with the sweep meanwhile.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
    os.environ.setdefault("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
    try:
        if uri.startswith(SQLITE):
            _create_schema(uri)
        client = MlflowClient(tracking_uri=uri)
        client.search_experiments(max_results=1)
    except (MlflowException, OSError) as error:
        raise TrackingError(
            f"No tracking store answers at {uri}: {str(error).splitlines()[0]} "
            "Start that server, or unset MLFLOW_TRACKING_URI to use a local file."
        ) from None
    return client


def artifact_root(uri: str) -> str | None:
    """Beside a local database; a server knows its own."""
    return str(Path(uri.removeprefix(SQLITE)).parent / "mlflow-artifacts") if uri.startswith(SQLITE) else None


def _create_schema(uri: str) -> None:
    """Let one process at a time meet an empty database: of several that migrate it at once all but one fail."""
    path = Path(uri.removeprefix(SQLITE))
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_name(f".{path.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        MlflowClient(tracking_uri=uri).search_experiments(max_results=1)
