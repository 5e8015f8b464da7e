"""Running a search: Optuna proposes, Ray trains, the folder remembers.

The driver alone writes Optuna's study, a journal on disk; workers know only their trial's folder. After kill -9 of
anything the same command goes on: trials that were under way are taken up at their checkpoints under their old numbers,
what was reported is in the journal, and only what is missing of the number asked for is tried.

Ray Tune's OptunaSearch with its ASHA scheduler would not: given a storage it finds the finished trials again, but those
that ran when the driver died stay "running" in the study for ever, their points are tried anew from the first update,
ASHA's rungs, which it keeps in memory, are empty, and the number of trials is counted from zero. Optuna's own ASHA
(SuccessiveHalvingPruner) keeps its rungs in the study.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
import ray
from optuna.trial import FrozenTrial, TrialState

from nowcastlab import engine
from nowcastlab.errors import TrainingError
from nowcastlab.metric_names import VALID_SCORE
from nowcastlab.progress import progress
from nowcastlab.sweep.clerk import Clerk
from nowcastlab.sweep.design import Trial
from nowcastlab.sweep.driver import ATTEMPTS, Say
from nowcastlab.sweep.environment import running_code
from nowcastlab.sweep.plan import duration
from nowcastlab.sweep.preflight import check_cluster, check_data, check_space, trial_bytes
from nowcastlab.sweep.search.design import Search, shown
from nowcastlab.sweep.search.folder import SEARCH, SearchFolder
from nowcastlab.sweep.search.rungs import NO_SPACE, read_verdict, run_by_rungs, write_verdict
from nowcastlab.sweep.search.study import (
    Found,
    as_found,
    ask,
    found_in,
    identity_of,
    importance_in,
    in_vain,
    left_behind,
    open_study,
)
from nowcastlab.sweep.trial import FAILED, FINISHED, PRUNED
from nowcastlab.tracking import Mirror, connect
from nowcastlab.training import read_history

POLL_S = 0.2
# Of Ray, about a task whose process or machine is gone.
DIED = (
    ray.exceptions.WorkerCrashedError,
    ray.exceptions.RayActorError,
    ray.exceptions.NodeDiedError,
    ray.exceptions.OutOfMemoryError,
)


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    folder: SearchFolder
    found: list[Found]
    importance: dict[str, float]  # of each range, summing to 1; empty where too few trials finished to tell
    interrupted: bool
    link: str

    @property
    def best(self) -> Found | None:
        """Of those that were trained to their end."""
        finished = [one for one in self.found if one.outcome == FINISHED and one.score is not None]
        return min(finished, key=lambda one: (one.score, one.number), default=None)


def run_search(
    search: Search,
    *,
    trials: int,
    root: Path = Path("work/sweeps"),
    cpus_per_trial: float = 1,
    gpus_per_trial: float = 0,
    cpus: int | None = None,
    tracking_uri: str | None = None,
    say: Say = print,
) -> SearchResult:
    """Try so many points in all. Called again, it does what is missing of them; with a larger number, more."""
    folder = SearchFolder(root.resolve(), search)
    with folder.claim(), resumable(folder):
        study = open_study(folder)
        check_search(folder, trials - len(found_in(study)))
        mirror = Mirror(connect(tracking_uri), search.name)
        mirror.open_sweep(
            key=f"{search.name}/{search.scale}",
            name=f"{search.name} ({search.scale})",
            params={"scale": search.scale, "seed": search.seed, **{k: str(v) for k, v in search.space.items()}},
            tags={"sweep": search.name, "scale": search.scale, "question": search.question},
            token=identity_of(study),
            artifacts=[folder.path / SEARCH],
        )
        clerk = Clerk(search.name, folder, mirror, running_code(), say=say)
        for one in sorted(found_in(study), key=lambda one: one.number):
            trial = search.trial(one.number, one.values)
            if one.outcome == FAILED:
                clerk.failed(trial, one.error)
            else:
                clerk.watch(trial)
        clerk.start()
        driver = _Driver(folder, study, clerk, say)
        interrupted = False
        try:
            driver.run(trials, cpus_per_trial, gpus_per_trial, cpus)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            found = found_in(study)
            whole = not interrupted and len(found) >= trials
            clerk.finish(
                unfinished="KILLED", status="KILLED" if not whole else "FAILED" if in_vain(found) else "FINISHED"
            )
        return SearchResult(
            folder=folder,
            found=found,
            importance=importance_in(study),
            interrupted=interrupted,
            link=mirror.link(),
        )


def check_search(folder: SearchFolder, missing: int) -> None:
    """Raise what would fail every trial, or the whole search half-way, as before a sweep."""
    if missing <= 0:
        return
    configs = {f"A trial at {corner}": folder.search.config(corner) for corner in folder.search.corners()}
    check_data(configs)
    check_space("search", folder.path, missing * max(map(trial_bytes, configs.values())), trials=missing)


@contextmanager
def resumable(folder: SearchFolder) -> Iterator[None]:
    """What a disk or Ray does to the driver itself is told in a line: the study has all that was done before."""
    try:
        yield
    except (OSError, ray.exceptions.RayError) as error:
        raise TrainingError(
            f"The search in {folder.path} cannot go on: {error}. Mend that; the same command goes on."
        ) from error


@dataclass(kw_only=True)
class _Running:
    asked: optuna.Trial
    trial: Trial
    folder: Path
    judged: int = 0  # the last rung that was


class _Driver:
    """Asks, starts, judges and tells, until there are as many trials as wanted."""

    def __init__(self, folder: SearchFolder, study: optuna.Study, clerk: Clerk, say: Say) -> None:
        self._folder, self._search, self._study, self._clerk, self._say = folder, folder.search, study, clerk, say
        self._under_way: dict[Any, _Running] = {}

    def run(self, trials: int, cpus_each: float, gpus_each: float, cpus: int | None) -> None:
        resumed = left_behind(self._study, self._search)
        ended = len(found_in(self._study))
        if not resumed and ended >= trials:
            return
        engine.connect(cpus=cpus)
        check_cluster(cpus_each, gpus_each, self._say)
        # what a trial raises, and does not write down as its result, is the machine's doing: no memory, a lost disk
        often = {"max_retries": ATTEMPTS - 1, "retry_exceptions": True}
        remote = ray.remote(num_cpus=cpus_each, num_gpus=gpus_each, **often)(run_by_rungs)
        with progress(total=trials, label="search", unit="trials") as bar:
            bar.update(min(ended, trials))
            try:
                while True:
                    while len(self._under_way) < _room(cpus_each, gpus_each):
                        if resumed:
                            self._start(remote, resumed.pop(0))
                        elif len(found_in(self._study)) + len(self._under_way) < trials:
                            self._start(remote, ask(self._study, self._search))
                        else:
                            break
                    if not self._under_way:
                        return
                    ready, _ = ray.wait(list(self._under_way), timeout=POLL_S)
                    for running in self._under_way.values():
                        self._judge(running)
                    for reference in ready:
                        self._end(reference, trials, bar.write if not bar.disable else self._say)
                        bar.update()
            finally:
                for reference in self._under_way:
                    ray.cancel(reference, force=True)

    def _start(self, remote: Any, asked: optuna.Trial) -> None:
        trial = self._search.trial(asked.number, asked.params)
        folder = self._folder.trial(trial)
        self._clerk.watch(trial)
        assert trial.config is not None
        reference = remote.remote(trial.to_plain(), str(folder), self._search.rungs(trial.config.max_steps))
        self._under_way[reference] = _Running(asked=asked, trial=trial, folder=folder)

    def _judge(self, running: _Running) -> None:
        """Tell the study of new validations, and at a rung the worker, which waits there, whether to go on."""
        known = self._study._storage.get_trial(running.asked._trial_id).intermediate_values
        assert running.trial.config is not None
        rungs = self._search.rungs(running.trial.config.max_steps)
        for entry in read_history(running.folder):
            if VALID_SCORE not in entry:
                continue
            step = entry["step"]
            if step not in known:
                running.asked.report(entry[VALID_SCORE], step)
            if step in rungs and step > running.judged:
                running.judged = step
                if read_verdict(running.folder).get("step", 0) < step:  # else judged by a driver before this one
                    write_verdict(running.folder, step=step, stop=running.asked.should_prune())

    def _end(self, reference: Any, trials: int, say: Callable[[str], object]) -> None:
        running = self._under_way[reference]
        try:
            result = ray.get(reference)
        except DIED:
            result = self._given_up(running, f"its worker died {ATTEMPTS} times")
        except ray.exceptions.RayTaskError as error:  # as of a point that is too wide for the GPU: others may not be
            why = f"{type(error.cause).__name__}: {error.cause}"
            result = self._given_up(running, f"given up after {ATTEMPTS} attempts: {why}")
        if result["status"] == NO_SPACE:  # which the others will not find either
            raise TrainingError(
                f"Trial {running.trial.key} cannot go on: {result['error']}. Make room; the same command goes on."
            )
        del self._under_way[reference]
        self._judge(running)  # what came since the last look
        found = as_found(self._tell(running, result))
        say(f"  [{len(found_in(self._study))}/{trials}] {_line(found, running.trial, result['seconds'])}")

    def _given_up(self, running: _Running, why: str) -> dict[str, Any]:
        """The result of a trial that left none."""
        self._clerk.failed(running.trial, why)
        return {"status": FAILED, "error": why, "seconds": 0.0}

    def _tell(self, running: _Running, result: dict[str, Any]) -> FrozenTrial:
        if result["status"] == FINISHED:
            best = min(entry[VALID_SCORE] for entry in read_history(running.folder) if VALID_SCORE in entry)
            return self._study.tell(running.asked, best)
        if result["status"] == PRUNED:
            return self._study.tell(running.asked, state=TrialState.PRUNED)
        running.asked.set_user_attr("error", result.get("error", ""))
        return self._study.tell(running.asked, state=TrialState.FAIL)


def _room(cpus_each: float, gpus_each: float) -> int:
    """How many trials the cluster holds at once; it may grow."""
    have = ray.cluster_resources()
    room = [have.get("CPU", 1) / cpus_each] if cpus_each else []
    room += [have.get("GPU", 0) / gpus_each] if gpus_each else []
    return max(1, int(min(room, default=1)))


def _line(found: Found, trial: Trial, seconds: float) -> str:
    assert trial.config is not None
    point = ", ".join(f"{name} {shown(value)}" for name, value in found.values.items())
    if found.outcome == FINISHED:
        how = f"score {found.score:.5g}"
    elif found.outcome == PRUNED:
        how = f"pruned at update {found.step} of {trial.config.max_steps}, score {found.score:.5g}"
    else:
        how = f"failed: {found.error}"
    return f"{trial.arm}: {how} ({duration(seconds)}; {point})"
