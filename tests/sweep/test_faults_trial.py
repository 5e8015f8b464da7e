"""A trial that raises. What nobody expected fails it, clearly, and nothing else; what a machine did is tried again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from faults import Driver, folder_of, small_sweep, uri_of, violations

from nowcastlab.models import own
from nowcastlab.sweep import run_trial
from nowcastlab.sweep.attempts import read_attempts
from nowcastlab.tracking import connect

# Networks of the user's own: one fails in its fifth update while a file says so, one loses its disk there, once.
SOURCE = """
import os
import torch
from nowcastlab.models import Forecaster, register

class Counting(Forecaster):
    def __init__(self):
        super().__init__()
        self.change = torch.nn.Conv2d(1, 1, 3, padding=1)
        self.updates = 0

    def forward(self, frames, leads):
        self.updates += self.training
        if self.updates == 5:
            self.fifth()
        last = frames[:, -1:]
        return torch.cat([last + self.change(last)] * leads, dim=1)

@register("fragile")
class Fragile(Counting):
    def fifth(self):
        if os.path.exists({broken!r}):
            raise ZeroDivisionError("the fifth update divides by nothing")

@register("unlucky")
class Unlucky(Counting):
    def fifth(self):
        if os.path.exists({loose!r}):
            os.unlink({loose!r})
            raise OSError(5, "Input/output error")
"""


@pytest.fixture
def own_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    file = tmp_path / "own_models.py"
    file.write_text(SOURCE.format(broken=str(tmp_path / "broken"), loose=str(tmp_path / "loose")))
    monkeypatch.setenv(own.VARIABLE, str(file))
    monkeypatch.setattr(own, "_own", {})
    return {own.VARIABLE: str(file)}


def test_a_trial_that_raises_fails_alone_and_is_done_by_the_same_command_when_its_cause_is_gone(
    tmp_path: Path, undisturbed: Path, ray_address: str, own_models: dict[str, str]
) -> None:
    design = {"models": ("conv-k3-d1", "fragile", "unlucky"), "seeds": (1,)}
    sweep = small_sweep(**design)
    clean = tmp_path / "clean"
    shutil.copytree(folder_of(undisturbed, "conv-k3-d1-s1"), folder_of(clean, "conv-k3-d1-s1"))
    for trial in sweep.trials[1:]:
        run_trial(trial, folder_of(clean, trial.key))

    for name in ("broken", "loose"):
        (tmp_path / name).touch()
    said = Driver(tmp_path, ray_address, sweep=design, environment=own_models).wait(4)
    assert "failed: fragile-s1: ZeroDivisionError: the fifth update divides by nothing (in fifth, " in said
    assert "The same command tries what failed again" in said
    assert not violations(tmp_path, clean, failed=("fragile-s1",), sweep=sweep)
    assert len(read_attempts(folder_of(tmp_path, "fragile-s1"))) == 1  # it would only fail again
    assert len(read_attempts(folder_of(tmp_path, "unlucky-s1"))) == 2  # another time it went well
    client = connect(uri_of(tmp_path))
    experiment = client.get_experiment_by_name("small")
    (run,) = client.search_runs([experiment.experiment_id], "tags.arm = 'fragile'")
    assert "the fifth update divides by nothing" in run.data.tags["nowcastlab.error"]

    (tmp_path / "broken").unlink()
    Driver(tmp_path, ray_address, sweep=design, environment=own_models).wait()
    assert not violations(tmp_path, clean, sweep=sweep)
