"""A small sweep, driven by processes that can be killed, and what must hold of it whatever happened.

`violations` is the one statement of that; every fault test ends with `assert not violations(...)`.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import torch
from mlflow import MlflowClient

from nowcastlab.cli.sweep import table_text
from nowcastlab.config import mnist_config
from nowcastlab.sweep import DIGITS, Arm, Sweep, read_result
from nowcastlab.sweep.attempts import read_attempts
from nowcastlab.training import load_trained

STEPS = 12
INTERVAL = 2  # between checkpoints


def small_arm(model: str, **settings: Any) -> Arm:
    config = mnist_config(
        model,
        digits="sklearn-digits",
        threads=1,
        max_steps=STEPS,
        validate_every=6,
        report_every=1,
        checkpoint_every=INTERVAL,
        **{"data.size": 16, "data.valid_sequences": 4, "data.count": 1, **settings},
    )
    return Arm(name=model, config=config, settings=(DIGITS,))


def small_sweep(*, models: Sequence[str] = ("conv-k3-d1", "traj-l2"), **changes: Any) -> Sweep:
    values: dict[str, Any] = {
        "name": "small",
        "question": "Is it robust?",
        "scale": "demo",
        "arms": [small_arm(model) for model in models],
        "seeds": (1, 2),
        "test_sequences": 8,
    }
    return Sweep(**{**values, **changes})


# --- processes


def uri_of(root: Path) -> str:
    return f"sqlite:///{root}/mlflow.db"


class Driver:
    """A sweep's driver in a process of its own, on a Ray that outlives it.

    Forked from a process that has imported everything, because imports take longer than all the rest.
    """

    def __init__(
        self,
        root: Path,
        ray_address: str,
        *,
        uri: str | None = None,
        sweep: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        """`sweep`: how it differs from the small one. `options`: of `run_sweep`."""
        self._log = Path(tempfile.mkstemp(suffix=".log")[1])
        environment = {**os.environ, "RAY_ADDRESS": ray_address, "GIT_DIR": os.devnull, **(environment or {})}
        arguments = (root, uri or uri_of(root), dict(sweep or {}), options, environment, self._log)
        self.process = _processes.Process(target=_drive, args=arguments)
        self.process.start()

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.process.join()

    def kill_when(self, true: Callable[[], Any], *, pause: float = 0) -> bool:
        """Kill it a moment after something came true; False if it ended by itself before."""
        while self.process.is_alive() and not true():
            time.sleep(0.02)
        self.process.join(pause)
        if not self.process.is_alive():
            return False
        self.kill()
        return True

    def interrupt(self) -> None:
        os.kill(self.pid, signal.SIGINT)

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def said(self) -> str:
        return self._log.read_text()

    def wait(self, *codes: int) -> str:
        """What it said by its end, which must be as expected: 0 if no other exit code is named."""
        self.process.join(600)
        text = self.said()
        assert self.process.exitcode in (codes or (0,)), f"ended with {self.process.exitcode}:\n{text[-3000:]}"
        self._log.unlink()
        return text

    def wait_until(self, true: Callable[[], Any]) -> None:
        """Until something is so, which must be before the driver ends."""
        deadline = time.monotonic() + 300
        while not true():
            assert self.process.is_alive(), self.said()[-3000:]
            assert time.monotonic() < deadline, "it never came"
            time.sleep(0.02)


_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["nowcastlab.sweep", "nowcastlab.sweep.clerk", "ray.tune"])


def _drive(
    root: Path, uri: str, sweep: dict[str, Any], options: dict[str, Any], environment: dict[str, str], log: Path
) -> None:
    """What a driver's process does: the sweep, as its command would."""
    out = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.environ.update(environment)
    os.environ["MLFLOW_TRACKING_URI"] = uri
    from nowcastlab.cli.sweep import run_and_tell
    from nowcastlab.cli.verbs import run

    sys.argv = ["small"]
    run(click.Command("small", callback=lambda: run_and_tell(small_sweep(**sweep), root, **options)))


def steps_done(root: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in root.glob("small-demo/trials/*/history.jsonl"))


# --- what must hold


def violations(
    root: Path, undisturbed: Path, *, uri: str | None = None, failed: tuple[str, ...] = (), sweep: Sweep | None = None
) -> list[str]:
    """What is wrong with a sweep that has come to its end, in words; nothing, if it is as if nothing had happened.

    failed   the trials that should have failed, and clearly
    sweep    where it is not the small one; `undisturbed` then has the folders of its trials, but no table
    """
    small, sweep = sweep is None, sweep or small_sweep()
    client = MlflowClient(uri or uri_of(root))
    found = _wrong_trials(root, sweep, failed) + _wrong_runs(client, sweep, failed) + _repeated(root, sweep)
    if not found:
        found += _different(root, undisturbed, sweep, failed)
    if not found and not failed and small:
        tables = [table_text(sweep, who) for who in (client, MlflowClient(uri_of(undisturbed)))]
        if tables[0] != tables[1]:
            found.append(f"the tables differ:\n{tables[0]}\n{tables[1]}")
    return found


def folder_of(root: Path, key: str) -> Path:
    return root / "small-demo" / "trials" / key


def _wrong_trials(root: Path, sweep: Sweep, failed: tuple[str, ...]) -> list[str]:
    """Every trial finished, or failed and says why."""
    wrong = []
    for trial in sweep.trials:
        result = read_result(folder_of(root, trial.key))
        expected = "failed" if trial.key in failed else "finished"
        if result is None or result["status"] != expected or (expected == "failed" and not result["error"]):
            wrong.append(f"{trial.key} should have {expected}: {result and result['status']}")
    return wrong


def _wrong_runs(client: MlflowClient, sweep: Sweep, failed: tuple[str, ...]) -> list[str]:
    """Exactly one run a trial, none of them running, no step of any curve twice."""
    experiment = client.get_experiment_by_name(sweep.name)
    runs = client.search_runs([experiment.experiment_id])
    keys = Counter(run.data.tags["nowcastlab.key"] for run in runs)
    expected = {"small/demo", *(f"small/demo/{trial.key}" for trial in sweep.trials)}
    wrong = [f"{key} has {keys[key]} runs" for key in expected | set(keys) if keys[key] != 1 or key not in expected]
    for run in runs:
        key = run.data.tags["nowcastlab.key"]
        name = key.removeprefix("small/demo").removeprefix("/")
        should = "FAILED" if name in failed or (failed and not name) else "FINISHED"
        if run.info.status != should:
            wrong.append(f"the run of {key} is {run.info.status}, not {should}")
        if name and (should == "FAILED") != ("nowcastlab.error" in run.data.tags):
            wrong.append(f"the run of {key} is {should} and its error {run.data.tags.get('nowcastlab.error')}")
        for metric in run.data.metrics:
            steps = Counter(value.step for value in client.get_metric_history(run.info.run_id, metric))
            if max(steps.values()) > 1:
                wrong.append(f"{key} has a step of {metric} twice")
            if metric == "train/loss" and should == "FINISHED" and set(steps) != set(range(1, STEPS + 1)):
                wrong.append(f"{key} has steps {sorted(steps)} of {metric}")
    return wrong


def _repeated(root: Path, sweep: Sweep) -> list[str]:
    """At most one checkpoint interval is done again when a trial is taken up."""
    return [
        f"{trial.key} went on at step {line['first_step']} though {line['steps_before']} were done"
        for trial in sweep.trials
        for line in read_attempts(folder_of(root, trial.key))
        if not 0 <= line["steps_before"] - line["first_step"] + 1 <= INTERVAL
    ]


def _different(root: Path, undisturbed: Path, sweep: Sweep, failed: tuple[str, ...]) -> list[str]:
    """Weights and scores are those of the undisturbed sweep, to the bit."""
    wrong = []
    for trial in sweep.trials:
        if trial.key in failed:
            continue
        here, there = folder_of(root, trial.key), folder_of(undisturbed, trial.key)
        if (read_result(here) or {})["scores"] != (read_result(there) or {})["scores"]:
            wrong.append(f"the scores of {trial.key} differ")
        for which in ("best", "last"):
            mine, theirs = (load_trained(folder, which).model.state_dict() for folder in (here, there))
            wrong += [
                f"{which} {name} of {trial.key} differs"
                for name in theirs
                if _bytes(mine[name]) != _bytes(theirs[name])
            ]
    return wrong


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.detach().contiguous().numpy().tobytes()
