"""A machine of a cluster that is gone from one moment to the next, with all that ran on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import Driver, folder_of, small_sweep, steps_done, violations

from nowcastlab.sweep.attempts import read_attempts

# Three nodes in a process of their own, until it is told to end. Trials run on the two that are not the head.
CLUSTER = """
import sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
for _ in range(2):
    cluster.add_node(num_cpus=1)
cluster.wait_for_nodes()
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@pytest.fixture
def three_nodes() -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        assert address, "no cluster came up"
        yield address
    finally:
        left = _family(process.pid)
        try:
            process.communicate(timeout=60)  # which closes its input
        finally:
            _kill([process.pid, *left])
            process.wait()


def test_a_lost_node_costs_its_trials_one_checkpoint_interval(
    tmp_path: Path, undisturbed: Path, three_nodes: str
) -> None:
    driver = Driver(tmp_path, three_nodes)
    driver.wait_until(lambda: steps_done(tmp_path) >= 6)
    trials = [folder_of(tmp_path, trial.key) for trial in small_sweep().trials]
    worker = [line for trial in trials for line in read_attempts(trial)][-1]["pid"]
    raylet = _parent(worker)
    assert "raylet" in Path(f"/proc/{raylet}/comm").read_text()
    _kill([raylet, *_family(raylet)])
    driver.wait()
    assert sum(len(read_attempts(trial)) for trial in trials) > len(trials)  # one was taken up elsewhere
    assert not violations(tmp_path, undisturbed)


def test_a_cluster_that_was_not_named_is_not_joined(three_nodes: str) -> None:
    # it is somebody else's, and ends when they like; Ray itself takes the one that was started last
    program = (
        "import ray; from nowcastlab import engine; engine.connect(); print(ray.get_runtime_context().gcs_address)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip().rpartition(":")[2].isdigit()
    assert found.stdout.strip() != three_nodes


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _family(pid: int) -> list[int]:
    """A process's children, and theirs."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, path.read_text().split()):
            found += [child, *_family(child)]
    return found


def _kill(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
