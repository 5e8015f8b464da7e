"""Whether a network of that name, so changed, works on that grid, found out before it is built.

A grid's fate depends on strides and kernels, not on widths. So a twin with one filter a layer is built and asked: that
takes milliseconds where the paper's CNNs take a second and a quarter of a gigabyte.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from nowcastlab.errors import ConfigError
from nowcastlab.models import BASELINES, build, names, spec_of
from nowcastlab.models.overrides import encoder_strides
from nowcastlab.models.own import CODE, OwnSpec, find
from nowcastlab.models.spec import CnnSpec, RecurrentSpec, fitting_strides


def is_cnn(model: str, dataset: str) -> bool:
    return isinstance(spec_of(model, dataset), CnnSpec)


def is_own(model: str) -> bool:
    """Whether it is a model of the user's, from a file outside the package."""
    return find(model) is not None


def code_of(model: str) -> dict[str, str]:
    """The override that says which code a model of the user's has; none for nowcastlab's own."""
    mine = find(model)
    return {CODE: mine.code} if mine else {}


def frames_asked(model: str, dataset: str) -> tuple[str, ...]:
    """Which numbers of frames a network must be told when it is built: CNNs both, the user's own what they take."""
    mine = find(model)
    asked = ("in_frames", "out_frames")
    if mine is not None:
        return tuple(name for name in asked if name in mine.options)
    return asked if is_cnn(model, dataset) else ()


def check_trainable(model: str, dataset: str) -> None:
    """A baseline is refused, with the names that can be trained."""
    if model in BASELINES:
        networks = ", ".join(name for name in names(dataset) if name not in BASELINES)
        raise ConfigError(f"{model} has nothing to train. The networks are: {networks}.")


def check_network(
    model: str, dataset: str, overrides: Mapping[str, Any], *, height: int, width: int, batch_size: int
) -> None:
    check_trainable(model, dataset)
    spec_of(model, dataset, **overrides)  # never from the cache: a file of the user's may have changed
    _check(model, dataset, json.dumps(overrides, sort_keys=True), height, width, batch_size)


@lru_cache(maxsize=1024)
def _check(model: str, dataset: str, overrides_json: str, height: int, width: int, batch_size: int) -> None:
    overrides = json.loads(overrides_json)
    spec = spec_of(model, dataset, **overrides)
    if isinstance(spec, RecurrentSpec):
        thin = {**overrides, "filters": [1] * len(spec.filters), "stem_filters": 1, "flow_filters": 1}
        build(model, dataset, **thin).check_grid(height, width)
    elif isinstance(spec, OwnSpec):
        network = build(model, dataset, **overrides)
        if not any(parameter.requires_grad for parameter in network.parameters()):
            raise ConfigError(f"{model} has no weights to train.")
        network.check_grid(height, width)
    elif isinstance(spec, CnnSpec):
        build(model, dataset, **{**overrides, "base_filters": 1}).check_grid(height, width)
        coarsest = [height, width]
        for stride in encoder_strides(spec):
            coarsest = [side // stride for side in coarsest]
        if batch_size * coarsest[0] * coarsest[1] == 1 and any(layer.norm for layer in spec.encoder):
            raise ConfigError(
                f"batch_size (=1) leaves batch norm one value a channel on the {coarsest[0]}x{coarsest[1]} grid that "
                f"strides {encoder_strides(spec)} make of {height}x{width}. Use a larger batch, or smaller strides."
            )


def strides_for(model: str, dataset: str, *, height: int, width: int) -> tuple[int, ...]:
    """The network's own strides where they suit a grid, else the nearest that do."""
    spec = spec_of(model, dataset)
    assert isinstance(spec, RecurrentSpec | CnnSpec)
    return fitting_strides(encoder_strides(spec), height, width)
