"""Everything that forecasts, by name.

model = build("traj-l13")                                                  # as the paper has it
small = build("trajgru", "hko7", links=5, filters=(8, 12, 12), stem_filters=4, strides=(2, 2, 2))
model.predict(frames, leads=10)                                            # see models/forecaster.py

A model of your own is added from outside with `register`: see models/own.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from nowcastlab.errors import ConfigError
from nowcastlab.models import own
from nowcastlab.models.baselines import LastFrame
from nowcastlab.models.cnn import Cnn
from nowcastlab.models.dfn import DynamicFilterNetwork
from nowcastlab.models.encoder_forecaster import EncoderForecaster
from nowcastlab.models.forecaster import Forecaster
from nowcastlab.models.overrides import override
from nowcastlab.models.own import Model, OwnSpec
from nowcastlab.models.rover import Rover
from nowcastlab.models.spec import CnnSpec, RecurrentSpec
from nowcastlab.models.zoo import SETTINGS, ZOO, Spec, conv_gru, traj_gru

__all__ = ["BASELINES", "Forecaster", "build", "names", "register", "spec_of"]


# They have no weights and nothing to configure, and are the same for every dataset.
BASELINES: dict[str, Callable[[], Forecaster]] = {
    "last-frame": LastFrame,
    "rover": partial(Rover, nonlinear=False),
    "rover-nonlinear": partial(Rover, nonlinear=True),
}


def names(dataset: str) -> tuple[str, ...]:
    """The names `build` knows for a dataset: networks, then the user's own, then baselines.

    MovingMNIST++ also takes any `traj-l7` or `conv-k3-d1`.
    """
    _check_dataset(dataset)
    return (*ZOO[dataset], *own.own_names(), *BASELINES)


def register(name: str) -> Callable[[Model], Model]:
    """Add a Forecaster of your own, for every dataset: `@register("blend")` above its class. See models/own.py."""
    if name in BASELINES or any(name in entries for entries in ZOO.values()) or _patterned(name):
        raise ConfigError(f"'{name}' is a model of nowcastlab already. Give yours another name.")
    return own.keep(name)


def spec_of(name: str, dataset: str = "mnist", **overrides: Any) -> Spec | OwnSpec | None:
    """What `build` would build, as a value to compare, hash and keep; None for a baseline, which has nothing to set."""
    _check_dataset(dataset)
    if name in BASELINES:
        if overrides:
            raise ConfigError(f"{name} has nothing to configure; got {', '.join(sorted(overrides))}.")
        return None
    mine = own.find(name)
    return mine.spec(overrides) if mine else override(_named(name, dataset), overrides)


def build(
    name: str, dataset: str = "mnist", *, seed: int = 0, checkpointing: bool = False, **overrides: Any
) -> Forecaster:
    """A forecaster by name, its weights a function of (spec, seed) alone; the global random state is not touched.

    overrides       fields of the network's spec (models/spec.py), and `strides` for grids the paper's do not divide.
                    `links=7` means 7 on every layer. Of the user's own models, their constructor's arguments.
    checkpointing   recurrent networks give up stored activations for a second forward pass. CNNs and baselines, which
                    have no sequence of states to store, are the same with and without.
    """
    spec = spec_of(name, dataset, **overrides)
    if spec is None:
        return BASELINES[name]()
    if isinstance(spec, OwnSpec):
        return own.build_own(spec, seed=seed)
    if isinstance(spec, CnnSpec):
        return Cnn(spec, seed=seed)
    network = DynamicFilterNetwork if spec.local_filter else EncoderForecaster
    return network(spec, seed=seed, checkpointing=checkpointing)


def _named(name: str, dataset: str) -> Spec:
    if name in ZOO[dataset]:
        return ZOO[dataset][name].spec
    patterned = _patterned(name) if dataset == "mnist" else None
    if patterned is not None:
        return patterned
    elsewhere = [other for other in ZOO if name in ZOO[other]]
    hint = f" '{name}' is a name of {elsewhere[0]}." if elsewhere else ""
    more = "; any traj-lL or conv-kK-dD, as traj-l7" if dataset == "mnist" else ""
    raise ConfigError(f"No model '{name}' for {dataset}.{hint} The models are: {', '.join(names(dataset))}{more}.")


def _patterned(name: str) -> RecurrentSpec | None:
    """The paper's names with other numbers in them."""
    if found := re.fullmatch(r"traj-l(\d+)", name):
        return traj_gru(int(found[1]))
    if found := re.fullmatch(r"conv-k(\d+)-d(\d+)", name):
        return conv_gru(int(found[1]), int(found[2]))
    return None


def _check_dataset(dataset: str) -> None:
    if dataset not in ZOO:
        known = ", ".join(f"{key} ({setting.title})" for key, setting in SETTINGS.items())
        raise ConfigError(f"No dataset '{dataset}'. The datasets are: {known}.")
