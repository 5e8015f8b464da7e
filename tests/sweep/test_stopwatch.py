"""The hours of a trial that was killed and taken up again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nowcastlab.sweep.stopwatch import FILE_NAME, Stopwatch, seconds_before

WORK = """
import sys, time
from pathlib import Path
from nowcastlab.sweep.stopwatch import Stopwatch
with Stopwatch(Path(sys.argv[1]), every_s=0.05):
    print("at work", flush=True)
    time.sleep(600)
"""


def test_a_trial_left_alone_took_its_own_time(tmp_path: Path) -> None:
    with Stopwatch(tmp_path) as stopwatch:
        time.sleep(0.01)
        inside = stopwatch.seconds
    assert 0.01 <= inside <= seconds_before(tmp_path) <= stopwatch.seconds < 60


def test_attempts_add_up_and_the_time_between_them_does_not_count(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text(json.dumps({"seconds": 1000.0}))
    long_ago = time.time() - 8 * 3600
    os.utime(tmp_path / FILE_NAME, (long_ago, long_ago))
    with Stopwatch(tmp_path) as stopwatch:
        time.sleep(0.01)
        inside = stopwatch.seconds
    assert 1000.01 <= inside <= seconds_before(tmp_path) < 1060


def test_a_killed_attempt_counts_and_so_does_its_copy_on_another_machine(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    folder.mkdir()
    with subprocess.Popen([sys.executable, "-c", WORK, str(folder)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while seconds_before(folder) < 0.2:
            assert process.poll() is None
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    worked = seconds_before(folder)
    assert 0.2 <= worked < 60
    shutil.copytree(folder, tmp_path / "copy", copy_function=shutil.copyfile)  # new dates on every file
    assert seconds_before(tmp_path / "copy") == worked


@pytest.mark.parametrize("content", [b'{"seconds": 1', b'{"before_s": 3.0}', b"[]", b'{"seconds": null}'])
def test_a_clock_that_cannot_be_read_starts_anew(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    assert seconds_before(tmp_path) == 0
