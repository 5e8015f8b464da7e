"""A sweep as a value: the arms, the seeds, and what will be compared, all said before the first trial.

Sweep(
    name="links-vs-kernel",
    question="Does TrajGRU beat ConvGRU with fewer links?",
    scale="demo",
    arms=[Arm(name="Traj-L13", config=mnist_config("traj-l13"))],
    seeds=(1, 2, 3),
    comparisons=[("Traj-L13", "Conv-K7-D1")],
)
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from nowcastlab.config import DigitsData, TrainConfig
from nowcastlab.config.data import absolute
from nowcastlab.errors import ConfigError
from nowcastlab.models import BASELINES
from nowcastlab.protocol import digits_test

OFFLINE, ONLINE, DIGITS = "offline", "online", "digits"
PAPER, OWN = "paper", "own"  # scales: every number the paper's; a config put together by hand
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, kw_only=True)
class Radar:
    """The store a benchmark is run on: what the arms share."""

    store: str
    digest: str
    split: str = "test"
    limit: int | None = None  # score the first windows only

    def __post_init__(self) -> None:
        object.__setattr__(self, "store", absolute(self.store))


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One row of a table: a network and how it is trained, or a baseline, which is not."""

    name: str
    config: TrainConfig | None = None  # its seed is the trial's
    baseline: str | None = None
    settings: tuple[str, ...] = (OFFLINE,)  # how it is tested

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ConfigError(f"Arm {self.name!r}: a name is letters, digits, '.', '_' and '-', as 'Traj-L13'.")
        if (self.config is None) == (self.baseline is None):
            raise ConfigError(f"Arm {self.name}: give it either a config or a baseline.")
        possible = (DIGITS,) if self.on_digits else (OFFLINE, ONLINE)
        for setting in self.settings:
            if setting not in possible:
                raise ConfigError(f"Arm {self.name}: no setting {setting!r}. Its settings are: {', '.join(possible)}.")
        if self.baseline and self.baseline not in BASELINES:
            raise ConfigError(f"Arm {self.name}: no baseline {self.baseline!r}. They are: {', '.join(BASELINES)}.")
        if self.baseline and ONLINE in self.settings:
            raise ConfigError(f"Arm {self.name}: {self.baseline} does not learn, so there is no online setting for it.")

    @property
    def on_digits(self) -> bool:
        """Tested on moving digits; else on radar, as every baseline is."""
        return self.config is not None and self.config.data.kind == "digits"


def check_scale(whose: str, config: TrainConfig, scale: str) -> None:
    """What stands in a table under a scale's name must have its settings: those of the paper's, the paper's."""
    allowed = (scale,) if scale == PAPER else (scale, OWN)
    if config.scale not in allowed:
        raise ConfigError(
            f"{whose} is set up at {config.scale} scale, and would be called {scale}. Make its config with "
            f"scale={scale!r}, or change the scale of the whole."
        )


@dataclass(frozen=True, kw_only=True)
class Trial:
    """An arm and a seed: a pure function of what is written here."""

    sweep: str
    arm: str
    seed: int
    scale: str
    config: TrainConfig | None
    baseline: str | None
    settings: tuple[str, ...]
    radar: Radar | None
    test_sequences: int
    official_test: str | None = None

    @property
    def key(self) -> str:
        return f"{self.arm}-s{self.seed}"

    def to_plain(self) -> dict[str, Any]:
        plain = {**vars(self), "settings": list(self.settings)}
        plain["config"] = self.config.to_plain() if self.config else None
        plain["radar"] = vars(self.radar) if self.radar else None
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Trial:
        values = dict(plain)
        values["config"] = TrainConfig.from_plain(plain["config"]) if plain["config"] else None
        values["radar"] = Radar(**plain["radar"]) if plain["radar"] else None
        return cls(**{**values, "settings": tuple(plain["settings"])})

    @property
    def identity(self) -> str:
        """What decides the result. Paths and machines are left out, as in a config's identity."""
        plain = self.to_plain()
        plain["config"] = self.config.identity if self.config else None
        if plain["radar"]:
            plain["radar"] = {k: v for k, v in plain["radar"].items() if k != "store"}
        if plain.pop("official_test"):  # absent otherwise: trials from before there was a choice are still themselves
            plain["test_set"] = "official"
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Sweep:
    name: str
    question: str
    scale: str
    arms: Sequence[Arm]
    seeds: Sequence[int] = (1, 2, 3)
    comparisons: Sequence[tuple[str, str]] = ()  # pairs of arms, the first expected to be better
    radar: Radar | None = None
    test_sequences: int = 10_000  # of moving digits
    official_test: str | None = None  # the authors' file of test parameters; without it sequences are generated

    def __post_init__(self) -> None:
        names = [arm.name for arm in self.arms]
        if not NAME.fullmatch(self.name):
            raise ConfigError(f"Sweep {self.name!r}: a name is letters, digits, '.', '_' and '-'.")
        if not self.arms or not self.seeds:
            raise ConfigError(
                f"Sweep {self.name} has {len(self.arms)} arms and {len(self.seeds)} seeds: it needs both."
            )
        for what, values in (("arm", names), ("seed", list(self.seeds))):
            twice = [str(value) for value, n in Counter(values).items() if n > 1]
            if twice:
                raise ConfigError(f"Sweep {self.name} has {what} {', '.join(twice)} twice. Each counts once.")
        for pair in self.comparisons:
            for name in pair:
                if name not in names:
                    raise ConfigError(
                        f"Sweep {self.name} compares with arm {name!r}, which it does not have. "
                        f"Its arms are: {', '.join(names)}."
                    )
        for arm in self.arms:
            if arm.config is not None:
                check_scale(f"Sweep {self.name}: arm {arm.name}", arm.config, self.scale)
        digits = [arm.name for arm in self.arms if arm.on_digits]
        if 0 < len(digits) < len(names):
            others = ", ".join(name for name in names if name not in digits)
            raise ConfigError(
                f"Sweep {self.name} has arms on moving digits ({', '.join(digits)}) and on radar ({others}), which no "
                "table can hold. Make two sweeps of it."
            )
        if not digits and self.radar is None:
            raise ConfigError(f"Sweep {self.name}: arm {names[0]} is tested on radar; say on which store (radar=).")
        if self.official_test is not None:
            object.__setattr__(self, "official_test", absolute(self.official_test))
            self._check_official_test()

    def _check_official_test(self) -> None:
        """Networks that were made for another task are found out now, not after they were trained."""
        for data in dict.fromkeys(arm.config.data if arm.config else None for arm in self.arms):
            if not isinstance(data, DigitsData):
                raise ConfigError(f"Sweep {self.name}: official_test= is of moving digits, and its arms are on radar.")
            there = len(digits_test(data, official=self.official_test))
            if there != self.test_sequences:
                raise ConfigError(
                    f"Sweep {self.name}: {self.official_test} has {there} sequences, and all of them are the test. "
                    f"Leave out test_sequences (={self.test_sequences})."
                )

    @property
    def table(self) -> str:
        """Of `nowcastlab report`, in which its arms are rows."""
        return "mnist" if self.arms[0].on_digits else "hko7"

    @cached_property  # of a thousand trials, each with a config that is checked, making them takes seconds
    def trials(self) -> list[Trial]:
        """Seed by seed, so that a sweep stopped half-way has whole comparisons to show. A baseline has one trial."""
        trials = []
        for i, seed in enumerate(self.seeds):
            for arm in self.arms:
                if arm.config is not None or i == 0:
                    trials.append(self._trial(arm, seed if arm.config else 0))
        return trials

    def _trial(self, arm: Arm, seed: int) -> Trial:
        return Trial(
            sweep=self.name,
            arm=arm.name,
            seed=seed,
            scale=self.scale,
            config=replace(arm.config, seed=seed) if arm.config else None,
            baseline=arm.baseline,
            settings=arm.settings,
            radar=self.radar,
            test_sequences=self.test_sequences,
            official_test=self.official_test,
        )

    def to_plain(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "question": self.question,
            "scale": self.scale,
            "table": self.table,
            "comparisons": [list(pair) for pair in self.comparisons],
            "trials": {trial.key: {"identity": trial.identity, **trial.to_plain()} for trial in self.trials},
        }
