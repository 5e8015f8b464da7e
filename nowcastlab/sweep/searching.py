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

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import ray
from optuna.trial import FrozenTrial, TrialState

from nowcastlab import engine
from nowcastlab.errors import NowcastlabError
from nowcastlab.progress import progress
from nowcastlab.store.writer import write_atomically
from nowcastlab.sweep.clerk import Clerk
from nowcastlab.sweep.design import Trial
from nowcastlab.sweep.driver import ATTEMPTS, Say, code_version
from nowcastlab.sweep.plan import duration
from nowcastlab.sweep.preflight import check_cluster
from nowcastlab.sweep.search import SEARCH, Choice, Range, Real, Search, SearchFolder
from nowcastlab.sweep.trial import FAILED, FINISHED, PRUNED, run_trial
from nowcastlab.tracking import Mirror, connect
from nowcastlab.training import read_history

POLL_S = 0.2
WAIT_S = 60.0  # of a worker, for the driver's word
VERDICT = "verdict.json"  # in a trial's folder: whether it may go on beyond its last rung
NEVER_BEGUN = "never_begun"
SCORE = "valid/score"


@dataclass(frozen=True, kw_only=True)
class Found:
    """One trial of a search that has ended."""

    number: int
    values: dict[str, Any]
    outcome: str  # finished, pruned, failed
    score: float | None  # the best validation; of a pruned trial the last
    step: int
    error: str = ""


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


@dataclass(kw_only=True)
class _Running:
    asked: optuna.Trial
    trial: Trial
    folder: Path
    judged: int = 0  # the last rung that was


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
    with folder.claim():
        study = open_study(folder)
        mirror = Mirror(connect(tracking_uri), search.name)
        mirror.open_sweep(
            key=f"{search.name}/{search.scale}",
            name=f"{search.name} ({search.scale})",
            params={"scale": search.scale, "seed": search.seed, **{k: str(v) for k, v in search.space.items()}},
            tags={"sweep": search.name, "scale": search.scale, "question": search.question},
        )
        clerk = Clerk(search.name, folder, mirror, code_version())
        for frozen in study.get_trials(deepcopy=False):
            if frozen.state.is_finished() and NEVER_BEGUN not in frozen.user_attrs:
                clerk.watch(search.trial(frozen.number, frozen.params))
        clerk.start()
        driver = _Driver(folder, study, clerk, say)
        interrupted = False
        try:
            driver.run(trials, cpus_per_trial, gpus_per_trial, cpus)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            whole = not interrupted and len(found_in(study)) >= trials
            clerk.finish(
                unfinished="KILLED", status="FINISHED" if whole else "KILLED", artifacts=[folder.path / SEARCH]
            )
        return SearchResult(
            folder=folder,
            found=found_in(study),
            importance=importance_in(study),
            interrupted=interrupted,
            link=mirror.link(),
        )


def open_study(folder: SearchFolder) -> optuna.Study:
    """The study in a folder, made where there is none."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(folder.journal)))
    search = folder.search
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=search.first_rung, reduction_factor=search.reduction)
    return optuna.create_study(study_name=search.name, storage=storage, pruner=pruner, load_if_exists=True)


def found_in(study: optuna.Study) -> list[Found]:
    """The trials that have ended, best first; then the pruned, those that got furthest first; then the failed."""
    found = [_found(t) for t in study.get_trials(deepcopy=False) if t.state.is_finished()]
    order = {FINISHED: 0, PRUNED: 1}
    known = [one for one in found if one is not None]
    return sorted(
        known,
        key=lambda one: (order.get(one.outcome, 2), -one.step * (one.outcome == PRUNED), one.score or 0.0, one.number),
    )


def importance_in(study: optuna.Study, *, least: int = 6) -> dict[str, float]:
    """How much of the spread of scores each range explains (fANOVA), from trials that were trained to their end."""
    scores = {t.value for t in study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])}
    if len(scores) < least:
        return {}
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    return {k: float(v) for k, v in optuna.importance.get_param_importances(study, evaluator=evaluator).items()}


class _Driver:
    """Asks, starts, judges and tells, until there are as many trials as wanted."""

    def __init__(self, folder: SearchFolder, study: optuna.Study, clerk: Clerk, say: Say) -> None:
        self._folder, self._search, self._study, self._clerk, self._say = folder, folder.search, study, clerk, say
        self._under_way: dict[Any, _Running] = {}

    def run(self, trials: int, cpus_each: float, gpus_each: float, cpus: int | None) -> None:
        resumed = self._left_behind()
        ended = len(found_in(self._study))
        if not resumed and ended >= trials:
            return
        engine.connect(cpus=cpus)
        check_cluster(cpus_each, gpus_each, self._say)
        remote = ray.remote(num_cpus=cpus_each, num_gpus=gpus_each, max_retries=ATTEMPTS - 1)(_work)
        with progress(total=trials, label="search", unit="trials") as bar:
            bar.update(min(ended, trials))
            try:
                while True:
                    while len(self._under_way) < _room(cpus_each, gpus_each):
                        if resumed:
                            self._start(remote, resumed.pop(0))
                        elif len(found_in(self._study)) + len(self._under_way) < trials:
                            self._start(remote, self._ask())
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

    def _left_behind(self) -> list[optuna.Trial]:
        """What ran when the last driver ended. One whose point was only half written down is counted as never begun."""
        resumed = []
        for frozen in self._study.get_trials(deepcopy=False, states=[TrialState.RUNNING, TrialState.WAITING]):
            asked = optuna.Trial(self._study, frozen._trial_id)
            if frozen.params.keys() == self._search.space.keys():
                resumed.append(asked)
            else:
                asked.set_user_attr(NEVER_BEGUN, True)
                self._study.tell(frozen.number, state=TrialState.FAIL)
        return resumed

    def _ask(self) -> optuna.Trial:
        """A point that depends on the seed, its number and what is known so far: not on how often we were killed."""
        number = len(self._study.get_trials(deepcopy=False))
        seed = int(np.random.SeedSequence([self._search.seed, number]).generate_state(1)[0])
        sampler: optuna.samplers.BaseSampler = optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=1, constant_liar=True
        )
        if number < self._search.spread_trials:
            sampler = _Given(self._search.spread_point(number))
        self._study.sampler = sampler
        return self._study.ask({name: _distribution(wide) for name, wide in self._search.space.items()})

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
            if SCORE not in entry:
                continue
            step = entry["step"]
            if step not in known:
                running.asked.report(entry[SCORE], step)
            if step in rungs and step > running.judged:
                running.judged = step
                if _verdict(running.folder).get("step", 0) < step:  # else judged by a driver before this one
                    word = {"step": step, "stop": running.asked.should_prune()}
                    write_atomically(running.folder / VERDICT, json.dumps(word).encode())

    def _end(self, reference: Any, trials: int, say: Callable[[str], object]) -> None:
        running = self._under_way[reference]
        try:
            result = ray.get(reference)
        except (ray.exceptions.WorkerCrashedError, ray.exceptions.RayActorError, ray.exceptions.NodeDiedError):
            result = {"status": FAILED, "error": f"its worker died {ATTEMPTS} times", "seconds": 0.0}
            self._clerk.failed(running.trial, result["error"])
        except ray.exceptions.RayTaskError as error:  # the machine's doing: the trial can be taken up again
            raise NowcastlabError(
                f"Trial {running.trial.key} cannot go on: {error.cause}. Mend that; the same command goes on."
            ) from None
        del self._under_way[reference]
        self._judge(running)  # what came since the last look
        frozen = self._tell(running, result)
        found = _found(frozen)
        assert found is not None
        say(f"  [{len(found_in(self._study))}/{trials}] {_line(found, running.trial, result['seconds'])}")

    def _tell(self, running: _Running, result: dict[str, Any]) -> FrozenTrial:
        if result["status"] == FINISHED:
            best = min(entry[SCORE] for entry in read_history(running.folder) if SCORE in entry)
            return self._study.tell(running.asked, best)
        if result["status"] == PRUNED:
            return self._study.tell(running.asked, state=TrialState.PRUNED)
        running.asked.set_user_attr("error", result.get("error", ""))
        return self._study.tell(running.asked, state=TrialState.FAIL)


class _Given(optuna.samplers.BaseSampler):
    """Proposes one point."""

    def __init__(self, point: dict[str, Any]) -> None:
        self._point = point

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        return {}

    def sample_relative(self, study: Any, trial: Any, search_space: Any) -> dict[str, Any]:
        return {}

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        return self._point[param_name]


def _work(plain: dict[str, Any], folder: str, rungs: set[int]) -> dict[str, Any]:
    """One trial on a worker, which waits at every rung for the driver's word."""
    at = _Rung(folder=Path(folder), rungs=rungs, stopped=_verdict(Path(folder)).get("stop", False))
    return run_trial(Trial.from_plain(plain), Path(folder), report=at.note, stop=at.stop)


@dataclass(kw_only=True)
class _Rung:
    folder: Path
    rungs: set[int]
    stopped: bool  # before this attempt, which came too late to be told at the rung
    step: int = 0  # the rung the trial stands at; 0 between rungs

    def note(self, metrics: dict[str, Any]) -> None:
        self.step = metrics["step"] if SCORE in metrics and metrics["step"] in self.rungs else 0

    def stop(self) -> bool:
        """A driver that says nothing is gone, or a shared folder slow: training on costs less than standing still."""
        deadline = time.monotonic() + WAIT_S
        while self.step and time.monotonic() < deadline:
            word = _verdict(self.folder)
            if word.get("step", 0) >= self.step:
                self.step = 0
                return word["stop"]
            time.sleep(0.05)
        self.step = 0
        return self.stopped


def _verdict(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / VERDICT).read_bytes())
    except FileNotFoundError:
        return {}


def _room(cpus_each: float, gpus_each: float) -> int:
    """How many trials the cluster holds at once; it may grow."""
    have = ray.cluster_resources()
    room = [have.get("CPU", 1) / cpus_each] if cpus_each else []
    room += [have.get("GPU", 0) / gpus_each] if gpus_each else []
    return max(1, int(min(room, default=1)))


def _distribution(wide: Range) -> optuna.distributions.BaseDistribution:
    if isinstance(wide, Choice):
        return optuna.distributions.CategoricalDistribution(wide.values)
    if isinstance(wide, Real):
        return optuna.distributions.FloatDistribution(wide.low, wide.high, log=wide.log)
    return optuna.distributions.IntDistribution(wide.low, wide.high, step=wide.step)


def _found(frozen: FrozenTrial) -> Found | None:
    if NEVER_BEGUN in frozen.user_attrs:
        return None
    outcomes = {TrialState.COMPLETE: FINISHED, TrialState.PRUNED: PRUNED}
    return Found(
        number=frozen.number,
        values=dict(frozen.params),
        outcome=outcomes.get(frozen.state, FAILED),
        score=frozen.value,
        step=frozen.last_step or 0,
        error=frozen.user_attrs.get("error", ""),
    )


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


def shown(value: Any) -> str:
    """A value of a range, short enough for a table."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
