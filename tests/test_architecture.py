"""The house rules of the design, read off the imports."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LIBRARY = ROOT / "nowcastlab"

# Top to bottom: a module imports only from lines above its own, or from its own line.
LAYERS = [
    ["compiled"],
    ["errors", "whole_files", "stamps"],
    ["units", "progress", "metric_names"],
    ["store", "windows", "moving_digits"],
    ["models", "losses"],
    ["config"],
    ["skill"],
    ["training"],
    ["protocol"],
    ["significance"],
    ["figures"],
    ["engine", "cluster"],
    ["tracking"],
    ["sweep"],
    ["report"],
    ["bench"],
    ["cli"],
]
HEIGHT = {name: i for i, layer in enumerate(LAYERS) for name in layer}

# What the outside worlds are called, and who may speak to them.
OWNERS = {
    "ray": {"nowcastlab.engine", "nowcastlab.sweep", "nowcastlab.cluster"},
    "mlflow": {"nowcastlab.tracking"},
    "zarr": {"nowcastlab.store"},
    "numcodecs": {"nowcastlab.store"},
    "click": {"nowcastlab.cli", "nowcastlab.bench", "data_pipeline"},
    "optuna": {"nowcastlab.sweep"},
}


def modules(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*.py"))


def dotted(path: Path) -> str:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


def imports(path: Path) -> set[str]:
    """Every module a file imports, wherever in the file it does so."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            assert node.module
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", modules(LIBRARY), ids=dotted)
def test_imports_point_downward(path: Path) -> None:
    room = [*dotted(path).split("."), ""][1]
    if not room:  # nowcastlab/__init__.py itself
        assert not any(name.startswith("nowcastlab.") for name in imports(path))
        return
    assert room in HEIGHT, f"nowcastlab/{room} has no place in LAYERS: give it one"
    for name in imports(path):
        if name.startswith("nowcastlab.") and name != "nowcastlab.__version__":
            other = name.split(".")[1]
            assert HEIGHT[other] <= HEIGHT[room], f"{dotted(path)} imports {name}, which stands above it"
            same_layer = HEIGHT[other] == HEIGHT[room]
            assert (
                not same_layer or other == room or LAYERS[HEIGHT[room]].index(other) < LAYERS[HEIGHT[room]].index(room)
            ), f"{dotted(path)} imports {name}, which stands beside it"


@pytest.mark.parametrize("path", modules(LIBRARY) + modules(ROOT / "data_pipeline"), ids=dotted)
def test_each_outside_world_has_one_owner(path: Path) -> None:
    for name in imports(path):
        owners = OWNERS.get(name.split(".")[0])
        if owners is not None:
            allowed = any(dotted(path) == owner or dotted(path).startswith(f"{owner}.") for owner in owners)
            assert allowed, f"{dotted(path)} imports {name}; that is for {sorted(owners)}"


@pytest.mark.parametrize("path", modules(LIBRARY), ids=dotted)
def test_the_library_knows_neither_its_recipes_nor_its_sources(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path)} & {"sweeps", "data_pipeline", "tests"}


@pytest.mark.parametrize("path", modules(LIBRARY) + modules(ROOT / "data_pipeline"), ids=dotted)
def test_no_pickle_is_ever_loaded(path: Path) -> None:
    """A foreign pickle runs code: torch.load says weights_only=True, numpy never allow_pickle."""
    assert "pickle" not in {name.split(".")[0] for name in imports(path)}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            keywords = {k.arg: k.value for k in node.keywords}
            if ast.unparse(node.func) == "torch.load":
                assert ast.unparse(keywords["weights_only"]) == "True"
            if "allow_pickle" in keywords:
                assert ast.unparse(keywords["allow_pickle"]) == "False"
