"""A run's folder: one process at a time, and one config for good.

config.json     the run as it was asked for
history.jsonl   what it reported: history.py
checkpoints/    checkpoints.py
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nowcastlab.config import TrainConfig
from nowcastlab.errors import ConfigError, StoreError, TrainingError
from nowcastlab.whole_files import write_atomically

CONFIG = "config.json"
LOCK = ".lock"


@contextmanager
def claim(folder: Path) -> Iterator[None]:
    """Make the folder, and keep every other process from training in it. The kernel lets go when this one dies."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise TrainingError(f"Cannot train in {folder}: {error.strerror}. Choose another folder.") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TrainingError(
                f"Another process is training in {folder}. Wait for it to end, or choose another folder."
            ) from None
        yield
    finally:
        os.close(lock)


def settle_config(folder: Path, config: TrainConfig) -> None:
    """Write the config of a new run, or make sure that a run goes on as it began."""
    check_config(folder, config)
    if read_config(folder) != config:  # new, or the same run on moved data or another device
        write_atomically(folder / CONFIG, json.dumps(config.to_plain(), indent=1).encode())


def check_config(folder: Path, config: TrainConfig) -> None:
    """Raise if the folder holds another run."""
    begun = read_config(folder)
    if begun is not None and begun.identity != config.identity:
        if begun.data.kind == config.data.kind and begun.data.digest != config.data.digest:
            raise StoreError(
                f"The data changed under the run in {folder}: it began on digest {begun.data.digest}, now it is "
                f"{config.data.digest}. Put the data back as it was, or train in another folder."
            )
        changed = [f"{name} was {was}, now {now}" for name, (was, now) in begun.differences(config).items()]
        raise ConfigError(
            f"The run in {folder} was begun with another config: {'; '.join(changed)}. Run it as it was begun, or "
            "choose another folder."
        )


def read_config(folder: Path | str) -> TrainConfig | None:
    """The config of the run in a folder; None if there is no run."""
    path = Path(folder) / CONFIG
    if not path.is_file():
        return None
    try:
        plain = json.loads(path.read_bytes())
    except ValueError as error:
        raise TrainingError(
            f"{path} is damaged ({error}). Delete it and run the same command again: it is written anew."
        ) from None
    return TrainConfig.from_plain(plain)
