"""A disk that fills up under a sweep: a small tmpfs with everything on it, as in a user's own folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import Driver, steps_done, violations

MEGABYTES = 24


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> Path:
    """Somebody else's file, which takes all there is."""
    ballast = disk / "ballast"
    with open(ballast, "wb", buffering=0) as file:
        for block in (1_000_000, 4096, 1):
            try:
                while True:
                    file.write(b"\0" * block)
            except OSError:
                continue
    return ballast


def test_a_full_disk_stops_a_sweep_which_goes_on_when_there_is_room(
    small_disk: Path, undisturbed: Path, ray_address: str
) -> None:
    driver = Driver(small_disk, ray_address, patience_s=6)  # with MLflow's database, which is on that disk too
    driver.wait_until(lambda: steps_done(small_disk) >= 8)
    ballast = fill(small_disk)
    said = driver.wait(4, 5)  # the trials failed, and perhaps MLflow's database could not be told
    assert "No space left on device" in said or "disk is full" in said
    assert "Traceback" not in said, said

    # before there is room the same command starts nothing, and says what it lacks
    assert "Make room" in Driver(small_disk, ray_address).wait(2)

    ballast.unlink()
    Driver(small_disk, ray_address).wait()
    assert not violations(small_disk, undisturbed)
