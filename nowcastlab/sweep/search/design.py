"""A search as a value: ranges to look in, and the config that each point of them makes.

    Search(
        name="links-search",
        question="Which learning rate, width and number of links?",
        scale="demo",
        space={"learning_rate": Real(low=3e-4, high=1e-2), "links": Whole(low=5, high=17, step=4)},
        config=lambda values: mnist_config("traj-l13", learning_rate=values["learning_rate"], ...),
        first_rung=10,
    )

The first points are spread over the space, the others proposed by Optuna's TPE sampler. They are judged by validation,
never by the test set. Most trials are stopped early by asynchronous successive halving (ASHA, Li et al. 2020): of those
that reach a rung (first_rung updates, then `reduction` times as many, and so on) only the best 1/reduction go on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import qmc

from nowcastlab.config import TrainConfig
from nowcastlab.errors import ConfigError
from nowcastlab.sweep.design import NAME, Trial, check_scale


@dataclass(frozen=True, kw_only=True)
class Real:
    """Any number of a range."""

    low: float
    high: float
    log: bool = True  # as many tries between 0.001 and 0.01 as between 0.01 and 0.1


@dataclass(frozen=True, kw_only=True)
class Whole:
    """low, low + step, low + 2 step, ... up to high."""

    low: int
    high: int
    step: int = 1


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One of a few values."""

    values: tuple[str | int | float | bool, ...]


Range = Real | Whole | Choice


@dataclass(frozen=True, kw_only=True)
class Search:
    name: str
    question: str
    scale: str
    space: Mapping[str, Range]
    config: Callable[[Mapping[str, Any]], TrainConfig]
    first_rung: int  # updates before a trial may be stopped; a multiple of its validate_every
    reduction: int = 3
    spread_trials: int = 5  # spread over the space, before the sampler goes by what it has seen
    seed: int = 1  # of the sampler, and of every trial: all start from the same weights and see the same data

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ConfigError(f"Search {self.name!r}: a name is letters, digits, '.', '_' and '-'.")
        if not self.space:
            raise ConfigError(f"Search {self.name} has nothing to look for: give it a space.")
        if self.reduction < 2:
            raise ConfigError(f"Search {self.name}: reduction (={self.reduction}) must be at least 2.")
        for name, wide in self.space.items():
            if isinstance(wide, Choice):
                if not wide.values:
                    raise ConfigError(f"Search {self.name}: {name} has no values to choose from.")
            elif not wide.low < wide.high:
                raise ConfigError(f"Search {self.name}: {name} goes from {wide.low} to {wide.high}: low must be lower.")
            elif isinstance(wide, Real) and wide.log and wide.low <= 0:
                raise ConfigError(
                    f"Search {self.name}: {name} begins at {wide.low}; a logarithmic range begins above 0."
                )
        for corner in self.corners():  # a network that cannot be built is found out now
            config = self.config(corner)
            check_scale(f"Search {self.name}: a trial", config, self.scale)
            if self.first_rung % config.validate_every or not 0 < self.first_rung <= config.max_steps:
                raise ConfigError(
                    f"Search {self.name}: first_rung (={self.first_rung}) must be a multiple of validate_every "
                    f"(={config.validate_every}) and at most max_steps (={config.max_steps})."
                )

    def corners(self) -> list[dict[str, Any]]:
        """All ranges at their low end, and all at their high one."""
        ends = {
            name: (wide.values[0], wide.values[-1]) if isinstance(wide, Choice) else (wide.low, wide.high)
            for name, wide in self.space.items()
        }
        return [{name: both[i] for name, both in ends.items()} for i in (0, 1)]

    def rungs(self, max_steps: int) -> set[int]:
        """The updates at which a trial is judged; at its end there is nothing left to save."""
        found, rung = set(), self.first_rung
        while rung < max_steps:
            found.add(rung)
            rung *= self.reduction
        return found

    def spread_point(self, number: int) -> dict[str, Any]:
        """One of a Halton sequence: a handful of them cover the space better than as many random points."""
        parts = qmc.Halton(len(self.space), rng=np.random.default_rng(self.seed)).random(number + 1)[-1]
        return {name: _at(wide, part) for (name, wide), part in zip(self.space.items(), parts, strict=True)}

    def trial(self, number: int, values: Mapping[str, Any]) -> Trial:
        return Trial(
            sweep=self.name,
            arm=f"t{number:03d}",
            seed=self.seed,
            scale=self.scale,
            config=replace(self.config(values), seed=self.seed),
            baseline=None,
            settings=(),  # looked at by validation only: the test set is for what is chosen in the end
            radar=None,
            test_sequences=0,
        )

    def to_plain(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "question": self.question,
            "scale": self.scale,
            "sampler": f"optuna TPESampler after {self.spread_trials} Halton points, seed {self.seed}",
            "pruner": f"ASHA, first rung {self.first_rung} updates, reduction {self.reduction}",
            "space": {name: {"kind": type(wide).__name__, **asdict(wide)} for name, wide in self.space.items()},
            "configs": [self.config(corner).to_plain() for corner in self.corners()],
        }

    @property
    def identity(self) -> str:
        """What decides where it looks, and what it finds there."""
        decides = {k: v for k, v in self.to_plain().items() if k not in ("question", "configs")}
        decides["configs"] = [self.config(corner).identity for corner in self.corners()]
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()


def _at(wide: Range, part: float) -> Any:
    """A value of a range, 0 <= part < 1 of the way through it."""
    if isinstance(wide, Choice):
        return wide.values[int(part * len(wide.values))]
    if isinstance(wide, Whole):
        return wide.low + wide.step * int(part * ((wide.high - wide.low) // wide.step + 1))
    if wide.log:
        return float(wide.low * (wide.high / wide.low) ** part)
    return float(wide.low + (wide.high - wide.low) * part)


def shown(value: Any) -> str:
    """A value of a range, short enough for a table."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
