"""The shell commands of a cluster file, and on which of its nodes they run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nowcastlab.cluster.document import Document, Finding, Place

HEAD, WORKERS = "head", "workers"
LISTS = {
    "initialization_commands": (HEAD, WORKERS),
    "setup_commands": (HEAD, WORKERS),
    "head_setup_commands": (HEAD,),
    "head_start_ray_commands": (HEAD,),
    "worker_setup_commands": (WORKERS,),
    "worker_start_ray_commands": (WORKERS,),
}


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command, where it stands, and the nodes it runs on."""

    place: Place
    text: str
    nodes: tuple[str, ...]

    def mounts(self, path: str) -> bool:
        """Whether it mounts a path, or stops where that is not mounted."""
        named = re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w./-])", self.text)
        return bool(named and re.search(r"\bmount(point)?\b", self.text))


def commands_of(document: Document) -> list[Command]:
    """All that the file would run, list by list."""
    return [
        Command(place=(name, i), text=text, nodes=nodes)
        for name, nodes in LISTS.items()
        for i, text in enumerate(document.sequence(name))
        if isinstance(text, str)
    ]


def settings(commands: list[Command], variable: str) -> Iterator[tuple[Command, str]]:
    """Where an environment variable is set, and to what."""
    for command in commands:
        for found in re.finditer(rf"(?<![\w$]){variable}=([^\s'\";]*)", command.text):
            yield command, found[1]


def swallowed(document: Document) -> Iterator[Finding]:
    """A comment in a folded block is part of the command, and takes along what follows: the lines are one by then, and
    Ray puts a bracket at its end."""
    for command in commands_of(document):
        outside = re.sub(r"'[^']*'|\"[^\"]*\"", "", command.text)
        found = re.search(r"\s#\s.*", outside)
        if found:
            yield document.finding(
                "This comment is inside a command, and hides the rest of it from the shell. Put it above the command.",
                *command.place,
                of=found[0].strip()[:12],
            )


def nodes_of(commands: list[Command]) -> set[str]:
    """The nodes on which at least one of the commands runs."""
    return {node for command in commands for node in command.nodes}
