"""One training run as a frozen value: equal configs train equal networks, and `identity` is the hash of that.

    config = radar_config("trajgru", store="work/demo.zarr")          # config/presets.py
    slower = replace(config, learning_rate=3e-5)                      # dataclasses.replace, checked anew

A config that exists has been checked, each field alone and against the others; nothing was built for it.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from nowcastlab.config.checks import device, frozen, number, one_of, text, truth, whole
from nowcastlab.config.data import ELSEWHERE, KINDS, Data, DigitsData
from nowcastlab.config.network import check_network, code_of, frames_asked
from nowcastlab.errors import ConfigError
from nowcastlab.losses import LOSSES

VERSION = 1  # of the plain form; part of the identity
PRECISIONS = ("float32", "bfloat16")
DIGITS_LOSS = "mse"  # the mean over pixels; a radar loss of that name is a frame's sum
MOST_THREADS = 512  # of torch, which ends the process where it cannot start them
LARGEST_SEED = 2**63 - 1  # a whole number of 64 bits: torch overflows at longer ones


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    data: Data = field(hash=False)

    # the network
    model: str  # a name of nowcastlab.models.names(data.dataset)
    overrides: Mapping[str, Any] = field(default_factory=dict, hash=False)  # of its spec, as filters=(8, 12, 12)
    recompute: bool = False  # recurrent networks: activations computed twice rather than stored
    seed: int = 0  # of the first weights and of the data order

    # what is minimised: loss_scale * loss
    loss: str  # of nowcastlab.losses
    loss_scale: float = 1.0

    # Adam
    learning_rate: float = 1e-4
    beta1: float = 0.5
    beta2: float = 0.999
    epsilon: float = 1e-8
    lr_decay: float = 1.0  # the factor, every lr_decay_every updates, not below lr_floor
    lr_decay_every: int = 20_000
    lr_floor: float = 0.0
    clip_norm: float | None = None  # of the whole gradient
    batch_size: int = 4
    precision: str = "float32"  # bfloat16: forward pass in autocast, weights and loss stay float32

    # how long, in updates
    max_steps: int
    validate_every: int  # and at the end
    patience: int = 0  # stop after so many validations without a new best; 0 never stops early
    valid_batch_size: int = 8
    report_every: int = 100
    checkpoint_every: int = field(default=1000, metadata=ELSEWHERE)  # and after every validation

    # where: does not change what is computed, beyond the last bits
    device: str = field(default="auto", metadata=ELSEWHERE)  # auto, cpu, cuda, cuda:1
    threads: int = field(default=0, metadata=ELSEWHERE)  # of torch on the CPU; 0 leaves them as they are

    # labels, for tables that must not mix: where the values above came from
    scale: str = "own"
    preset: str = "own"

    def __post_init__(self) -> None:
        self._check_alone()
        self._check_together()
        check_network(
            self.model,
            self.data.dataset,
            self.network_overrides,
            height=self.data.height,
            width=self.data.width,
            batch_size=self.batch_size,
        )

    def _check_alone(self) -> None:
        if not isinstance(self.data, tuple(KINDS.values())):
            raise ConfigError(f"data (={self.data!r}) must be one of: {', '.join(k.__name__ for k in KINDS.values())}.")
        text("model", self.model)
        overrides = _table("overrides", self.overrides, example="{'filters': [8, 12, 12]}")
        keep = {"overrides": frozen("overrides", {**code_of(self.model), **overrides})}
        truth("recompute", self.recompute)
        one_of("loss", self.loss, LOSSES)
        one_of("precision", self.precision, PRECISIONS)
        for name in (
            "max_steps",
            "validate_every",
            "report_every",
            "checkpoint_every",
            "batch_size",
            "valid_batch_size",
        ):
            whole(name, getattr(self, name), least=1)
        whole("lr_decay_every", self.lr_decay_every, least=1)
        whole("seed", self.seed, least=0, most=LARGEST_SEED)
        whole("patience", self.patience, least=0)
        whole("threads", self.threads, least=0, most=MOST_THREADS)
        for name in ("learning_rate", "loss_scale", "epsilon"):
            keep[name] = number(name, getattr(self, name), above=0)
        for name in ("beta1", "beta2"):
            keep[name] = number(name, getattr(self, name), least=0, most=1)
            if keep[name] == 1:
                raise ConfigError(f"{name} (=1) would never forget the first gradient. Adam wants it below 1, as 0.5.")
        keep["lr_decay"] = number("lr_decay", self.lr_decay, above=0, most=1)
        keep["lr_floor"] = number("lr_floor", self.lr_floor, least=0)
        if self.clip_norm is not None:
            keep["clip_norm"] = number("clip_norm", self.clip_norm, above=0)
        device(self.device)
        for name in ("scale", "preset"):
            text(name, getattr(self, name))
        for name, value in keep.items():
            object.__setattr__(self, name, value)

    def _check_together(self) -> None:
        for name in ("validate_every", "report_every"):
            if getattr(self, name) > self.max_steps:
                raise ConfigError(
                    f"{name} (={getattr(self, name)}) is more than max_steps (={self.max_steps}): it would never come. "
                    f"Use {self.max_steps} or less."
                )
        if self.lr_floor > self.learning_rate:
            raise ConfigError(
                f"lr_floor (={self.lr_floor:g}) is above learning_rate (={self.learning_rate:g}). Lower the floor."
            )
        if isinstance(self.data, DigitsData) and self.loss != DIGITS_LOSS:
            raise ConfigError(
                f"loss (={self.loss!r}) weighs rain rates, and digits have none. Use {DIGITS_LOSS!r} for moving digits."
            )
        taken = sorted({"in_frames", "out_frames"} & set(self.overrides))
        if taken:
            raise ConfigError(
                f"overrides.{taken[0]} (={self.overrides[taken[0]]!r}) follows from data.in_frames "
                f"(={self.data.in_frames}) and data.leads (={self.data.leads}). Change those."
            )

    @property
    def network_overrides(self) -> dict[str, Any]:
        """The overrides, and for a CNN, whose layers fix them, the numbers of frames in and out."""
        frames = {"in_frames": self.data.in_frames, "out_frames": self.data.leads}
        return {**{name: frames[name] for name in frames_asked(self.model, self.data.dataset)}, **self.overrides}

    # --- plain form

    def to_plain(self) -> dict[str, Any]:
        """JSON's kinds only; `from_plain` gives the same config back."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        data = {"kind": self.data.kind, **{f.name: getattr(self.data, f.name) for f in fields(self.data)}}
        # through JSON itself: what is tuples here are lists there
        return json.loads(json.dumps({"version": VERSION, **plain, "data": data}, allow_nan=False))

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """The config of a plain form, checked like any other."""
        values = _table("a config", plain, example="that of a run's config.json")
        version = values.pop("version", None)
        if version != VERSION:
            raise ConfigError(f"This config is version {version!r}; this nowcastlab reads version {VERSION}.")
        data = _table("data", values.pop("data", {}), example="{'kind': 'digits', ...}")
        kind = KINDS[one_of("data.kind", data.pop("kind", None), KINDS)]
        _refuse_unknown(data, kind, prefix="data.")
        _refuse_unknown(values, cls)
        try:
            return cls(data=kind(**data), **values)
        except TypeError as error:  # a field is missing
            raise ConfigError(f"This config is not complete: {error}.") from None

    @property
    def identity(self) -> str:
        """What decides the result, as a hash. Where the data lies, the device and the like are not part of it."""
        plain = self.to_plain()
        for values, owner in ((plain, self), (plain["data"], self.data)):
            for f in fields(owner):
                if not f.metadata.get("identity", True):
                    del values[f.name]
        return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def differences(self, other: TrainConfig) -> dict[str, tuple[Any, Any]]:
        """The fields in which two configs differ, `data.leads` and `overrides.links` by their dotted names."""
        mine, theirs = _flat(self.to_plain()), _flat(other.to_plain())
        names = [*mine, *(name for name in theirs if name not in mine)]
        return {n: (mine.get(n), theirs.get(n)) for n in names if mine.get(n) != theirs.get(n)}


def with_changes(config: TrainConfig, changes: Mapping[str, Any]) -> TrainConfig:
    """A variant, its changes named as a user would: `learning_rate`, `data.leads`, `overrides.links`.

    All changes are made at once, so two that need each other may come in any order.
    """
    top: dict[str, Any] = {}
    data: dict[str, Any] = {}
    overrides = _table("overrides", changes.get("overrides", config.overrides), example="{'filters': [8, 12, 12]}")
    for name, value in changes.items():
        if name.startswith("data."):
            data[name.removeprefix("data.")] = value
        elif name.startswith("overrides."):
            overrides[name.removeprefix("overrides.")] = value
        else:
            top[name] = value
    _refuse_unknown(data, type(config.data), prefix="data.")
    _refuse_unknown(top, type(config))
    if data:
        top["data"] = replace(top.get("data", config.data), **data)
    return replace(config, **{**top, "overrides": overrides})


def _table(name: str, value: Any, *, example: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} (={value!r}) must be a table, as {example}.")
    return dict(value)


def _refuse_unknown(values: Mapping[str, Any], owner: type[Any], *, prefix: str = "") -> None:
    known = [f.name for f in fields(owner)]
    for name in values:
        if name not in known:
            listed = ", ".join(prefix + k for k in known)
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
            hint = f" Did you mean '{prefix}{close[0]}'?" if close else ""
            raise ConfigError(f"No setting '{prefix}{name}'.{hint} The settings are: {listed}.")


def _flat(plain: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in plain.items():
        if isinstance(value, dict):
            flat.update({f"{name}.{key}": inner for key, inner in value.items()})
        else:
            flat[name] = value
    return flat
