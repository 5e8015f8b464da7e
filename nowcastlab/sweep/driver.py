"""Running a sweep: arms x seeds on Ray Tune, only what is missing, one MLflow run a trial.

Tune schedules and retries. What a trial has done is in its own folder, so neither a killed worker nor a killed driver
needs Tune's memory of it: Tune's snapshots lag behind and would send a trial back to its start.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ray import tune
from ray.tune import Callback

from nowcastlab import engine
from nowcastlab.sweep.clerk import Clerk
from nowcastlab.sweep.design import Sweep, Trial
from nowcastlab.sweep.folder import SweepFolder
from nowcastlab.sweep.trial import FINISHED, read_result, run_trial
from nowcastlab.sweep.view import View, outcome_text
from nowcastlab.tracking import Mirror, connect

ATTEMPTS = 4  # at a trial whose worker died
WORKER_DIED = f"its worker died {ATTEMPTS} times"
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    folder: SweepFolder
    finished: list[Trial]
    failed: dict[str, str]  # trial -> why
    unfinished: list[Trial]  # a sweep that was interrupted
    link: str


def run_sweep(
    sweep: Sweep,
    *,
    root: Path = Path("work/sweeps"),
    cpus_per_trial: float = 1,
    gpus_per_trial: float = 0,
    cpus: int | None = None,
    tracking_uri: str | None = None,
    say: Say = print,
) -> SweepResult:
    """Do what is missing of a sweep. Interrupted with Ctrl-C, or killed, the same call goes on."""
    folder = SweepFolder(root.resolve(), sweep)
    with folder.claim():
        mirror = Mirror(connect(tracking_uri), sweep.name)
        mirror.open_sweep(
            key=f"{sweep.name}/{sweep.scale}",
            name=f"{sweep.name} ({sweep.scale})",
            params={"scale": sweep.scale, "arms": len(sweep.arms), "seeds": list(sweep.seeds)},
            tags={"sweep": sweep.name, "scale": sweep.scale, "question": sweep.question},
        )
        clerk = Clerk(sweep, folder, mirror, code_version())
        for trial in sweep.trials:
            if trial not in folder.missing():
                clerk.watch(trial)  # finished, perhaps by a driver that died before it told MLflow
        clerk.start()
        interrupted = False
        try:
            interrupted = _run_trials(folder, clerk, cpus_per_trial, gpus_per_trial, cpus, say)
        finally:
            clerk.finish(unfinished="KILLED")
            missing = folder.missing()
            mirror.close_sweep(status="FINISHED" if not missing else "KILLED", artifacts=[folder.path / "sweep.json"])
        return _result(folder, mirror.link(), interrupted)


def _run_trials(
    folder: SweepFolder, clerk: Clerk, cpus_each: float, gpus_each: float, cpus: int | None, say: Say
) -> bool:
    """Run the trials that are missing; True if the run was interrupted."""
    todo = {trial.key: trial for trial in folder.missing()}
    if not todo:
        return False
    engine.connect(cpus=cpus)
    plain = {key: trial.to_plain() for key, trial in todo.items()}
    folders = {key: str(folder.trial(trial)) for key, trial in todo.items()}

    def trainable(config: dict[str, Any]) -> None:
        key = config["key"]
        result = run_trial(Trial.from_plain(plain[key]), Path(folders[key]), report=tune.report)
        tune.report({"status": result["status"]})

    view = View(list(todo.values()), say)
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"  # the folders and MLflow hold all of it
    tuner = tune.Tuner(
        tune.with_resources(trainable, {"cpu": cpus_each, "gpu": gpus_each}),
        param_space={"key": tune.grid_search(list(todo))},
        tune_config=tune.TuneConfig(reuse_actors=True),
        run_config=tune.RunConfig(
            name=f"run-{len(list(folder.path.glob('tune/run-*'))) + 1}",
            storage_path=str(folder.path / "tune"),
            failure_config=tune.FailureConfig(max_failures=ATTEMPTS - 1),
            callbacks=[_Watch(todo, folder, clerk, view)],
            verbose=0,
        ),
    )
    try:
        tuner.fit()
    finally:
        view.close()
    return any(read_result(folder.trial(trial)) is None for trial in todo.values())


class _Watch(Callback):
    """Tells the clerk what has begun, and the person how it goes."""

    def __init__(self, todo: dict[str, Trial], folder: SweepFolder, clerk: Clerk, view: View) -> None:
        self._todo, self._folder, self._clerk, self._view = todo, folder, clerk, view

    def __getstate__(self) -> dict[str, Any]:
        return {}  # Tune saves its callbacks for a restore that we never make

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self._clerk.watch(self._todo[trial.config["key"]])
        self._view.started(trial.config["key"])

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        self._view.moved(trial.config["key"], result.get("step", 0))

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self._ended(trial.config["key"])

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        if trial.status == "ERROR":  # after the last attempt
            self._ended(trial.config["key"])

    def _ended(self, key: str) -> None:
        result = read_result(self._folder.trial(self._todo[key])) or {}
        if result.get("status") == FINISHED:
            self._view.ended(key, outcome_text(result["seconds"], result["scores"]))
        else:
            self._view.ended(key, f"failed: {result.get('error', WORKER_DIED)}")


def _result(folder: SweepFolder, link: str, interrupted: bool) -> SweepResult:
    results = {trial.key: read_result(folder.trial(trial)) for trial in folder.sweep.trials}
    missing = folder.missing()
    failed = {t.key: (results[t.key] or {}).get("error", WORKER_DIED) for t in missing if not interrupted}
    return SweepResult(
        folder=folder,
        finished=[trial for trial in folder.sweep.trials if trial not in missing],
        failed=failed,
        unfinished=missing if interrupted else [],
        link=link,
    )


def code_version() -> str:
    """The commit the library runs from, and whether it was changed; or its release."""
    from nowcastlab import __version__

    here = Path(__file__).parents[1]
    try:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=True)
        changed = subprocess.run(["git", "status", "--porcelain", "--", "."], cwd=here, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return __version__
    return commit.stdout.strip() + ("+changed" if changed.stdout.strip() else "")
