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

CHANGED = "+changed"  # after a commit, where files differ from it


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
        "code": running_code(),
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


@lru_cache(maxsize=1)  # what this process imported, though a commit is made or a file edited while it lives
def running_code() -> str:
    return code_version()


def code_version(package: Path = Path(__file__).parents[1]) -> str:
    """The commit the library runs from, and whether it was changed; or its release."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=package, capture_output=True, text=True, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # else the repository around it is somebody else's project
        return git("rev-parse", "HEAD") + (CHANGED if git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        # Not the package's own __version__: a worker that stands beside a checkout called nowcastlab takes that folder
        # for the package. Its modules are found there, what the package itself holds is not.
        return metadata.version("nowcastlab")


def shown_code(version: str) -> str:
    """A version in a message: the commit by its beginning, and whether it was changed."""
    commit, changed, _ = version.partition(CHANGED)
    return (commit[:12] if len(commit) == 40 else commit) + changed
