"""`info`: what a store is, at a glance."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from data_pipeline.archive_layout import MINUTES_PER_DAY, first_minute
from nowcastlab.errors import StoreError
from nowcastlab.progress import progress
from nowcastlab.stamps import clock
from nowcastlab.units import NOISE_BELOW_PIXEL, mmh_from_pixel

if TYPE_CHECKING:
    from nowcastlab.store import Day, Store

MINUTES_PER_HOUR = 60
FRAMES_PER_ROW = 4


def described(store: Store) -> dict[str, Any]:
    """What the record says; no frame is read."""
    days = store.days
    minutes = store.minutes()
    shard_bytes = sum(day.shard_bytes for day in store.record.days)
    raw_bytes = len(minutes) * store.grid[0] * store.grid[1]
    per_day = store.record.frames_per_day
    return {
        "store": store.url,
        "title": store.title,
        "digest": store.digest,
        "grid": list(store.grid),
        "interval_minutes": store.interval_minutes,
        "km_per_pixel": store.km_per_pixel,
        "first": clock(minutes[0]) if len(minutes) else None,
        "last": clock(minutes[-1]) if len(minutes) else None,
        "days": {"committed": len(days), "planned": len(store.record.days)},
        "frames": {
            "all": len(minutes),
            **{split: len(store.minutes(split)) for split in ("train", "valid", "test", "none")},
        },
        "missing_frames": len(days) * per_day - len(minutes),
        "days_with_missing_frames": sum(day.frames < per_day for day in days),
        "excluded_pixels": int(store.excluded.sum()),
        "excluded_share": float(store.excluded.mean()),
        "shard_bytes": shard_bytes,
        "compression_ratio": raw_bytes / shard_bytes if shard_bytes else None,
        "gauge_mm": sum(day.gauge_mm or 0.0 for day in days) if any(d.gauge_mm is not None for d in days) else None,
        "attributes": store.attributes,
    }


def as_text(facts: dict[str, Any]) -> str:
    height, width = facts["grid"]
    km = facts["km_per_pixel"]
    frames = facts["frames"]
    splits = ", ".join(f"{split} {frames[split]:,}" for split in ("train", "valid", "test", "none") if frames[split])
    committed, planned = facts["days"]["committed"], facts["days"]["planned"]
    ratio = f", {facts['compression_ratio']:.1f} times smaller than raw" if facts["compression_ratio"] else ""
    rows = {
        "title": facts["title"],
        "digest": facts["digest"],
        "grid": f"{height} x {width} pixels of {km:.4g} km: {height * km:.0f} x {width * km:.0f} km",
        "interval": f"{facts['interval_minutes']} minutes",
        "span": f"{facts['first']} to {facts['last']}" if facts["first"] else "no frames yet",
        "days": f"{committed:,}" + (f" of {planned:,} planned: not complete yet" if planned > committed else ""),
        "frames": f"{frames['all']:,}" + (f" ({splits})" if splits else ""),
        "missing": f"{facts['missing_frames']:,} frames, on {facts['days_with_missing_frames']:,} days",
        "excluded": f"{facts['excluded_pixels']:,} pixels, {facts['excluded_share']:.2%}",
        "size": f"{_readable(facts['shard_bytes'])}{ratio}",
    }
    if facts["gauge_mm"] is not None:
        rows["gauges"] = f"{facts['gauge_mm']:,.1f} mm in all"
    rows |= {name: str(value) for name, value in facts["attributes"].items()}
    wide = max(map(len, rows)) + 2
    return "\n".join(f"{name:<{wide}}{value}" for name, value in rows.items())


def rainiest_hours(store: Store, days: Iterable[Day], *, count: int = 3, apart_hours: int = 12) -> list[int]:
    """Stamps of the frames with the most rain, one looked at every hour, far enough apart to be different rain."""
    rate = mmh_from_pixel(np.arange(256))
    rate[:NOISE_BELOW_PIXEL] = 0
    included = ~store.excluded
    stamps: list[int] = []
    means: list[float] = []
    minutes = store.minutes()
    for day in days:
        midnight = first_minute(day.date)
        first, last = np.searchsorted(minutes, [midnight, midnight + MINUTES_PER_DAY])
        of_day = minutes[first:last]
        _, hourly = np.unique(of_day // MINUTES_PER_HOUR, return_index=True)
        for stamp, frame in zip(of_day[hourly].tolist(), store.read(of_day[hourly]).pixels, strict=True):
            stamps.append(stamp)
            means.append(float(np.bincount(frame[included], minlength=256) @ rate))
    chosen: list[int] = []
    for i in np.argsort(means, kind="stable")[::-1]:
        if all(abs(stamps[i] - other) >= apart_hours * MINUTES_PER_HOUR for other in chosen):
            chosen.append(stamps[i])
        if len(chosen) == count:
            break
    return sorted(chosen)


def draw(store: Store, path: Path, *, watch: Callable[[Any], Any] = iter) -> None:
    """The rainiest hours, each as four frames some twenty minutes apart."""
    from data_pipeline.pictures import draw_frames, save

    step = store.interval_minutes * max(1, round(18 / store.interval_minutes))
    minutes = store.minutes()
    rows: list[tuple[list[int], NDArray[np.uint8], NDArray[np.bool_]]] = []
    for start in rainiest_hours(store, watch(store.days)):
        # from that hour on, or up to it where the frames end
        wanted = max(
            ([start + (i - back) * step for i in range(FRAMES_PER_ROW)] for back in range(FRAMES_PER_ROW)),
            key=lambda stamps: np.isin(stamps, minutes).sum(),
        )
        pixels, present = store.read(wanted)
        rows.append((wanted, pixels, present))
    if not rows:
        raise StoreError(f"{store.url} has no frames to draw yet.")
    title = f"{store.title}: its rainiest hours"
    save(draw_frames(rows, excluded=store.excluded, km_per_pixel=store.km_per_pixel, title=title), path)


def _readable(size: int) -> str:
    """Bytes as people say them."""
    value = float(size)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


@click.command()
@click.argument("store")
@click.option(
    "--picture", type=click.Path(dir_okay=False, path_type=Path), help="Draw its rainiest hours into this PNG file."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for scripts.")
def command(store: str, picture: Path | None, as_json: bool) -> None:
    """Say what STORE is: digest, grid, interval, span, frames of each split, what is missing, how large.

    STORE is a local path or any URL fsspec knows. Without --picture no frame is read. The picture shows the rainiest
    hours in the colours of the rain-rate scale, with what is never scored in grey.

    \b
    Examples:
      python -m data_pipeline info work/hko7.zarr
      python -m data_pipeline info work/hko7.zarr --picture hko7.png
      python -m data_pipeline info s3://bucket/hko7.zarr --json
    """
    from nowcastlab.store import open_store

    opened = open_store(store)
    facts = described(opened)
    click.echo(json.dumps(facts, indent=2) if as_json else as_text(facts))
    if picture:
        draw(opened, picture, watch=lambda days: progress(days, label="picture", unit="day"))
        click.echo(f"picture: {picture}", err=True)
