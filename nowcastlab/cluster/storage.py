"""Whether what trials write can be seen by the node that carries on with it.

The file says so in two variables that its setup commands export: NOWCASTLAB_SHARED, where the store and the sweeps'
folders lie, on storage that every node mounts; and NOWCASTLAB_LOCAL_STORE, each node's own copy of the store.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nowcastlab.cluster.commands import HEAD, WORKERS, Command, commands_of, nodes_of, settings
from nowcastlab.cluster.document import Document, Finding
from nowcastlab.cluster.security import CLOUDS


def lonely_storage(document: Document) -> Iterator[Finding]:
    """Storage that is meant for all nodes and that only some see; a database where it would be lost."""
    commands = commands_of(document)
    shared = list(settings(commands, "NOWCASTLAB_SHARED"))
    if not shared:
        yield document.finding(
            "The file does not say what storage all nodes share. Export NOWCASTLAB_SHARED in setup_commands: the "
            "folder for the store and the sweeps, mounted on every node.",
            "setup_commands",
        )
        return
    for command, path in shared:
        yield from _shared(document, commands, command, path.rstrip("/"))
    places = [path.rstrip("/") for _, path in shared]
    for command, path in settings(commands, "NOWCASTLAB_LOCAL_STORE"):
        if _below(path, places):
            yield document.finding(
                f"NOWCASTLAB_LOCAL_STORE={path} lies on the shared storage: a copy there saves nothing. Name a folder "
                "of the node's own disk.",
                *command.place,
                of="NOWCASTLAB_LOCAL_STORE",
            )
    yield from _database(document, commands, places)


def _shared(document: Document, commands: list[Command], said: Command, path: str) -> Iterator[Finding]:
    if not path.startswith("/"):
        yield document.finding(
            f"NOWCASTLAB_SHARED={path}: sweeps need a folder with an absolute path, mounted on every node; a bucket's "
            "URL or a home folder is none.",
            *said.place,
            of="NOWCASTLAB_SHARED",
        )
        return
    for target in document.mapping("file_mounts"):
        if _below(path, [str(target)]):
            yield document.finding(
                f"{path} is copied to each node by file_mounts: what one writes there no other sees. Mount it.",
                "file_mounts",
                target,
            )
            return
    seen = nodes_of([command for command in commands if command.mounts(path)])
    if seen != {HEAD, WORKERS}:
        whom = f"only the {seen.pop()}" if seen else "no node"
        yield document.finding(
            f"{path} is to be shared, but {whom} mounts it. A `mount` of it, or a `mountpoint -q` that stops where it "
            "is not mounted, belongs to setup_commands, which run on every node.",
            *said.place,
            of="NOWCASTLAB_SHARED",
        )


def _database(document: Document, commands: list[Command], shared: list[str]) -> Iterator[Finding]:
    """MLflow's sqlite wants a disk of the head's that is there tomorrow."""
    for command in commands:
        for path in re.findall(r"sqlite:///(\S+)", command.text):
            if _below(path, shared):
                yield document.finding(
                    f"{path} is on network storage, where sqlite's locks do not hold. Put it on a disk of the head.",
                    *command.place,
                    of="sqlite:",
                )
            elif document.get("provider", "type") in CLOUDS and not _on_a_mount(path, commands):
                yield document.finding(
                    f"{path} is on the head's own disk, which goes when the head goes. Attach a volume that stays, "
                    "mount it in head_setup_commands, and put the database there.",
                    *command.place,
                    of="sqlite:",
                )


def _on_a_mount(path: str, commands: list[Command]) -> bool:
    parts = path.split("/")
    above = ["/".join(parts[:n]) for n in range(2, len(parts))]
    return any(place and command.mounts(place) for place in above for command in commands if HEAD in command.nodes)


def _below(path: str, places: list[str]) -> bool:
    return any(path.rstrip("/") == place.rstrip("/") or path.startswith(place.rstrip("/") + "/") for place in places)
