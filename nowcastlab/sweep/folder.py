"""A sweep's folder: what was asked for, sealed on the first run, and a folder a trial.

work/sweeps/links-vs-kernel-demo/
  sweep.json         the sweep as it was begun, the seeds added to it since, and the token its runs are known by
  trials/Traj-L13-s1/
"""

from __future__ import annotations

import fcntl
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.sweep.design import Sweep, Trial
from nowcastlab.sweep.trial import FINISHED, RESULT, read_result
from nowcastlab.whole_files import write_atomically

SWEEP = "sweep.json"
SWEEP_DAMAGED = (
    "MLflow has a copy, among the artifacts of the sweep's own run: put that in its place. If there is no such run, "
    "delete it: it is written anew."
)


class SweepFolder:
    def __init__(self, root: Path, sweep: Sweep) -> None:
        self.path = Path(root) / f"{sweep.name}-{sweep.scale}"
        self.sweep = sweep
        # Known once the folder is claimed: the seeds as they were asked for, those it was begun with first, then what
        # each later command added; and how many this one did.
        self.seeds: list[list[int]] = []
        self.added = 0
        # Known then too: tells the sweep's runs in MLflow from those of another folder, whose trials have the same
        # keys. It moves and is copied with the folder; None for a sweep that was begun before there were any.
        self.token: str | None = None

    def trial(self, trial: Trial) -> Path:
        return self.path / "trials" / trial.key

    def begun(self) -> list[Trial]:
        """The trials that have a folder, and so perhaps a run in MLflow."""
        return [trial for trial in self.sweep.trials if self.trial(trial).is_dir()]

    def missing(self) -> list[Trial]:
        """The trials without a good result."""
        return [trial for trial in self.sweep.trials if not self._finished(trial)]

    def codes(self) -> dict[str, str]:
        """With which version of the code the finished trials ran, by key; of those that say so."""
        finished = {trial.key: self._finished(trial) or {} for trial in self.sweep.trials}
        found = {key: result.get("environment", {}).get("code") for key, result in finished.items()}
        return {key: code for key, code in found.items() if code is not None}

    def _finished(self, trial: Trial) -> dict[str, Any] | None:
        """A trial's good result, if it has one."""
        result = read_result(self.trial(trial))
        good = result is not None and result["status"] == FINISHED and result["identity"] == trial.identity
        return result if good else None

    def forget_failures(self) -> None:
        """They are tried anew; until then an old failure would be taken for the outcome."""
        for trial in self.missing():
            (self.trial(trial) / RESULT).unlink(missing_ok=True)

    @contextmanager
    def claim(self) -> Iterator[None]:
        """One driver at a time; and the sweep must be the one that was begun here, perhaps with further seeds."""
        with claimed(self.path, "sweep", self._settle):
            yield

    def _settle(self) -> None:
        """Seal the sweep, or see that it is what was sealed. Before a trial was begun it may still be changed; seeds
        that were added, before one of theirs was."""
        path = self.path / SWEEP
        plain = json.loads(json.dumps(self.sweep.to_plain()))  # as it is read back
        sealed = read_sealed(path, SWEEP_DAMAGED)
        self.seeds, self.added = [list(self.sweep.seeds)], 0
        self.token = secrets.token_hex(16) if sealed is None else sealed.get("token")
        if sealed is not None and any(path.is_dir() for path in self.path.glob("trials/*")):
            begun = self._as_begun(sealed, plain)
            _refuse_changes(begun, plain, self.path)
            added = [seed for seed in _seeds(plain) if seed not in _seeds(begun)]
            self.seeds = [*begun["seeds"], *([added] if added else [])]
            self.added = len(added)
        plain["seeds"] = self.seeds
        if self.token is not None:
            plain["token"] = self.token
        if sealed != plain:
            write_atomically(path, json.dumps(plain, indent=1).encode())

    def _as_begun(self, sealed: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
        """What was sealed, but for seeds that were added, of which no trial was begun, and which are not asked for any
        more: the command that added them was perhaps refused. Those of the first command stay, begun or not: fewer of
        them, after a look at the others, would be another sweep."""
        first, *additions = _sealed_seeds(sealed)
        networks = {key: trial for key, trial in sealed["trials"].items() if trial["config"]}
        begun = {trial["seed"] for key, trial in networks.items() if (self.path / "trials" / key).is_dir()}
        kept = [seeds for seeds in additions if begun & set(seeds) or set(seeds) <= set(_seeds(now))]
        dropped = {seed for seeds in additions if seeds not in kept for seed in seeds}
        gone = {key for key, trial in networks.items() if trial["seed"] in dropped}
        trials = {key: trial for key, trial in sealed["trials"].items() if key not in gone}
        return {**sealed, "trials": trials, "seeds": [first, *kept]}

    def growth(self) -> str:
        """Which seeds were added to a sweep that had begun, as "4,5 after 1,2,3"; empty for none."""
        return "; ".join(
            f"{listed(self.seeds[i])} after {listed(seed for part in self.seeds[:i] for seed in part)}"
            for i in range(1, len(self.seeds))
        )


def listed(seeds: Iterable[int]) -> str:
    """As --seeds takes them."""
    return ",".join(map(str, seeds))


@contextmanager
def claimed(path: Path, what: str, settle: Callable[[], None]) -> Iterator[None]:
    """The folder of a sweep or a search to one driver, once `settle` has found it to be the right one."""
    with ExitStack() as held:
        with usable(path, what):
            path.mkdir(parents=True, exist_ok=True)
            lock = held.enter_context(open(path / ".lock", "w"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConfigError(f"This {what} is running already, in {path}. Wait for it to end.") from None
            settle()
        yield


@contextmanager
def usable(path: Path, what: str) -> Iterator[None]:
    """A folder that cannot be read or written is the user's to mend."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"The {what}'s folder {path} cannot be used: {error.strerror}. Mend that, or choose another folder "
            "(--folder)."
        ) from None


def read_sealed(path: Path, if_damaged: str) -> dict[str, Any] | None:
    """What a sweep or a search was when it was begun; None before that."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ConfigError(f"{path} is damaged ({error}). {if_damaged}") from None


def _refuse_changes(begun: dict[str, Any], now: dict[str, Any], folder: Path) -> None:
    refuse_other_data("sweep", _digests(begun), _digests(now), folder)
    changed = _changes(begun, now)
    if changed:
        raise ConfigError(
            f"The sweep was changed after it was begun in {folder}: {'; '.join(changed[:5])}. "
            f"Put it back as it was to go on (--seeds {listed(_seeds(begun))}, to which others may be added), or give "
            "the sweep another name."
        )


def refuse_other_data(what: str, begun: Mapping[str, str], now: Mapping[str, str], folder: Path) -> None:
    """Digests by the name of a store or digit set, when a sweep or a search was begun and now."""
    changed = [
        f"{name} had digest {was[:16]}, now {now[name][:16]}"
        for name, was in begun.items()
        if now.get(name, was) != was
    ]
    if changed:
        raise StoreError(
            f"The data changed under the {what} in {folder}: {'; '.join(changed[:3])}. Put the data back as they were "
            f"to go on, or give the {what} another name."
        )


def config_digest(config: Mapping[str, Any]) -> tuple[str, str]:
    """The name of the data that a config, as a plain value, trains on, and their digest."""
    data = config["data"]
    return data.get("store") or data["digits"], data["digest"]


def _digests(plain: dict[str, Any]) -> dict[str, str]:
    """What each store and digit set was, by its name."""
    found = {}
    for trial in plain["trials"].values():
        if trial["radar"]:
            found[trial["radar"]["store"]] = trial["radar"]["digest"]
        if trial["config"]:
            name, digest = config_digest(trial["config"])
            found[name] = digest
    return found


def _seeds(plain: dict[str, Any]) -> list[int]:
    """Of the networks: a baseline's trial has none to speak of."""
    return list(dict.fromkeys(trial["seed"] for trial in plain["trials"].values() if trial["config"]))


def _sealed_seeds(sealed: dict[str, Any]) -> list[list[int]]:
    """Of a sweep that was begun before its seeds were on record, those of its trials."""
    return sealed.get("seeds") or [_seeds(sealed)]


def _changes(begun: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What decides results and differs. Paths may move, the question may be put in better words, and there may be
    further seeds."""
    before, after = begun["trials"], now["trials"]
    changed = [_missing(key, trial, after, "gone") for key, trial in before.items() if key not in after]
    changed += [
        _missing(key, trial, before, "new")
        for key, trial in after.items()
        if key not in before and (trial["arm"] not in _arms(before) or trial["seed"] in _seeds(begun))
    ]
    changed = list(dict.fromkeys(changed))
    for key in before:
        if key in after and before[key]["identity"] != after[key]["identity"]:
            changed.append(f"trial {key}: {', '.join(_different(before[key], after[key])) or 'its identity'}")
    if begun["comparisons"] != now["comparisons"]:
        changed.append("the comparisons")
    return changed


def _missing(key: str, trial: dict[str, Any], there: dict[str, Any], how: str) -> str:
    """What a trial that the other sweep has not comes down to: an arm, a seed, or that trial alone."""
    if trial["arm"] not in _arms(there):
        return f"arm {trial['arm']} is {how}"
    seeds = {other["seed"] for other in there.values()}
    return f"trial {key} is {how}" if trial["seed"] in seeds else f"seed {trial['seed']} is {how}"


def _arms(trials: dict[str, Any]) -> set[str]:
    return {trial["arm"] for trial in trials.values()}


def _different(before: dict[str, Any], after: dict[str, Any], prefix: str = "") -> list[str]:
    names = []
    for name in before.keys() | after.keys():
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            names += _different(old, new, f"{prefix}{name}.")
        elif old != new and name not in ("identity", "store"):
            names.append(f"{prefix}{name} was {old}, now {new}")
    return sorted(names)
