"""Checkpoints that are whole or not there.

    checkpoints/
      step-00000400/  state.pt  manifest.json     the newest two: all that decides how the run goes on
      best-00000300/  state.pt  manifest.json     the weights of the best validation (of each of the two, if it differs)

A checkpoint is written beside its place, forced to disk, and moved there in one step. Its manifest, which carries a
hash of itself, holds the size and hash of the state; both are checked before anything is loaded, and what is loaded is
tensors and plain values, never a pickle's code. A newest checkpoint that is damaged gives way to the one before.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nowcastlab.errors import TrainingError
from nowcastlab.whole_files import sync_folder

FOLDER = "checkpoints"
STATE, MANIFEST = "state.pt", "manifest.json"
VERSION = 1
KEPT = 2  # the newest, and one to fall back to


class CheckpointWarning(UserWarning):
    """A checkpoint could not be used, and another one was."""


class DamagedCheckpoint(Exception):
    """Why a checkpoint cannot be trusted; stays inside this package."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    path: Path
    step: int
    facts: dict[str, Any]  # the manifest's plain values: whose run, on what data
    state: dict[str, Any]


class Checkpoints:
    def __init__(self, run: Path | str) -> None:
        self.folder = Path(run) / FOLDER

    def steps(self, kind: str = "step") -> list[int]:
        """The steps there are checkpoints of, newest first; damaged ones too."""
        found = (path.name.partition("-") for path in self.folder.glob(f"{kind}-*"))
        return sorted((int(number) for _, _, number in found if number.isdigit()), reverse=True)

    def path(self, kind: str, step: int) -> Path:
        return self.folder / f"{kind}-{step:08d}"

    def save(self, kind: str, step: int, state: Mapping[str, Any], facts: Mapping[str, Any]) -> Path:
        """Write a checkpoint; when this returns it is on disk, and when it is cut short it never was."""
        buffer = io.BytesIO()  # in memory first: a full disk then fails with its own error, not with torch's
        torch.save(dict(state), buffer)
        content = buffer.getvalue()
        manifest = {"version": VERSION, "kind": kind, "step": step, "bytes": len(content), "sha256": _hash(content)}
        place, writing = self.path(kind, step), self.folder / f".writing-{kind}-{step:08d}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(writing, ignore_errors=True)
            writing.mkdir()
            _write(writing / STATE, content)
            _write(writing / MANIFEST, _sealed({**manifest, "facts": dict(facts)}))
            sync_folder(writing)
            if place.exists():  # a damaged one, or one from before a fall-back
                shutil.rmtree(place)
            os.rename(writing, place)
            sync_folder(self.folder)
        except OSError as error:
            shutil.rmtree(writing, ignore_errors=True)
            raise TrainingError(
                f"Cannot write the checkpoint of step {step} ({len(content) / 1e6:.1f} MB) to {self.folder}: "
                f"{error.strerror or error}. Mend that and run the same again: it goes on from the checkpoint before."
            ) from error
        return place

    def load(self, kind: str, step: int) -> Checkpoint:
        """A checkpoint whose every byte is as it was written, or DamagedCheckpoint."""
        path = self.path(kind, step)
        try:
            manifest = _unsealed((path / MANIFEST).read_bytes())
            content = (path / STATE).read_bytes()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DamagedCheckpoint(f"{path.name}: {error}") from None
        if manifest["version"] != VERSION:
            raise TrainingError(
                f"{path} is a checkpoint of version {manifest['version']}; this nowcastlab reads version {VERSION}. "
                "Go on with the nowcastlab that wrote it, or start a new run."
            )
        if (manifest["kind"], manifest["step"]) != (kind, step):
            raise DamagedCheckpoint(f"{path.name}: it says it is {manifest['kind']}-{manifest['step']:08d}")
        if len(content) != manifest["bytes"] or _hash(content) != manifest["sha256"]:
            raise DamagedCheckpoint(
                f"{path.name}: {STATE} is not as it was written ({len(content)} of {manifest['bytes']} bytes)"
            )
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        return Checkpoint(path=path, step=step, facts=manifest["facts"], state=state)

    def newest(self, *, with_best: bool = True) -> Checkpoint | None:
        """The newest checkpoint a run can go on from, with its best beside it; None if there never was one.

        The weights of the best validation cannot be had again by going on, only by going back before it; so to go on, a
        checkpoint whose best is damaged is no better than a damaged one.
        """
        problems = []
        for step in self.steps():
            try:
                checkpoint = self.load("step", step)
                best = checkpoint.facts["best_step"]
                if best and with_best:
                    self.load("best", best)
            except DamagedCheckpoint as problem:
                problems.append(str(problem))
                continue
            if problems:
                warnings.warn(
                    f"A newer checkpoint in {self.folder} is damaged ({'; '.join(problems)}): using step {step}.",
                    CheckpointWarning,
                    stacklevel=2,
                )
            return checkpoint
        if problems:
            raise TrainingError(
                f"No checkpoint in {self.folder} can be used ({'; '.join(problems)}). Delete that folder to start this "
                "run again from its first step; the result will be the same."
            )
        return None

    def newest_of(self, kind: str) -> Checkpoint | None:
        """The newest sound checkpoint of a kind that needs no other beside it; None if there is none."""
        for step in self.steps(kind):
            try:
                return self.load(kind, step)
            except DamagedCheckpoint as problem:
                warnings.warn(
                    f"A checkpoint in {self.folder} is damaged ({problem}): using an earlier one, or beginning anew.",
                    CheckpointWarning,
                    stacklevel=2,
                )
        return None

    def keep_newest(self, kind: str) -> None:
        """Drop all but the newest two of a kind."""
        for step in self.steps(kind)[KEPT:]:
            shutil.rmtree(self.path(kind, step), ignore_errors=True)

    def drop_after(self, step: int) -> None:
        """Forget what is newer than the checkpoint a run goes on from: it was damaged, and will be made again."""
        for newer in self.steps():
            if newer > step:
                shutil.rmtree(self.path("step", newer), ignore_errors=True)

    def tidy(self) -> None:
        """Keep the newest two, the best each of them speaks of, and nothing half-written."""
        kept = self.steps()[:KEPT]
        doomed = [self.path("step", step) for step in self.steps() if step not in kept]
        best = {self._best_of(step) for step in kept}
        if None not in best:  # of a damaged one nobody knows what it needs
            doomed += [self.path("best", step) for step in self.steps("best") if step not in best]
        for path in (*doomed, *self.folder.glob(".writing-*")):
            shutil.rmtree(path, ignore_errors=True)

    def _best_of(self, step: int) -> int | None:
        try:
            return _unsealed((self.path("step", step) / MANIFEST).read_bytes())["facts"]["best_step"]
        except (OSError, ValueError, KeyError, TypeError):
            return None


def _sealed(manifest: Mapping[str, Any]) -> bytes:
    text = json.dumps(manifest, sort_keys=True)
    return json.dumps({"seal": _hash(text.encode()), "manifest": manifest}, sort_keys=True, indent=1).encode()


def _unsealed(content: bytes) -> dict[str, Any]:
    sealed = json.loads(content)
    if _hash(json.dumps(sealed["manifest"], sort_keys=True).encode()) != sealed["seal"]:
        raise ValueError(f"{MANIFEST} is not as it was written")
    return sealed["manifest"]


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write(path: Path, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
