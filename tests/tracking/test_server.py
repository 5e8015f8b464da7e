"""MLflow's own server, started for one person."""

from __future__ import annotations

from pathlib import Path

from mlflow import MlflowClient

from nowcastlab.tracking import connect
from nowcastlab.tracking.server import serving


def command_lines() -> list[str]:
    """Of every process, as anybody on the machine may read them."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_text(errors="replace").replace("\0", " "))
        except OSError:  # it ended
            continue
    return lines


def test_its_store_is_served_and_stands_in_no_command_line(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/pass-word.db"
    connect(uri).create_experiment("mine")
    with serving(uri) as base:
        lines = command_lines()
        assert any("mlflow server" in line for line in lines)
        assert not [line for line in lines if "pass-word.db" in line]
        assert MlflowClient(base).get_experiment_by_name("mine") is not None
