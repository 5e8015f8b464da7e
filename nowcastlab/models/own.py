"""Models of your own: a file outside the package that registers a Forecaster by name.

    from nowcastlab.models import Forecaster, register

    @register("blend")
    class Blend(Forecaster): ...

A process knows the models of the files it has imported, and of those that NOWCASTLAB_MODELS names. Registering adds a
file to that variable, so that processes started from this one, Ray's workers among them, know it too.

A config carries a model's name and the digest of its file, never a path: opening somebody's run runs none of their
code, and a file that was changed after a run is noticed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from nowcastlab.errors import ConfigError
from nowcastlab.models.forecaster import Forecaster

VARIABLE = "NOWCASTLAB_MODELS"
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
CODE = "code"  # the override under which a config keeps the digest of the file

Model = TypeVar("Model", bound=type[Forecaster])


@dataclass(frozen=True, kw_only=True)
class OwnSpec:
    """What `build` builds: equal specs are equal models, because the file's digest is part of them."""

    name: str
    code: str
    options: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class OwnModel:
    name: str
    kind: type[Forecaster]
    file: Path
    code: str  # sha256 of the file
    options: tuple[str, ...]  # what its constructor takes; all have defaults

    def spec(self, overrides: Mapping[str, Any]) -> OwnSpec:
        given = dict(overrides)
        code = given.pop(CODE, self.code)
        if code != self.code:
            raise ConfigError(
                f"{self.file} is not what it was: this run's {self.name} had the code {code[:12]}, the file has "
                f"{self.code[:12]}. Put the file back as it was, or train anew in another folder."
            )
        unknown = sorted(set(given) - set(self.options))
        if unknown:
            raise ConfigError(
                f"Unknown override {', '.join(unknown)}. {self.name} takes: {', '.join(self.options) or 'none'}."
            )
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
        return OwnSpec(name=self.name, code=self.code, options=tuple(sorted(values.items())))


_own: dict[str, OwnModel] = {}


def keep(name: str) -> Callable[[Model], Model]:
    """The decorator behind `nowcastlab.models.register`."""
    if not NAME.fullmatch(name):
        raise ConfigError(f"Model {name!r}: a name is small letters, digits, '.', '_' and '-', as 'blend-2'.")

    def keeping(kind: Model) -> Model:
        if not (isinstance(kind, type) and issubclass(kind, Forecaster)):
            raise ConfigError(f"Model {name}: {kind!r} is no Forecaster. Write `class ...(Forecaster):`.")
        file = _file_of(name, kind)
        if name in _own and _own[name].file != file:
            raise ConfigError(f"Model {name} is in {_own[name].file} and in {file}: give one of them another name.")
        code = hashlib.sha256(file.read_bytes()).hexdigest()
        _own[name] = OwnModel(name=name, kind=kind, file=file, code=code, options=_options(name, kind))
        os.environ[VARIABLE] = os.pathsep.join(map(str, dict.fromkeys([*_named_files(), file])))
        return kind

    return keeping


def find(name: str) -> OwnModel | None:
    """A model of the user's by name, from the files imported or named."""
    _load_named_files()
    return _own.get(name)


def own_names() -> tuple[str, ...]:
    _load_named_files()
    return tuple(_own)


def build_own(spec: OwnSpec, *, seed: int) -> Forecaster:
    """The weights are drawn by torch's own layers, from the seed alone; the global random state is put back."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return _own[spec.name].kind(**dict(spec.options))


def _named_files() -> list[Path]:
    return [Path(part).resolve() for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]


def _load_named_files() -> None:
    for file in _named_files():
        if all(model.file != file for model in _own.values()):
            _load(file)


def _load(file: Path) -> None:
    if not file.is_file():
        raise ConfigError(f"{VARIABLE} names {file}, which is not there. Correct the variable, or unset it.")
    name = f"nowcastlab_own_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    found = importlib.util.spec_from_file_location(name, file)
    if found is None or found.loader is None:
        raise ConfigError(f"{VARIABLE} names {file}: models of your own are in .py files.")
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module  # where inspect and dataclasses look for a class's file
    try:
        found.loader.exec_module(module)
    except ConfigError:
        del sys.modules[name]
        raise
    except Exception as error:  # whatever the file does on its own account
        del sys.modules[name]
        raise ConfigError(f"{file} cannot be loaded: {type(error).__name__}: {error}") from error
    if all(model.file != file for model in _own.values()):
        raise ConfigError(f'{file} registers no model. Put @register("name") above its class.')


def _file_of(name: str, kind: type[Forecaster]) -> Path:
    try:
        found = inspect.getsourcefile(kind)
    except TypeError:  # a class of an interactive session
        found = None
    if found is None or not Path(found).is_file():
        raise ConfigError(f"Model {name} is in no file. Write it into one: Ray's workers read it from there.")
    return Path(found).resolve()


def _options(name: str, kind: type[Forecaster]) -> tuple[str, ...]:
    options = []
    for parameter in inspect.signature(kind).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.default is parameter.empty:
            raise ConfigError(
                f"Model {name}: its option {parameter.name} has no default. Give it one, so that the name alone is "
                "enough to build it."
            )
        if parameter.name == CODE:
            raise ConfigError(f"Model {name}: an option may not be called {CODE}, which is the digest of its file.")
        options.append(parameter.name)
    return tuple(options)
