"""Where a run computes: its device and threads, set for its time only, and remembered because they decide last bits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from nowcastlab.config import TrainConfig, checks
from nowcastlab.errors import ConfigError


def pick_device(name: str) -> torch.device:
    """The device of that name; `auto` is a GPU where there is one."""
    if checks.device(name) == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device.type == "cuda" and (device.index or 0) >= count:
        raise ConfigError(f"device (={name!r}): this machine has {count} CUDA devices. Use 'auto' or 'cpu'.")
    return device


@contextmanager
def computing(config: TrainConfig) -> Iterator[torch.device]:
    """The config's device, with its threads, and on a GPU the convolutions that give one result every time."""
    device = pick_device(config.device)
    with threads(config.threads), torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True):
        yield device


@contextmanager
def threads(count: int) -> Iterator[None]:
    """So many threads of torch for a while; 0 leaves them as they are."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def machine_facts(device: torch.device) -> dict[str, Any]:
    """What must be the same for a resumed run to end the same to the bit, where it can (see loop.py)."""
    chip = torch.cuda.get_device_name(device) if device.type == "cuda" else torch.backends.cpu.get_cpu_capability()
    return {"device": f"{device.type}, {chip}", "threads": torch.get_num_threads(), "torch": str(torch.__version__)}
