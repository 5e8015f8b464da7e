"""A small sweep, driven by processes that can be killed, and what must hold of it whatever happened.

`violations` is the one statement of that; every fault test ends with `assert not violations(...)`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from mlflow import MlflowClient

from nowcastlab.cli.sweep import table_text
from nowcastlab.config import mnist_config
from nowcastlab.sweep import DIGITS, Arm, Sweep, read_result
from nowcastlab.sweep.attempts import read_attempts
from nowcastlab.training import load_trained

STEPS = 12
INTERVAL = 2  # between checkpoints

SCRIPT = """
import json, sys
sys.path.insert(0, {here!r})
from pathlib import Path
from faults import small_sweep
from nowcastlab.errors import NowcastlabError
from nowcastlab.sweep import run_sweep
try:
    result = run_sweep(small_sweep(), root=Path({root!r}), tracking_uri={uri!r}, **json.loads({options!r}))
except NowcastlabError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
print(json.dumps(result.failed))
sys.exit(0 if not result.failed and not result.unfinished else 4)
"""


def small_arm(model: str, **settings: Any) -> Arm:
    config = mnist_config(
        model,
        digits="sklearn-digits",
        threads=1,
        max_steps=STEPS,
        validate_every=6,
        report_every=1,
        checkpoint_every=INTERVAL,
        **{"data.size": 16, "data.valid_sequences": 4, "data.count": 1},
        **settings,
    )
    return Arm(name=model, config=config, settings=(DIGITS,))


def small_sweep(**changes: Any) -> Sweep:
    values: dict[str, Any] = {
        "name": "small",
        "question": "Is it robust?",
        "scale": "demo",
        "arms": [small_arm("conv-k3-d1"), small_arm("traj-l2")],
        "seeds": (1, 2),
        "test_sequences": 8,
    }
    return Sweep(**{**values, **changes})


# --- processes


def uri_of(root: Path) -> str:
    return f"sqlite:///{root}/mlflow.db"


def start(root: Path, ray_address: str, *, uri: str | None = None, **options: Any) -> subprocess.Popen[str]:
    """A driver in a process of its own, on a Ray that outlives it."""
    script = SCRIPT.format(
        here=str(Path(__file__).parent), root=str(root), uri=uri or uri_of(root), options=json.dumps(options)
    )
    return subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "RAY_ADDRESS": ray_address},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], code: int = 0) -> tuple[str, str]:
    """What a driver says by its end, which must be as expected."""
    out, errors = process.communicate(timeout=400)
    assert process.returncode == code, (process.returncode, out, errors[-3000:])
    return out, errors


def steps_done(root: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in root.glob("small-demo/trials/*/history.jsonl"))


def wait_until(true: Callable[[], Any], process: subprocess.Popen[str]) -> None:
    """Until something is so, as long as the process lives."""
    deadline = time.monotonic() + 300
    while not true():
        assert process.poll() is None, process.communicate()[1][-3000:]
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)


# --- what must hold


def violations(
    root: Path, undisturbed: Path, *, uri: str | None = None, failed: tuple[str, ...] = (), sweep: Sweep | None = None
) -> list[str]:
    """What is wrong with a sweep that has come to its end, in words; nothing, if it is as if nothing had happened.

    failed   the trials that should have failed, and clearly
    """
    sweep = sweep or small_sweep()
    client = MlflowClient(uri or uri_of(root))
    found = _wrong_trials(root, sweep, failed) + _wrong_runs(client, sweep, failed) + _repeated(root, sweep)
    if not found:
        found += _different(root, undisturbed, client, sweep, failed)
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


def _different(root: Path, undisturbed: Path, client: MlflowClient, sweep: Sweep, failed: tuple[str, ...]) -> list[str]:
    """Weights, scores and table are those of the undisturbed sweep, to the bit."""
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
    if not failed:
        tables = [table_text(sweep, who) for who in (client, MlflowClient(uri_of(undisturbed)))]
        if tables[0] != tables[1]:
            wrong.append(f"the tables differ:\n{tables[0]}\n{tables[1]}")
    return wrong


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.detach().contiguous().numpy().tobytes()
