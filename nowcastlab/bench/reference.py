"""The plain recurrent networks, which live with the tests: the yardstick of `nowcastlab bench models`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from nowcastlab.errors import ConfigError

PATH = Path(__file__).parents[2] / "tests" / "models" / "reference.py"


def load_reference(path: Path = PATH) -> Any:
    """The module. It is not installed with the library, so it is loaded from the checkout by its path."""
    spec = importlib.util.spec_from_file_location("nowcastlab_reference", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ConfigError(
            f"The plain reference is not at {path}: it is part of the source tree, not of an installed package. "
            "Run this from a checkout installed with `pip install --editable .`."
        )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
