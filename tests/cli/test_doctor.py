"""`nowcastlab doctor` on this very machine, and on what can be made wrong for it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from nowcastlab.cli import doctor_machine, doctor_software
from nowcastlab.cli.doctor import _guarded, command
from nowcastlab.cli.finding import NOTE, OK, PROBLEM, Finding
from nowcastlab.sweep.capacity import Assumptions


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("RAY_ADDRESS", "MLFLOW_TRACKING_URI", "NOWCASTLAB_MODELS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def busy_port() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_this_machine_is_looked_at_from_end_to_end(tiny_store: Path) -> None:
    result = CliRunner().invoke(command, ["--json", "--store", str(tiny_store)])
    told = json.loads(result.stdout)
    by_name = {finding["what"]: finding for finding in told["findings"]}
    assert {"python", "versions", "cpu", "memory", "disk", "port 8265", "port 5000", "threads", "numba", "ray"} <= set(
        by_name
    )
    assert by_name["numba"]["state"] == OK
    assert "184 frames of 24x24" in by_name["store"]["found"]
    assert told["problems"] == sum(finding["state"] == PROBLEM for finding in told["findings"])
    assert result.exit_code == (1 if told["problems"] else 0)
    assert not (Path.cwd() / "work").exists()  # a look leaves nothing behind


def test_a_problem_ends_in_exit_code_1_and_says_what_to_do() -> None:
    result = CliRunner().invoke(command, ["--store", "nowhere.zarr"])
    assert result.exit_code == 1
    line, todo = result.stdout.splitlines()[-4:-2]
    assert line.startswith("problem store         No store at nowhere.zarr")
    assert "-> What is wrong with which day: python -m data_pipeline check nowhere.zarr" in todo


def test_a_damaged_record_is_a_problem(tiny_store: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.zarr"
    shutil.copytree(tiny_store, copy)
    record = copy / "pixels" / "committed.json"
    record.write_bytes(record.read_bytes().replace(b"2015-06-03", b"2015-06-04"))
    (finding,) = doctor_software.store(str(copy))
    assert finding.state == PROBLEM


def test_a_look_that_fails_is_a_finding_and_not_the_end() -> None:
    def broken() -> Iterator[Finding]:
        raise ImportError("libcudnn.so.9 is not there")

    (finding,) = _guarded("gpu", broken)
    assert finding.state == PROBLEM
    assert "libcudnn.so.9 is not there" in finding.found


def test_an_address_of_ray_that_is_none_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "head:abc")
    finding = next(iter(doctor_software.ray()))
    assert finding.state == PROBLEM
    assert "RAY_ADDRESS=head:abc is not an address" in finding.found
    assert finding.todo.startswith("Write HOST:PORT")


def test_a_ray_that_does_not_answer_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")  # closed by now
    finding = next(iter(doctor_software.ray()))
    assert finding.state == PROBLEM
    assert "unset RAY_ADDRESS" in finding.todo


def test_a_ray_that_answers_is_found(monkeypatch: pytest.MonkeyPatch, busy_port: socket.socket) -> None:
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{busy_port.getsockname()[1]}")
    assert next(iter(doctor_software.ray())).state == OK


def test_a_tracking_server_that_is_away_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{port}")
    (finding,) = doctor_software.tracking()
    assert finding.state == PROBLEM
    assert "unset MLFLOW_TRACKING_URI" in finding.todo


def test_a_database_that_is_none_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "mlflow.db").write_text("this is no database, but long enough to look like one" * 20)
    (finding,) = doctor_software.tracking()
    assert finding.state == PROBLEM
    assert "mlflow db upgrade" in finding.todo


def test_a_port_in_use_is_said_to_be_by_whom(monkeypatch: pytest.MonkeyPatch, busy_port: socket.socket) -> None:
    monkeypatch.setattr(doctor_machine, "PORTS", {busy_port.getsockname()[1]: "the MLflow UI"})
    (finding,) = doctor_machine.ports()
    assert finding.state == NOTE
    if sys.platform == "linux":
        assert f"process {os.getpid()}" in finding.found


def test_threads_that_every_worker_would_take_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    (finding,) = doctor_machine.threads()
    assert finding.state == NOTE
    assert "Unset OMP_NUM_THREADS" in finding.todo


def test_a_cgroup_limit_is_the_memory_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.max").write_text("600000000\n")
    (tmp_path / "memory.current").write_text("200000000\n")
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    monkeypatch.setattr(doctor_machine, "CGROUP", tmp_path)
    (memory,) = doctor_machine.memory()
    assert memory.state == PROBLEM
    assert memory.found.startswith("0.4 GB of 0.6 free")
    (processors,) = doctor_machine.processors()
    assert "limited by a cgroup to the time of 0.5" in processors.found


def test_a_model_file_that_is_not_there_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOWCASTLAB_MODELS", str(tmp_path / "gone.py"))
    (finding,) = doctor_software.own_models()
    assert finding.state == PROBLEM


@pytest.mark.parametrize(
    ("version", "bounds", "fits"),
    [
        ("2.60.0", "<3,>=2.60", True),
        ("2.59.1", "<3,>=2.60", False),
        ("3.0", "<3,>=2.60", False),
        ("2.13.0+cpu", ">=2.6", True),  # 13 is more than 6, whatever it looks like as text
        ("1.0", "", True),
    ],
)
def test_versions_are_compared_as_numbers(version: str, bounds: str, fits: bool) -> None:
    assert doctor_software.within(version, bounds) is fits


def test_other_versions_than_the_tested_ones_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_software, "_pins", lambda: {"click": "0.1"})
    (finding,) = doctor_software.versions()
    assert finding.state == NOTE
    assert "(tested: 0.1)" in finding.found


def test_a_missing_requirement_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_software, "_requirements", lambda: iter([("no-such-thing", ">=1")]))
    (finding,) = doctor_software.versions()
    assert finding.state == PROBLEM
    assert "no-such-thing is missing" in finding.found


def test_little_disk_is_told_beside_the_size_of_hko7_that_plan_reckons_with(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=5 * 2**30))
    (disk,) = doctor_machine.disk()
    assert disk.state == NOTE
    assert f"HKO-7 takes about {Assumptions().store_gb:g} GB" in disk.todo


def test_without_mnist_both_ways_to_it_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOWCASTLAB_CACHE", str(tmp_path))
    (digits,) = doctor_software.digits()
    assert "digits --fetch (with npm), or --from FOLDER" in digits.todo
