"""Running a sweep: arms x seeds on Ray Tune, only what is missing, one MLflow run a trial.

Tune schedules and retries. What a trial has done is in its own folder, so neither a killed worker nor a killed driver
needs Tune's memory of it: Tune's snapshots lag behind and would send a trial back to its start.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ray import tune
from ray.tune import Callback

from nowcastlab import engine
from nowcastlab.errors import TrainingError
from nowcastlab.metric_names import VALID_SCORE
from nowcastlab.sweep.attempts import Report
from nowcastlab.sweep.design import ONLINE, Sweep, Trial
from nowcastlab.sweep.environment import running_code
from nowcastlab.sweep.facts import write_store_facts
from nowcastlab.sweep.folder import SWEEP, SweepFolder
from nowcastlab.sweep.interruption import ended_by_ctrl_c
from nowcastlab.sweep.preflight import check_cluster, check_sweep
from nowcastlab.sweep.trial import FAILED, FINISHED, no_space, read_result, run_trial, told
from nowcastlab.sweep.view import View, outcome_text
from nowcastlab.training import read_history
from nowcastlab.training.checkpoints import Checkpoints

if TYPE_CHECKING:
    from nowcastlab.sweep.clerk import Clerk

REPORT_EVERY_S = 1.0  # from a trial to Tune: for the view alone, since every step is in the trial's folder
SEEDS_ADDED = "nowcastlab.seeds_added"  # a tag of the sweep's run: "4,5 after 1,2,3"
ATTEMPTS = 4  # at a trial that gets no further, because its worker dies or its machine is full
Say = Callable[[str], None]
Run = Callable[..., dict[str, Any]]  # as run_trial


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
    patience_s: float | None = None,
    run: Run = run_trial,
    say: Say = print,
) -> SweepResult:
    """Do what is missing of a sweep. Interrupted with Ctrl-C, or killed, the same call goes on.

    patience_s   how long to wait, at the end, for a tracking server that is away
    run          what is done for a trial; `nowcastlab bench scale` puts a recording in its place
    """
    # MLflow is the driver's alone: a worker, which imports this module too, need not wait for it
    from nowcastlab.sweep.clerk import PATIENCE_S, Clerk
    from nowcastlab.sweep.record import key_of
    from nowcastlab.tracking import Mirror, connect

    folder = SweepFolder(root.resolve(), sweep)
    with folder.claim():
        if folder.added:
            seeds = "seed" if folder.added == 1 else "seeds"
            say(f"{folder.added} {seeds} added to a sweep that had begun: {folder.growth()}.")
        check_sweep(folder)
        mirror = Mirror(connect(tracking_uri), sweep.name)
        mirror.open_sweep(
            key=f"{sweep.name}/{sweep.scale}",
            name=f"{sweep.name} ({sweep.scale})",
            params={"scale": sweep.scale, "arms": len(sweep.arms), "seeds": list(sweep.seeds)},
            tags={
                "sweep": sweep.name,
                "scale": sweep.scale,
                "question": sweep.question,
                # who adds seeds until a difference is significant will find one: so it is on record
                **({SEEDS_ADDED: folder.growth()} if folder.growth() else {}),
            },
            token=folder.token,
            identities={key_of(trial): trial.identity for trial in sweep.trials},
            artifacts=[folder.path / SWEEP, *write_store_facts(sweep, folder.path)],
        )
        folder.forget_failures()
        clerk = Clerk(
            sweep.name,
            folder,
            mirror,
            running_code(),
            patience_s=PATIENCE_S if patience_s is None else patience_s,
            say=say,
        )
        for trial in folder.begun():
            clerk.watch(trial)  # by a driver that died, perhaps before it told MLflow how it ended
        clerk.start()
        failed: dict[str, str] = {}
        try:
            _run_trials(folder, clerk, failed, cpus_per_trial, gpus_per_trial, cpus, run, say)
        finally:
            left = {trial.key for trial in folder.missing()}
            status = "FINISHED" if not left else "FAILED" if left <= failed.keys() else "KILLED"
            clerk.finish(unfinished="KILLED", status=status)
        missing = folder.missing()
        return SweepResult(
            folder=folder,
            finished=[trial for trial in sweep.trials if trial not in missing],
            failed=failed,
            unfinished=[trial for trial in missing if trial.key not in failed],
            link=mirror.link(),
        )


def _run_trials(
    folder: SweepFolder,
    clerk: Clerk,
    failed: dict[str, str],
    cpus_each: float,
    gpus_each: float,
    cpus: int | None,
    run: Run,
    say: Say,
) -> None:
    """Run the trials that are missing, and note in `failed` those that end badly."""
    todo = {trial.key: trial for trial in folder.missing()}
    if not todo:
        return
    engine.connect(cpus=cpus)
    check_cluster(cpus_each, gpus_each, say)
    view = View(list(todo.values()), say)
    watch = _Watch(todo, folder, clerk, view, failed)
    try:
        while todo:
            before = {key: _progress(folder.trial(trial)) for key, trial in todo.items()}
            watch.given_up.clear()
            interrupted = _fit(folder, todo, watch, cpus_each, gpus_each, run)
            # Tune tries each so often. A long trial on machines that come and go needs more: while it gets further.
            todo = {key: todo[key] for key in watch.given_up if _progress(folder.trial(todo[key])) > before[key]}
            for key in watch.given_up.keys() - todo.keys():
                watch.ended(key, watch.given_up[key])
            if interrupted:
                return
    finally:
        view.close()


def _fit(
    folder: SweepFolder, todo: dict[str, Trial], watch: _Watch, cpus_each: float, gpus_each: float, run: Run
) -> bool:
    """Have Tune run the trials, each so often; whether Ctrl-C ended that."""
    plain = {key: trial.to_plain() for key, trial in todo.items()}
    folders = {key: str(folder.trial(trial)) for key, trial in todo.items()}

    def trainable(config: dict[str, Any]) -> None:
        key = config["key"]
        result = read_result(Path(folders[key]))
        if result is None:
            try:
                result = run(Trial.from_plain(plain[key]), Path(folders[key]), report=paced(tune.report))
            except Exception as error:
                if not no_space(error):
                    raise  # Tune tries again, perhaps elsewhere
                result = {"status": FAILED, "error": told(error)}  # there was nowhere to write it
            if not result.get("expected", True):
                # A worker in which something unexpected happened may be unfit for the next trial, as one whose CUDA
                # context is broken: let it go. The attempt after this one finds the result.
                raise RuntimeError(result["error"])
        tune.report({"status": result["status"], "error": result.get("error", "")})

    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"  # the folders and MLflow hold all of it
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"  # which would print tables between the lines of our view
    os.environ["TUNE_DISABLE_SIGINT_HANDLER"] = "0"  # by which it ends its trials, and we know that it was told to
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)  # a trial's error is told in a line, by the view
    tuner = tune.Tuner(
        tune.with_resources(trainable, {"cpu": cpus_each, "gpu": gpus_each}),
        param_space={"key": tune.grid_search(list(todo))},
        tune_config=tune.TuneConfig(reuse_actors=True),
        run_config=tune.RunConfig(
            name=f"run-{len(list(folder.path.glob('tune/run-*'))) + 1}",
            storage_path=str(folder.path / "tune"),
            failure_config=tune.FailureConfig(max_failures=ATTEMPTS - 1),
            callbacks=[watch],
            verbose=0,
        ),
    )
    try:
        return ended_by_ctrl_c(tuner.fit)
    except (tune.TuneError, OSError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise TrainingError(
            f"Ray Tune gave up the sweep in {folder.path}: {first} Mend that; the same command, run again, goes on."
        ) from error


def paced(report: Callable[[dict[str, Any]], None], clock: Callable[[], float] = time.monotonic) -> Report:
    """At most so often, and with each validation, as the last step has one: a trial waits for every report until Tune
    has seen to it."""
    last: float | None = None

    def report_now_and_then(metrics: dict[str, Any]) -> None:
        nonlocal last
        if last is None or VALID_SCORE in metrics or clock() - last >= REPORT_EVERY_S:
            report(metrics)
            last = clock()

    return report_now_and_then


def _progress(folder: Path) -> tuple[int, int, int]:
    """What only grows while a trial gets further: the steps it reported, the files it finished, the windows that an
    online run has saved."""
    history, online = read_history(folder), Checkpoints(folder / ONLINE).steps(ONLINE)
    return (history[-1]["step"] if history else 0, len(list(folder.glob("scores-*.npz"))), max(online, default=0))


class _Watch(Callback):
    """Tells the clerk what has begun, and the person how it goes."""

    def __init__(
        self, todo: dict[str, Trial], folder: SweepFolder, clerk: Clerk, view: View, failed: dict[str, str]
    ) -> None:
        self._todo, self._folder, self._clerk, self._view, self._failed = dict(todo), folder, clerk, view, failed
        self._told: dict[str, str] = {}  # errors as trials reported them
        self.given_up: dict[str, str] = {}  # by Tune, and why

    def __getstate__(self) -> dict[str, Any]:
        return {}  # Tune saves its callbacks for a restore that we never make

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self._clerk.watch(self._todo[trial.config["key"]])
        self._view.started(trial.config["key"])

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        self._view.moved(trial.config["key"], result.get("step", 0))
        if result.get("error"):
            self._told[trial.config["key"]] = result["error"]

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self.ended(trial.config["key"], self._told.get(trial.config["key"]))

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """After the last attempt."""
        self.given_up[trial.config["key"]] = f"given up after {ATTEMPTS} attempts: {_cause(trial)}"

    def ended(self, key: str, why: str | None = None) -> None:
        """A trial has come to its end; `why` for one that left no result."""
        trial = self._todo[key]
        result = read_result(self._folder.trial(trial)) or {}
        if result.get("status") == FINISHED:
            self._view.ended(key, outcome_text(result["seconds"], result["scores"]))
        elif result or why:
            self._failed[key] = result.get("error") or why or ""
            if not result:
                self._clerk.failed(trial, self._failed[key])
            self._view.ended(key, f"failed: {self._failed[key]}")


def _cause(trial: Any) -> str:
    """Why the last attempt failed, in a line, from the text that Tune keeps beside its own files."""
    path = Path(trial.error_file or "")
    lines = path.read_text().strip().splitlines() if path.is_file() else []
    raised = any("Traceback (most recent call last)" in line or "ray::" in line for line in lines)
    return lines[-1].strip() if raised else "its worker died each time"
