"""A spec with some of its values changed: any link count, kernel, dilation, width or stride.

Values come from code or from a config file, so a list does for a tuple, and one number for a number a layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from nowcastlab.errors import ConfigError
from nowcastlab.models.spec import CnnLayer, CnnSpec, RecurrentSpec, Resample
from nowcastlab.models.zoo import Spec

PER_LAYER = {"filters", "links", "state_kernels", "state_dilations"}

# What the tuples of a spec are made of.
PARTS: dict[str, type] = {
    **dict.fromkeys(PER_LAYER, int),
    "downs": Resample,
    "ups": Resample,
    "encoder": CnnLayer,
    "forecaster": CnnLayer,
}

# What each cell needs a value of, layer by layer.
CELLS = {
    "conv_gru": ("state_kernels", "state_dilations"),
    "traj_gru": ("links",),
    "conv_lstm": ("state_kernels", "state_dilations"),
}


def override(spec: Spec, overrides: Mapping[str, Any]) -> Spec:
    """`dataclasses.replace` with checks, and with `strides`, which is no field: the encoder's, from the finest grid."""
    changes = dict(overrides)
    known = [field.name for field in fields(spec)]
    unknown = sorted(set(changes) - {*known, "strides"})
    if unknown:
        raise ConfigError(
            f"Unknown override {', '.join(unknown)}. This network takes: {', '.join([*known, 'strides'])}."
        )
    strides = changes.pop("strides", None)
    layers = len(spec.filters) if isinstance(spec, RecurrentSpec) else 0
    if isinstance(changes.get("filters"), list | tuple):
        layers = len(changes["filters"])
    for name, value in changes.items():
        if isinstance(value, list):
            changes[name] = tuple(value)
        elif name in PER_LAYER and isinstance(value, int):
            changes[name] = (value,) * layers
        _check_kind(name, changes[name], getattr(spec, name))
    spec = replace(spec, **changes)
    for name in ("filters",) if isinstance(spec, RecurrentSpec) else ("encoder", "forecaster"):
        if not getattr(spec, name):
            raise ConfigError(f"{name} (=()) makes no layer at all. Give a value for each of them.")
    if strides is not None:
        spec = with_strides(spec, tuple(strides) if isinstance(strides, list | tuple) else (strides,))
    if isinstance(spec, RecurrentSpec):
        _check_recurrent(spec)
    else:
        _check_positive(in_frames=spec.in_frames, out_frames=spec.out_frames, base_filters=spec.base_filters)
    return spec


def with_strides(spec: Spec, strides: tuple[int, ...]) -> Spec:
    """The same network for another grid: small frames want small strides.

    A stride that stays keeps its kernel. A new one gets kernel stride + 2 and padding 1, the paper's own rule for its
    strides 5 and 3, which divides any multiple of the stride exactly on the way down and restores it on the way up.
    """
    old = encoder_strides(spec)
    if len(strides) != len(old) or not all(isinstance(s, int) and s >= 1 for s in strides):
        raise ConfigError(f"strides (={strides}) must be {len(old)} whole numbers from 1, one for each of {old}.")
    if isinstance(spec, RecurrentSpec):
        stem, *downs = (_restride(step, s) for step, s in zip((spec.stem, *spec.downs), strides, strict=True))
        *ups, head = (_restride(step, s) for step, s in zip((*spec.ups, spec.head), reversed(strides), strict=True))
        return replace(spec, stem=stem, downs=tuple(downs), ups=tuple(ups), head=head)
    depth = len(strides)
    bridge, ups_and_rest = spec.forecaster[0], spec.forecaster[1:]
    encoder = tuple(_restride_layer(layer, s) for layer, s in zip(spec.encoder, strides, strict=True))
    undone = tuple(_restride_layer(x, s) for x, s in zip(ups_and_rest[:depth], reversed(strides), strict=True))
    return replace(spec, encoder=encoder, forecaster=(bridge, *undone, *ups_and_rest[depth:]))


def encoder_strides(spec: Spec) -> tuple[int, ...]:
    """From the finest grid to the coarsest; their product must divide a grid's sides."""
    if isinstance(spec, CnnSpec):
        return tuple(layer.space.stride for layer in spec.encoder)
    return (spec.stem.stride, *(down.stride for down in spec.downs))


def _restride(step: Resample, stride: int) -> Resample:
    return step if step.stride == stride else Resample(kernel=stride + 2, stride=stride, pad=1)


def _restride_layer(layer: CnnLayer, stride: int) -> CnnLayer:
    return replace(layer, space=_restride(layer.space, stride))


def _check_kind(name: str, value: Any, before: Any) -> None:
    """A value must be of the kind of the one it replaces: a number for a number, a tuple for a tuple."""
    kind = PARTS.get(name, type(before))
    parts = value if isinstance(value, tuple) else (value,)
    fits = isinstance(value, tuple) == isinstance(before, tuple)
    if not fits or not all(isinstance(part, kind) and not isinstance(part, bool) for part in parts):
        wanted = {
            int: "a whole number" + (", or one for each layer" if name in PER_LAYER else ""),
            str: "a word",
        }.get(kind, f"made of {kind.__name__} (nowcastlab.models.spec); a config file changes `strides` instead")
        raise ConfigError(f"{name} (={value!r}) must be {wanted}.")


def _check_recurrent(spec: RecurrentSpec) -> None:
    """What must agree across the fields, before anything is built."""
    if spec.cell not in CELLS:
        raise ConfigError(f"cell (={spec.cell!r}) must be one of {', '.join(CELLS)}.")
    layers = len(spec.filters)
    for name in CELLS[spec.cell]:
        values = getattr(spec, name)
        if len(values) != layers:
            raise ConfigError(
                f"{name} (={values}) must have one value for each of the {layers} layers of filters (={spec.filters}) "
                f"in a {spec.cell} network."
            )
        _check_positive(**{name: min(values)})
    if {len(spec.downs), len(spec.ups)} != {layers - 1}:
        raise ConfigError(
            f"filters (={spec.filters}) make {layers} layers, which need {layers - 1} downs and ups between them; "
            f"this network has {len(spec.downs)} and {len(spec.ups)}."
        )
    kernels = (*spec.state_kernels, spec.input_kernel, *((spec.local_filter,) if spec.local_filter else ()))
    if bad := [k for k in kernels if k < 1 or k % 2 == 0]:
        raise ConfigError(f"A kernel of {bad[0]} has no middle pixel: kernels are odd, as 3, 5 or 7.")
    if spec.local_filter and spec.stem.stride != 1:
        raise ConfigError(
            f"local_filter (={spec.local_filter}) needs a filter for every pixel, so the stem's stride "
            f"(={spec.stem.stride}) must be 1; give strides=(1, ...)."
        )
    _check_positive(filters=min(spec.filters), stem_filters=spec.stem_filters, flow_filters=spec.flow_filters)


def _check_positive(**values: int) -> None:
    for name, value in values.items():
        if not isinstance(value, int) or value < 1:
            raise ConfigError(f"{name} (={value!r}) must be a whole number from 1.")
