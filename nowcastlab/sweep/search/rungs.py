"""A trial on a worker, which waits at every rung until the driver has said in the trial's folder whether to go on."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nowcastlab.metric_names import VALID_SCORE
from nowcastlab.sweep.design import Trial
from nowcastlab.sweep.trial import no_space, run_trial, told
from nowcastlab.whole_files import write_atomically

WAIT_S = 60.0  # of a worker, for the driver's word
NO_SPACE = "no space"  # in the place of a trial's status: it has none, and can be taken up again
VERDICT = "verdict.json"  # in a trial's folder: whether it may go on beyond its last rung


def run_by_rungs(plain: dict[str, Any], folder: str, rungs: set[int]) -> dict[str, Any]:
    """What Ray runs. It imports neither Optuna nor MLflow, which are the driver's alone."""
    at = _Rung(folder=Path(folder), rungs=rungs, stopped=read_verdict(Path(folder)).get("stop", False))
    try:
        return run_trial(Trial.from_plain(plain), Path(folder), report=at.note, stop=at.stop)
    except Exception as error:
        if not no_space(error):
            raise  # Ray tries again, perhaps elsewhere
        return {"status": NO_SPACE, "error": told(error)}  # seen here: an error that travels leaves its causes behind


@dataclass(kw_only=True)
class _Rung:
    folder: Path
    rungs: set[int]
    stopped: bool  # before this attempt, which came too late to be told at the rung
    step: int = 0  # the rung the trial stands at; 0 between rungs

    def note(self, metrics: dict[str, Any]) -> None:
        self.step = metrics["step"] if VALID_SCORE in metrics and metrics["step"] in self.rungs else 0

    def stop(self) -> bool:
        """A driver that says nothing is gone, or a shared folder slow: training on costs less than standing still."""
        deadline = time.monotonic() + WAIT_S
        while self.step and time.monotonic() < deadline:
            word = read_verdict(self.folder)
            if word.get("step", 0) >= self.step:
                self.step = 0
                return word["stop"]
            time.sleep(0.05)
        self.step = 0
        return self.stopped


def write_verdict(folder: Path, *, step: int, stop: bool) -> None:
    """The driver's word on a trial that has reached a rung."""
    write_atomically(folder / VERDICT, json.dumps({"step": step, "stop": stop}).encode())


def read_verdict(folder: Path) -> dict[str, Any]:
    """The last one: empty before the first."""
    try:
        return json.loads((folder / VERDICT).read_bytes())
    except FileNotFoundError:
        return {}
