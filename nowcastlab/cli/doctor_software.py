"""What runs on the machine, as `nowcastlab doctor` sees it: versions, kernels, Ray, MLflow, data."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from nowcastlab.cli.finding import NOTE, OK, PROBLEM, Finding
from nowcastlab.errors import NowcastlabError

PACKAGE = "nowcastlab"
INSTALL = "pip install -c constraints.txt -e ."
# Ours are written so: "ray[default,tune]<3,>=2.60", with a marker behind the extras' ones.
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[.*?\])?(?P<bounds>[^;]*)(;(?P<marker>.*))?")
BOUND = re.compile(r"\s*(>=|<)\s*([0-9.]+)")


def python() -> Iterator[Finding]:
    from nowcastlab import __version__

    bounds = metadata.metadata(PACKAGE)["Requires-Python"] or ""
    version = ".".join(map(str, sys.version_info[:3]))
    found = f"{version} in {sys.prefix}, nowcastlab {__version__}"
    if within(version, bounds):
        yield Finding(what="python", state=OK, found=found)
    else:
        yield Finding(
            what="python",
            state=PROBLEM,
            found=f"{found}; it takes {bounds}",
            todo=f"Make an environment with such a Python, then {INSTALL}",
        )


def versions() -> Iterator[Finding]:
    """Against what nowcastlab declares; in a checkout also against the versions it was tested with."""
    bad, count = [], 0
    for name, bounds in _requirements():
        count += 1
        installed = _installed(name)
        if installed is None:
            bad.append(f"{name} is missing")
        elif not within(installed, bounds):
            bad.append(f"{name} {installed} is not {bounds}")
    if bad:
        yield Finding(what="versions", state=PROBLEM, found="; ".join(bad), todo=INSTALL)
        return
    pins = _pins()
    other = [
        f"{name} {have} (tested: {pin})"
        for name, pin in pins.items()
        if (have := _installed(name)) is not None and have.split("+")[0] != pin
    ]
    if other:
        more = f" and {len(other) - 5} more" if len(other) > 5 else ""
        yield Finding(
            what="versions",
            state=NOTE,
            found=f"others than the tested ones: {', '.join(other[:5])}{more}",
            todo=f"To have those of constraints.txt: {INSTALL}",
        )
    else:
        tested = ", all as tested" if pins else ""
        yield Finding(what="versions", state=OK, found=f"{count} requirements met{tested}")


def kernel() -> Iterator[Finding]:
    """The compiled warp, asked for what is known: a field moved by one pixel."""
    import torch

    from nowcastlab.models.warp import warp, warp_kernel

    field = torch.arange(12.0).reshape(1, 1, 3, 4)
    flow = torch.zeros(1, 2, 1, 3, 4)
    flow[:, 0] = 1  # every pixel reads its right neighbour
    seen, expected = warp(field, flow)[0, 0, 0], torch.nn.functional.pad(field[0, 0, :, 1:], (0, 1))
    if not torch.equal(seen, expected):
        yield Finding(
            what="numba",
            state=PROBLEM,
            found="the compiled warp gives wrong numbers",
            todo=f"Clear numba's cache (__pycache__/*.nbi in {Path(__file__).parents[1] / 'models'}), then {INSTALL}",
        )
    elif warp_kernel is None:
        yield Finding(
            what="numba",
            state=NOTE,
            found="cannot be imported; networks work without it, several times slower, scores and moving digits do not",
            todo=INSTALL,
        )
    else:
        yield Finding(what="numba", state=OK, found=f"{_installed('numba')}, the compiled warp is right")


def own_models() -> Iterator[Finding]:
    from nowcastlab.models.own import VARIABLE, own_names

    files = os.environ.get(VARIABLE)
    if not files:
        return
    try:
        yield Finding(what="models", state=OK, found=f"{VARIABLE} adds {', '.join(own_names())}")
    except NowcastlabError as error:
        yield Finding(what="models", state=PROBLEM, found=str(error), todo=f"Mend the file, or unset {VARIABLE}.")


def digits() -> Iterator[Finding]:
    """Whether MNIST is in the cache, and whole. scikit-learn's digits are always there, and take seconds to load."""
    from nowcastlab.moving_digits import load_digits
    from nowcastlab.moving_digits.digits import MNIST, TRAIN_IMAGES, mnist_folder

    if not (mnist_folder() / TRAIN_IMAGES).exists():
        yield Finding(
            what="digits",
            state=NOTE,
            found="MNIST is not in the cache; scikit-learn's digits stand in, and results do not compare with MNIST's",
            todo="To have MNIST: python -m data_pipeline digits --fetch (with npm), or --from FOLDER",
        )
        return
    try:
        yield Finding(what="digits", state=OK, found=f"MNIST, {len(load_digits(MNIST)):,} images")
    except NowcastlabError as error:
        yield Finding(what="digits", state=PROBLEM, found=str(error), todo="python -m data_pipeline digits --fetch")


def ray() -> Iterator[Finding]:
    from nowcastlab import engine

    found = engine.version()
    address = os.environ.get("RAY_ADDRESS")
    if not address:
        yield Finding(what="ray", state=OK, found=f"{found}; sweeps start it here, as RAY_ADDRESS is not set")
    elif address in ("auto", "local"):
        yield Finding(what="ray", state=OK, found=f"{found}; RAY_ADDRESS={address} is found when a sweep starts")
    elif (place := engine.host_and_port(address)) is None:
        yield Finding(
            what="ray",
            state=PROBLEM,
            found=f"{found}; RAY_ADDRESS={address} is not an address",
            todo="Write HOST:PORT, as 192.0.2.10:6379, or unset RAY_ADDRESS to use this machine.",
        )
    elif engine.answers(*place):
        yield Finding(what="ray", state=OK, found=f"{found}; the cluster at {address} answers")
    else:
        yield Finding(
            what="ray",
            state=PROBLEM,
            found=f"{found}; nothing answers at RAY_ADDRESS={address}",
            todo="Start the cluster (ray up cluster.yaml), or unset RAY_ADDRESS to use this machine.",
        )
    token = Path.home() / ".ray" / "auth_token"
    if token.exists() and token.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        yield Finding(what="ray token", state=NOTE, found=f"others may read {token}", todo=f"chmod 600 {token}")


def tracking() -> Iterator[Finding]:
    from nowcastlab.tracking import connect, sweep_names, tracking_uri
    from nowcastlab.tracking.backend import SQLITE, database_path, shown

    uri = tracking_uri()
    if uri.startswith(SQLITE) and not (path := database_path(uri)).exists():
        yield Finding(what="tracking", state=OK, found=f"no {path} yet; the first sweep makes it")
        return
    try:
        known = sweep_names(connect(uri))
    except NowcastlabError as error:
        todo = "Start that server, or unset MLFLOW_TRACKING_URI to use a local file."
        if uri.startswith(SQLITE):
            todo = f"If an older MLflow made it: mlflow db upgrade {uri}. Else move the file away."
        yield Finding(what="tracking", state=PROBLEM, found=str(error), todo=todo)
        return
    yield Finding(what="tracking", state=OK, found=f"{shown(uri)} answers; sweeps: {', '.join(known) or 'none yet'}")


def store(url: str) -> Iterator[Finding]:
    from nowcastlab.store import open_store

    try:
        opened = open_store(url)
        _ = opened.excluded
    except NowcastlabError as error:
        yield Finding(
            what="store",
            state=PROBLEM,
            found=str(error),
            todo=f"What is wrong with which day: python -m data_pipeline check {url}",
        )
        return
    frames = sum(day.frames for day in opened.days)
    height, width = opened.grid
    found = f"{url}: {frames:,} frames of {height}x{width}, digest {opened.digest[:16]}, record sound"
    splits = {day.split for day in opened.days if day.frames}
    if missing := [split for split in ("train", "valid", "test") if split not in splits]:
        yield Finding(
            what="store",
            state=NOTE,
            found=f"{found}; no day for {', '.join(missing)}",
            todo="Enough to try a trained model on. To train: docs/your-own-radar.md.",
        )
    else:
        yield Finding(what="store", state=OK, found=found)


def within(version: str, bounds: str) -> bool:
    """Whether 2.60.1 is within "<3,>=2.60"."""
    have = _numbers(version)
    return all((have >= _numbers(n)) if sign == ">=" else (have < _numbers(n)) for sign, n in BOUND.findall(bounds))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.match(r"[0-9.]*", version)[0].split(".") if part)  # type: ignore[index]


def _requirements() -> Iterator[tuple[str, str]]:
    for line in metadata.requires(PACKAGE) or []:
        found = REQUIREMENT.fullmatch(line)
        assert found, line
        if not found["marker"]:  # extras are for those who ask
            yield found["name"], found["bounds"].strip()


def _pins() -> dict[str, str]:
    """Of constraints.txt, where this is a checkout."""
    path = Path(__file__).parents[2] / "constraints.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return dict(line.split("==") for line in lines if "==" in line)


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
