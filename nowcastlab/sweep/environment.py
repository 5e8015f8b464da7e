"""What a trial ran with: the machine, every installed distribution with its version, the code's own."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import torch

from nowcastlab.training.machine import machine_facts, pick_device


def environment_facts(device: str = "auto") -> dict[str, str]:
    """The few facts a person filters by."""
    facts = machine_facts(pick_device(device))
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "device": facts["device"],
        "machine": platform.node(),
        "platform": platform.platform(),
        "cpus": str(os.cpu_count()),
    }


def environment_text(facts: dict[str, str]) -> str:
    """All of it, as a file to compare: two that differ say why two results may."""
    width = max(map(len, facts))
    lines = [f"{name:<{width}}  {value}" for name, value in facts.items()]
    return "\n".join([*lines, "", *distributions()]) + "\n"


@lru_cache(maxsize=1)  # reading every package's metadata takes a while; once a worker will do
def distributions() -> tuple[str, ...]:
    found = {(dist.metadata["Name"] or "?").lower(): dist.version for dist in metadata.distributions()}
    return tuple(f"{name}=={version}" for name, version in sorted(found.items()))


def code_version(package: Path = Path(__file__).parents[1]) -> str:
    """The commit the library runs from, and whether it was changed; or its release."""
    # Here, because workers import this module too, and one that stands beside a checkout called nowcastlab takes that
    # folder for the package: its modules are found there, what the package itself holds is not.
    from nowcastlab import __version__

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=package, capture_output=True, text=True, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # else the repository around it is somebody else's project
        return git("rev-parse", "HEAD") + ("+changed" if git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return __version__
