"""What can be known to go wrong, said before the first trial: data or code that are not what they were, no space, no
machine that is large enough. A sweep's names and seeds are checked when it is made (design), its models with their
configs."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import torch

from nowcastlab import engine
from nowcastlab.config import TrainConfig
from nowcastlab.errors import ConfigError, NowcastlabError, StoreError
from nowcastlab.store import open_store
from nowcastlab.sweep.design import ONLINE, Arm
from nowcastlab.sweep.environment import CHANGED, running_code, shown_code
from nowcastlab.sweep.folder import SweepFolder
from nowcastlab.training import build_model
from nowcastlab.training.task import open_task

# Bytes a weight, in float32: a checkpoint to go on from has it three times, with Adam's two averages, and the best has
# it once. Two of each are kept; of an online run, two more to go on from.
CHECKPOINTS = 2 * (3 + 1) * 4
ONLINE_CHECKPOINTS = 2 * 3 * 4
SMALL_FILES = 500_000  # a trial: scores, history, examples, pictures, and their copies in MLflow


def check_sweep(folder: SweepFolder) -> None:
    """Raise what would fail every trial of an arm, or the whole sweep half-way."""
    sweep = folder.sweep
    check_code(folder, running_code())
    if sweep.radar is not None:
        digest = open_store(sweep.radar.store).digest
        if digest != sweep.radar.digest:
            raise StoreError(
                f"{sweep.radar.store} changed under the sweep: its digest was {sweep.radar.digest[:16]}, now it is "
                f"{digest[:16]}. Put the store back as it was, or give the sweep another name."
            )
    check_data({f"Arm {arm.name}": arm.config for arm in sweep.arms if arm.config is not None})
    check_space("sweep", folder.path, space_needed(folder), trials=len(folder.missing()))


def check_code(folder: SweepFolder, now: str) -> None:
    """What is missing would be done by the code that did the rest: a table of two versions is refused at the end, by
    the same comparison (report/collect.py)."""
    if not folder.missing():
        return
    before = Counter(code for code in folder.codes().values() if code != now)
    for code, count in before.most_common(1):
        changes = ", with the changes it had," if code.endswith(CHANGED) else ""
        raise ConfigError(
            f"{count} of {len(folder.sweep.trials)} trials in {folder.path} finished with code {shown_code(code)}, and "
            f"this is {shown_code(now)}: one table cannot hold both. Check that version out{changes} to go on; or do "
            "all of them with this one, under another name of the sweep, or with another --folder and "
            "MLFLOW_TRACKING_URI."
        )


def check_data(configs: Mapping[str, TrainConfig]) -> None:
    """Every store and digit set is here and is what the configs were made with, and has windows to train on."""
    seen = set()
    for name, config in configs.items():
        if config.data not in seen:
            seen.add(config.data)
            try:
                # on the CPU: the machine that starts a sweep need not have the GPU its trials run on
                open_task(config, torch.device("cpu"))
            except NowcastlabError as error:
                raise type(error)(f"{name}: {error}") from None


def check_space(what: str, path: Path, needed: int, *, trials: int) -> None:
    """Enough is free for what the missing trials of a sweep or a search will leave."""
    free = shutil.disk_usage(path).free
    if needed > free:
        raise ConfigError(
            f"The {what} needs about {size(needed)} more in {path}, for the checkpoints and scores of {trials} trials, "
            f"and {size(free)} are free there. Make room, or choose another folder (--folder)."
        )


def space_needed(folder: SweepFolder) -> int:
    """Bytes the missing trials will add to what they have written already."""
    each = {arm.name: _bytes_of(arm) for arm in folder.sweep.arms}
    return sum(max(0, each[trial.arm] - _bytes_in(folder.trial(trial))) for trial in folder.missing())


def check_cluster(cpus_each: float, gpus_each: float, say: Callable[[str], None]) -> None:
    """`check_machines` on what Ray is connected to. A cluster may still grow, so there it is said, and waited for."""
    try:
        check_machines(cpus_each, gpus_each, engine.machines())
    except ConfigError as error:
        if not os.environ.get("RAY_ADDRESS"):
            raise
        say(f"{error} Waiting, in case the cluster grows.")


def check_machines(cpus_each: float, gpus_each: float, nodes: list[dict[str, float]]) -> None:
    """Some machine can hold a trial: Ray would wait for one for ever."""
    if any(node.get("CPU", 0) >= cpus_each and node.get("GPU", 0) >= gpus_each for node in nodes):
        return
    have = "; ".join(f"{node.get('CPU', 0):g} CPUs, {node.get('GPU', 0):g} GPUs" for node in nodes)
    raise ConfigError(
        f"A trial asks for {cpus_each:g} CPUs and {gpus_each:g} GPUs, and no machine here has them ({have}). "
        "Ask for less (--cpus-per-trial, --gpus-per-trial), or join a larger cluster (RAY_ADDRESS)."
    )


def size(count: int) -> str:
    """A number of bytes as people say it."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count / 1000:.0f} kB"


def trial_bytes(config: TrainConfig, *, online: bool = False) -> int:
    """What one trial leaves."""
    weights = sum(parameter.numel() for parameter in build_model(config).parameters())
    return weights * (CHECKPOINTS + ONLINE_CHECKPOINTS * online) + SMALL_FILES


def _bytes_of(arm: Arm) -> int:
    return trial_bytes(arm.config, online=ONLINE in arm.settings) if arm.config is not None else SMALL_FILES


def _bytes_in(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # a worker that outlives its driver by a moment still moves files here
                total += os.stat(os.path.join(parent, name)).st_size
    return total
