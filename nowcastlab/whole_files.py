"""Files that are whole or not there: whoever reads one, at any moment and after any crash, finds the old content or
the new, never half of either.

    write_atomically(folder / "result.json", json.dumps(result).encode())

    with whole_file(folder / "scores.npz") as file:
        np.savez_compressed(file, mse=mse)

A folder that must be whole is another matter: see `training.checkpoints` and `store.local_copy`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file in one step; when this returns the new content is on disk."""
    with whole_file(path) as file:
        file.write(data)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, that takes its place when the block ends. If the block fails, it was never there."""
    # Beside its place, as only a move within a file system is one step. A name of its own, so that two who write the
    # same file do not write into each other's; hidden, and not ending as the file does, so that no pattern finds it.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # before the move: a crash may otherwise leave the new name with nothing in it
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):  # what went wrong first is what is told
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Force to disk which names are in a folder, without which a move may be undone by a power cut."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
