"""What README says to type that takes minutes or hours: typed, in a folder of its own, as a newcomer would.

The sweeps at laptop scale are interrupted (Ctrl-C) once a trial of theirs is under way. Two commands run elsewhere:
`make test` is what runs this, and `ray up cluster.yaml` is in tests/cluster/test_ray_up.py, over machines made there.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TYPED = re.compile(r"<!-- typed by: tests/docs/test_readme\.py -->\n```sh\n(.*?)```", re.S)
MAKE_DEMO = "make demo"
LAPTOP_SWEEPS = (
    "python sweeps/links_vs_kernel.py --scale laptop",
    "python sweeps/hko7_benchmark.py --scale laptop",
)
SWEEPS = ["links-vs-kernel", "hko7-benchmark"]
UI = "nowcastlab ui"
REPORT = "nowcastlab report --table hko7 --scale laptop"
ACTIVATE = ". .venv/bin/activate"
ELSEWHERE = {"make test", "ray up cluster.yaml"}


def test_every_command_to_type_is_typed() -> None:
    lines = "".join(TYPED.findall((ROOT / "README.md").read_text())).splitlines()
    said = [line.partition("#")[0].strip() for line in lines]
    assert sorted(said) == sorted([MAKE_DEMO, ACTIVATE, *LAPTOP_SWEEPS, UI, REPORT, *ELSEWHERE])


class Newcomer:
    """Someone with the project's files in a folder, and its environment made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("Makefile", "pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, folder)
        shutil.copytree(ROOT / "sweeps", folder / "sweeps", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / ".venv").symlink_to(sys.prefix)
        known = {"RAY_ADDRESS", "MLFLOW_TRACKING_URI", "VIRTUAL_ENV"}
        self.environment = {name: value for name, value in os.environ.items() if name not in known}
        # the environment is found by activating it, or not at all
        beside = [part for part in os.environ["PATH"].split(os.pathsep) if Path(part) != Path(sys.prefix) / "bin"]
        self.environment["PATH"] = os.pathsep.join(beside)

    def rain_written(self) -> dict[Path, int]:
        """When each file of the demo's rain was written."""
        files = (self.folder / "work" / "synthetic-demo.zarr").rglob("*")
        return {path: path.stat().st_mtime_ns for path in files if path.is_file()}

    @contextlib.contextmanager
    def typing(self, command: str) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], str]]]:
        """The command under way, and what it has said so far. It does not outlive the block."""
        if command.startswith("make "):
            # the environment is there, and not to be made anew because the files it is made of were copied
            typed = f"exec {command} --old-file=.venv/.made"
        else:
            typed = f"{ACTIVATE} && exec {command}"
        log = self.folder / "said.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["sh", "-c", typed],
                cwd=self.folder,
                env=self.environment,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield process, log.read_text
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def types(self, command: str, *, seconds: float) -> str:
        """What a command said that must end well."""
        with self.typing(command) as (process, said):
            process.wait(seconds)
            assert process.returncode == 0, f"{command}\n{said()[-4000:]}"
            return said()

    def types_then_interrupts(self, command: str, seen: Callable[[str], object], *, seconds: float) -> tuple[int, str]:
        """How a command ended, and what it said, that was interrupted once something was to be seen."""
        with self.typing(command) as (process, said):
            deadline = time.monotonic() + seconds
            while not seen(said()):
                assert process.poll() is None, f"{command} ended\n{said()[-4000:]}"
                assert time.monotonic() < deadline, f"{command}: nothing to be seen\n{said()[-4000:]}"
                time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            return process.wait(120), said()


@pytest.fixture(scope="module")
def after_the_demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Newcomer, str]:
    """A newcomer who has typed the first command, and what it said."""
    newcomer = Newcomer(tmp_path_factory.mktemp("newcomer"))
    return newcomer, newcomer.types(MAKE_DEMO, seconds=1200)


def test_the_demo_ends_with_both_tables_in_the_terminal_and_as_pages(after_the_demo: tuple[Newcomer, str]) -> None:
    newcomer, said = after_the_demo
    for row in ("Traj-L13", "Conv3D", "ROVER", "ConvLSTM"):
        assert row in said
    for page in ("report.html", "report-digits.html"):
        assert (newcomer.folder / "work" / page).read_text().startswith("<!doctype html>")
    assert (newcomer.folder / "work" / "rain.png").stat().st_size > 0


def test_run_again_the_demo_finds_all_of_it_done(after_the_demo: tuple[Newcomer, str]) -> None:
    newcomer, _ = after_the_demo
    before = newcomer.rain_written()
    again = newcomer.types(MAKE_DEMO, seconds=300)
    assert re.findall(r"(\S+), demo scale: \d+ trials, all finished before\.", again) == SWEEPS
    assert newcomer.rain_written() == before


def test_the_demos_report_is_printed(after_the_demo: tuple[Newcomer, str]) -> None:
    newcomer, _ = after_the_demo
    assert "TrajGRU" in newcomer.types(REPORT.replace("laptop", "demo"), seconds=120)


def test_the_ui_serves_the_demos_runs(after_the_demo: tuple[Newcomer, str]) -> None:
    newcomer, _ = after_the_demo
    link = re.compile(r"links-vs-kernel\S*\s+(http://\S+?)/#/experiments/\d+/runs")

    def answers(said: str) -> bool:
        found = link.search(said)
        if not found:
            return False
        with urllib.request.urlopen(found[1]) as page:
            return b"MLflow" in page.read()

    code, _ = newcomer.types_then_interrupts(UI, answers, seconds=120)
    assert code == 0


@pytest.mark.parametrize(("command", "name"), list(zip(LAPTOP_SWEEPS, SWEEPS, strict=True)))
def test_a_laptop_sweep_begins_and_can_be_interrupted(
    after_the_demo: tuple[Newcomer, str], command: str, name: str
) -> None:
    newcomer, _ = after_the_demo

    def under_way(said: str) -> bool:
        return any(newcomer.folder.glob(f"work/sweeps/{name}-laptop/trials/*/history.jsonl"))

    code, said = newcomer.types_then_interrupts(command, under_way, seconds=600)
    assert code == 130, said[-2000:]
    assert re.search(r"Interrupted with \d+ trials to go; the same command goes on\.", said)
    assert "Traceback" not in said
