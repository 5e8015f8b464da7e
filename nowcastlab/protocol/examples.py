"""A few forecasts of a trial, kept to be looked at: what was seen, what came, what was forecast.

    examples = load_examples("examples.npz")
    examples.forecast[0]                        # (lead, y, x) of the first example

They are bytes, so some hundred kilobytes a trial. All arms of a sweep keep the same windows, so that their forecasts
can stand beside each other.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.models import Forecaster
from nowcastlab.moving_digits import TestSet
from nowcastlab.protocol.benchmark import HKO7, Benchmark, Sequences
from nowcastlab.protocol.offline import forecast_from
from nowcastlab.stamps import clock
from nowcastlab.store import Store
from nowcastlab.units import level_from_mmh
from nowcastlab.whole_files import whole_file

KEPT = 3  # examples a trial
LOOKED_AT = 40  # windows, spread over the run: enough to find rain, few enough to read at once
RAIN_MMH = 5.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Examples:
    """n examples of i frames in and l leads, on a grid of h x w pixels.

    labels        what each is: the time of its last input, as `2015-05-22 04:30`, or the number of a test sequence
    lead_minutes  of the leads; for moving digits, which have no minutes, their numbers from 1
    links         where a TrajGRU looks: the flows of its second encoder layer at the last input step, (dx, dy) in cells
                  of that layer's own grid; None for what has no links
    links_stride  pixels a cell of that grid
    excluded      what is not scored of a radar frame; None for moving digits
    """

    labels: tuple[str, ...]
    lead_minutes: tuple[int, ...]
    inputs: NDArray[np.uint8]  # (n, i, h, w)
    truth: NDArray[np.uint8]  # (n, l, h, w)
    forecast: NDArray[np.uint8]  # (n, l, h, w)
    links: NDArray[np.float32] | None = None  # (n, L, 2, h', w')
    links_stride: int = 1
    excluded: NDArray[np.bool_] | None = None  # (h, w)

    def __post_init__(self) -> None:
        n, leads, grid = len(self.labels), len(self.lead_minutes), self.inputs.shape[2:]
        if self.inputs.ndim != 4 or len(self.inputs) != n:
            raise ConfigError(f"`inputs` are {self.inputs.shape}; {n} labels want ({n}, frames, height, width).")
        for name in ("truth", "forecast"):
            if getattr(self, name).shape != (n, leads, *grid):
                raise ConfigError(f"`{name}` is {getattr(self, name).shape}; it must be {(n, leads, *grid)}.")
        if self.links is not None and (self.links.ndim != 5 or self.links.shape[0] != n or self.links.shape[2] != 2):
            raise ConfigError(f"`links` are {self.links.shape}; they must be ({n}, links, 2, height, width).")
        if self.excluded is not None and self.excluded.shape != grid:
            raise ConfigError(f"`excluded` is {self.excluded.shape}; frames are {grid}.")

    def __len__(self) -> int:
        return len(self.labels)


# --- making them


def rainy_windows(store: Store, sequences: Sequences, benchmark: Benchmark, count: int) -> list[int]:
    """Rows of windows worth a look: of some spread over the run, the wettest of each of `count` parts.

    By what was seen before forecasting, so known before the run: online, the forecast of a window cannot be made again
    after it.
    """
    if not count:
        return []
    rows = np.unique(np.linspace(0, len(sequences) - 1, min(LOOKED_AT, len(sequences))).round().astype(int))
    now = sequences.start[rows] + (benchmark.frames_in - 1) * store.interval_minutes
    frames = sequences.read(store, now)
    wet = ((frames.pixels >= level_from_mmh(RAIN_MMH)) & ~store.excluded).mean((1, 2))
    parts = np.array_split(np.arange(len(rows)), min(count, len(rows)))
    return [int(rows[part[np.argmax(wet[part])]]) for part in parts]


def radar_examples(
    model: Forecaster,
    store: Store,
    *,
    split: str = "test",
    limit: int | None = None,
    benchmark: Benchmark = HKO7,
    count: int = KEPT,
    device: torch.device | str = "cpu",
) -> Examples:
    """Of the windows a benchmark scores, a few with rain: the same ones for every forecaster, forecast offline."""
    sequences = benchmark.sequences(store, split).first(limit)
    starts = sequences.start[rainy_windows(store, sequences, benchmark, count)]
    pixels, present = sequences.read_windows(store, starts, benchmark.length)
    seen, there = pixels[:, : benchmark.frames_in], present[:, : benchmark.frames_in]
    forecast = forecast_from(model.to(device), seen, there, store.excluded, benchmark.leads, device)
    now = starts + (benchmark.frames_in - 1) * store.interval_minutes
    return Examples(
        labels=tuple(clock(minutes) for minutes in now),
        lead_minutes=tuple(int(minutes) for minutes in benchmark.lead_minutes(store)),
        inputs=seen,
        truth=pixels[:, benchmark.frames_in :],
        forecast=_bytes(forecast),
        excluded=store.excluded,
        **_links(model, torch.from_numpy(seen).to(device).float() / 255),
    )


@torch.inference_mode()
def digit_examples(
    model: Forecaster,
    test: TestSet,
    *,
    frames_in: int,
    leads: int,
    count: int = KEPT,
    device: torch.device | str = "cpu",
) -> Examples:
    """The first test sequences of moving digits. Light above 1, which digits reach, is drawn as 1."""
    frames = torch.from_numpy(test.batch(range(min(count, len(test))))).to(device)
    seen = frames[:, :frames_in]
    return Examples(
        labels=tuple(f"test sequence {i + 1}" for i in range(len(frames))),
        lead_minutes=tuple(range(1, leads + 1)),
        inputs=_bytes(seen),
        truth=_bytes(frames[:, frames_in : frames_in + leads]),
        forecast=_bytes(model.to(device).predict(seen, leads=leads)),
        **_links(model, seen),
    )


def _links(model: Forecaster, frames: torch.Tensor) -> dict[str, Any]:
    flows = model.links(frames)
    if flows is None:
        return {}
    links = flows.float().cpu().numpy()
    return {"links": links, "links_stride": frames.shape[-1] // links.shape[-1]}


def _bytes(p: torch.Tensor) -> NDArray[np.uint8]:
    return (p.clamp(0, 1) * 255).round().to(torch.uint8).cpu().numpy()


# --- keeping them


def save_examples(path: str | os.PathLike[str], examples: Examples) -> None:
    """Written whole or not at all."""
    arrays: dict[str, Any] = {
        "labels": np.array(examples.labels, np.str_),
        "lead_minutes": np.array(examples.lead_minutes, np.int64),
        "inputs": examples.inputs,
        "truth": examples.truth,
        "forecast": examples.forecast,
        "links_stride": np.array(examples.links_stride, np.int64),
    }
    arrays |= {name: getattr(examples, name) for name in ("links", "excluded") if getattr(examples, name) is not None}
    with whole_file(Path(path)) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def load_examples(path: str | os.PathLike[str]) -> Examples:
    """What `save_examples` wrote, or a StoreError that names the file."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as content:
            return Examples(
                labels=tuple(str(label) for label in content["labels"]),
                lead_minutes=tuple(int(minutes) for minutes in content["lead_minutes"]),
                inputs=content["inputs"],
                truth=content["truth"],
                forecast=content["forecast"],
                links=content.get("links"),
                links_stride=int(content["links_stride"]),
                excluded=content.get("excluded"),
            )
    # what numpy, zipfile and zlib raise on bytes that are not what they should be
    except (OSError, ValueError, EOFError, KeyError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise StoreError(f"{path} is not a file of example forecasts: {error}") from error
