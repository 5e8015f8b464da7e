"""A store on the node's own disk: copied once, verified, shared by all that run there.

    store = open_near("/mnt/shared/hko7.zarr", digest)     # with NOWCASTLAB_LOCAL_STORE=/var/tmp/nowcastlab

Training reads the same few gigabytes again and again. From storage that a cluster shares that is its busiest traffic;
from a node's own disk it is none. The copy is named by the store's digest, so another store is another copy. It is made
beside its place by the first process that needs it, while the others wait; read in full against the hashes of the
store's record; and moved there in one step: what has the name is whole. Killed, the next one goes on where it stopped.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import fsspec

from nowcastlab.errors import CorruptStore, StoreError
from nowcastlab.store import record as record_file
from nowcastlab.store.check import check
from nowcastlab.store.reader import Store, open_store

VARIABLE = "NOWCASTLAB_LOCAL_STORE"
AT_ONCE = 8  # files on their way: shared storage answers slowly and in parallel
NAME_LENGTH = 32  # of the digest, in the copy's name

# In this process, by where a store is and what it holds; each with what its record looked like.
_opened: dict[tuple[str, str], tuple[Store, str]] = {}


def open_near(url: str, digest: str) -> Store:
    """The store that has this digest: a copy on this node where the environment names a folder for it, else itself.

    A store with another digest is opened as it is, for the caller to complain about.
    """
    folder = os.environ.get(VARIABLE)
    return open_store(url) if not folder else open_store(str(copy_here(url, digest, Path(folder)) or url))


def open_once(url: str, digest: str) -> Store:
    """`open_near`, once a process for as long as the store does not change: opening reads the record, and each shard is
    mapped once. A store with another digest is refused."""
    kept = _opened.get((url, digest))
    if kept is not None and _look(kept[0]) == kept[1]:
        return kept[0]
    store = open_near(url, digest)
    if store.digest != digest:
        raise StoreError(
            f"{url} is not the data this run was set up with: its digest is {store.digest}, the run's {digest}. Put "
            "that store back, or start a new run on this one."
        )
    _opened[url, digest] = store, _look(store)
    return store


def _look(store: Store) -> str:
    """Changes when the store's record is written, or is gone: a glance, where reading it takes a while."""
    filesystem, root = fsspec.core.url_to_fs(store.url)
    try:
        return filesystem.ukey(f"{root}/{record_file.FILE_NAME}")
    except FileNotFoundError:
        return ""


def open_anew() -> None:
    """Forget what is open: after an error, a store that lost a file may be what went wrong."""
    _opened.clear()


def copy_here(url: str, digest: str, folder: Path) -> Path | None:
    """The path of the verified copy, made now if need be; None if the store has another digest."""
    place = folder / f"{digest[:NAME_LENGTH]}.zarr"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder / f".{place.name}.lock"):
            if _whole(place, digest):
                return place
            source = Store(url, check_sizes=False)
            if source.digest != digest:
                return None
            _copy(source, place)
            return place
    except OSError as error:
        raise StoreError(
            f"Cannot keep a copy of {url} in {folder}: {error.strerror or error}. Mend that, name another folder in "
            f"{VARIABLE}, or unset it to read the store where it is."
        ) from error


def _whole(place: Path, digest: str) -> bool:
    """Whether the copy is there; one that lost a file since, as temporary folders do, is taken away."""
    if not place.exists():
        return False
    try:
        return Store(str(place)).digest == digest
    except StoreError:
        shutil.rmtree(place)
        return False


def _copy(source: Store, place: Path) -> None:
    copying = place.with_name(f".{place.name}.copying")
    filesystem, root = fsspec.core.url_to_fs(source.url)
    rows = {str(row): day.shard_bytes for row, day in enumerate(source.record.days) if day.content is not None}
    _check_space(source, copying, sum(rows.values()))

    def fetch(name: str) -> None:
        target = copying / name
        row = _row_of(name)
        if row is not None and target.exists() and target.stat().st_size == rows[row]:
            return  # from a copy that was cut short; whether it is right the check below will say
        target.parent.mkdir(parents=True, exist_ok=True)
        filesystem.get_file(f"{root}/{name}", str(target))
        with open(target, "rb") as file:
            os.fsync(file.fileno())

    names = [path[len(root) + 1 :] for path in filesystem.find(root)]
    wanted = [name for name in names if _row_of(name) in (None, *rows) and not name.endswith((".tmp", ".lock"))]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(fetch, wanted))
    # as the source had it when it was opened: days committed since are not in the digest
    (copying / record_file.FILE_NAME).write_bytes(source.record.dumps())
    # labels that other tools read may be behind an unfinished source; frames and the exclusion map may not
    findings = [finding for finding in check(str(copying)) if finding.day or "excluded" in finding.what]
    if findings:
        shutil.rmtree(copying)
        raise CorruptStore(
            f"A copy of {source.url} is not what was committed: {findings[0].what} Check the store itself with "
            f"`python -m data_pipeline check {source.url}`; if it is sound, run the same again.",
            day=findings[0].day,
        )
    os.rename(copying, place)


def _row_of(name: str) -> str | None:
    """The day's row in the record, if this is its shard."""
    parts = name.split("/")
    return parts[2] if parts[:2] == ["pixels", "c"] and len(parts) == 5 else None


def _check_space(source: Store, copying: Path, needed_bytes: int) -> None:
    there = sum(file.stat().st_size for file in copying.rglob("*") if file.is_file()) if copying.exists() else 0
    free = shutil.disk_usage(copying.parent).free + there
    if free < needed_bytes:
        raise StoreError(
            f"A copy of {source.url} takes {needed_bytes / 1e9:.1f} GB, and {copying.parent} has {free / 1e9:.1f} GB "
            f"free. Name a folder on a larger disk in {VARIABLE}, or unset it to read the store where it is."
        )


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One process of the node at a time; the kernel frees the lock of one that dies."""
    with open(lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
