"""A synthetic plan to disk: straight into a store, or as files laid out like a real archive."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import cv2
import numpy as np

from data_pipeline import archive_layout as layout
from data_pipeline.synth.days import Sky, SyntheticDay, SyntheticPlan
from data_pipeline.synth.rain import AREA_KM
from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.progress import progress
from nowcastlab.store import StoreWriter
from nowcastlab.units import valid_pixels

LIST_NAME = "synthetic"
PLANTED_FILE = "planted_clutter.npz"


def title(plan: SyntheticPlan) -> str:
    # A store goes on only under the title it was begun with: so the seed is in it.
    return f"synthetic radar (seed {plan.seed})"


def write_store(plan: SyntheticPlan, path: Path, *, undenoised: bool = False) -> None:
    """Fill a store with the plan's days; run again, it makes the days that are missing.

    `undenoised` keeps the clutter out of the exclusion map, for denoising to find.
    """
    if plan.off_grid:
        raise ConfigError("Stamps off the grid come as files only: add --archive, then ingest it.")
    sky = Sky(plan)
    exclusion = sky.exclusion
    with StoreWriter.create(
        path,
        dates=plan.dates,
        grid=(plan.size, plan.size),
        interval_minutes=plan.interval_minutes,
        km_per_pixel=AREA_KM / plan.size,
        title=title(plan),
        excluded=exclusion.out_boundary if undenoised else exclusion.excluded,
        attributes={"source": "synthetic", "synthetic_seed": plan.seed},
    ) as writer:
        writer.set_labels(splits=plan.splits)  # not given above: a longer plan moves days to other splits
        for date in progress(writer.missing, label="synth", unit="day"):
            day = sky.day(date)
            receipt = writer.write_day(date, day.minutes, day.frames)
            writer.set_labels(gauge_mm={date: day.gauge_mm})
            writer.commit(receipt)


def write_archive(plan: SyntheticPlan, root: Path, *, undenoised: bool = False) -> None:
    """Write the plan's days as PNG frames, masks, day lists and an exclusion map, into a new or empty folder.

    The true places of the clutter lie beside them in planted_clutter.npz.
    """
    root = Path(root)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise StoreError(f"{root} is there already. Name a new folder: an archive is written whole.")
    root.mkdir(parents=True, exist_ok=True)
    sky = Sky(plan)
    exclusion = sky.exclusion
    if undenoised:
        exclusion = layout.ExclusionMap(np.zeros_like(exclusion.outlier), exclusion.out_boundary)
    layout.write_exclusion(root, exclusion)
    np.savez_compressed(root / PLANTED_FILE, ground=sky.planted.ground, spike=sky.planted.spike)

    splits = plan.splits
    gauge_mm: dict[str, dict[dt.date, float]] = {split: {} for split in layout.SPLITS}
    for date in progress(plan.dates, label="synth", unit="day"):
        day = sky.day(date)
        _write_day(root, day, exclusion)
        gauge_mm[splits[date]][date] = day.gauge_mm
    for split, totals in gauge_mm.items():
        layout.write_day_list(layout.day_list_path(root, split, name=LIST_NAME), totals)


def _write_day(root: Path, day: SyntheticDay, exclusion: layout.ExclusionMap) -> None:
    layout.frames_folder(root, day.date).mkdir(parents=True)
    layout.masks_folder(root, day.date).mkdir(parents=True)
    excluded = exclusion.excluded
    for minutes, pixels in zip(day.minutes.tolist(), day.frames, strict=True):
        layout.frame_path(root, minutes).write_bytes(cv2.imencode(".png", pixels)[1].tobytes())
        layout.mask_path(root, minutes).write_bytes(layout.encode_mask(valid_pixels(pixels, excluded)))
