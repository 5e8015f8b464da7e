"""A search's study, as Optuna keeps it: which point is tried next, what a killed driver left, and what was found."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState

from nowcastlab.sweep.search.design import Choice, Range, Real, Search
from nowcastlab.sweep.search.folder import SearchFolder
from nowcastlab.sweep.trial import FAILED, FINISHED, PRUNED

NEVER_BEGUN = "never_begun"
IDENTITY = "identity"


def open_study(folder: SearchFolder) -> optuna.Study:
    """The study in a folder, made where there is none."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(folder.journal)))
    search = folder.search
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=search.first_rung, reduction_factor=search.reduction)
    study = optuna.create_study(study_name=search.name, storage=storage, pruner=pruner, load_if_exists=True)
    if IDENTITY not in study.user_attrs and not study.get_trials(deepcopy=False):
        study.set_user_attr(IDENTITY, secrets.token_hex(16))
    return study


def identity_of(study: optuna.Study) -> str | None:
    """Tells a study from another of the same search, whose trials have the same numbers: they must not share runs in
    MLflow. Kept in the journal, with which a study begins and ends; None for one that was begun before it had any."""
    return study.user_attrs.get(IDENTITY)


def ask(study: optuna.Study, search: Search) -> optuna.Trial:
    """A point that depends on the seed, its number and what is known so far: not on how often we were killed."""
    number = len(study.get_trials(deepcopy=False))
    if number < search.spread_trials:
        study.sampler = _Given(search.spread_point(number))
    else:
        seed = int(np.random.SeedSequence([search.seed, number]).generate_state(1)[0])
        study.sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=1, constant_liar=True)
    return study.ask({name: _distribution(wide) for name, wide in search.space.items()})


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


def _distribution(wide: Range) -> optuna.distributions.BaseDistribution:
    if isinstance(wide, Choice):
        return optuna.distributions.CategoricalDistribution(wide.values)
    if isinstance(wide, Real):
        return optuna.distributions.FloatDistribution(wide.low, wide.high, log=wide.log)
    return optuna.distributions.IntDistribution(wide.low, wide.high, step=wide.step)


def left_behind(study: optuna.Study, search: Search) -> list[optuna.Trial]:
    """What ran when the last driver ended. One whose point was only half written down is counted as never begun."""
    resumed = []
    for frozen in study.get_trials(deepcopy=False, states=[TrialState.RUNNING, TrialState.WAITING]):
        asked = optuna.Trial(study, frozen._trial_id)
        if frozen.params.keys() == search.space.keys():
            resumed.append(asked)
        else:
            asked.set_user_attr(NEVER_BEGUN, True)
            study.tell(frozen.number, state=TrialState.FAIL)
    return resumed


@dataclass(frozen=True, kw_only=True)
class Found:
    """One trial of a search that has ended."""

    number: int
    values: dict[str, Any]
    outcome: str  # finished, pruned, failed
    score: float | None  # the best validation; of a pruned trial the last
    step: int
    error: str = ""


def found_in(study: optuna.Study) -> list[Found]:
    """The trials that have ended, best first; then the pruned, those that got furthest first; then the failed."""
    ended = [t for t in study.get_trials(deepcopy=False) if t.state.is_finished()]
    order = {FINISHED: 0, PRUNED: 1}
    return sorted(
        [as_found(frozen) for frozen in ended if NEVER_BEGUN not in frozen.user_attrs],
        key=lambda one: (order.get(one.outcome, 2), -one.step * (one.outcome == PRUNED), one.score or 0.0, one.number),
    )


def in_vain(found: list[Found]) -> bool:
    """Whether no trial came to anything. That some fail, as by a learning rate too high, is part of a search."""
    return bool(found) and all(one.outcome == FAILED for one in found)


def importance_in(study: optuna.Study, *, least: int = 6) -> dict[str, float]:
    """How much of the spread of scores each range explains (fANOVA), from trials that were trained to their end."""
    scores = {t.value for t in study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])}
    if len(scores) < least:
        return {}
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    return {k: float(v) for k, v in optuna.importance.get_param_importances(study, evaluator=evaluator).items()}


def as_found(frozen: FrozenTrial) -> Found:
    outcomes = {TrialState.COMPLETE: FINISHED, TrialState.PRUNED: PRUNED}
    return Found(
        number=frozen.number,
        values=dict(frozen.params),
        outcome=outcomes.get(frozen.state, FAILED),
        score=frozen.value,
        step=frozen.last_step or 0,
        error=frozen.user_attrs.get("error", ""),
    )
