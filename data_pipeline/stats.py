"""`stats`: how often it rains how hard, how much data each split has, and when in the year it rains."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from data_pipeline.days import days_of
from nowcastlab.progress import progress
from nowcastlab.units import (
    NOISE_BELOW_PIXEL,
    RAIN_LEVELS,
    THRESHOLDS_MMH,
    level_from_mmh,
    mmh_from_pixel,
    rain_classes,
)

if TYPE_CHECKING:
    from nowcastlab.store import Day, Store
    from nowcastlab.store.record import Record

SPLITS = ("train", "valid", "test", "none")


@dataclass(frozen=True, kw_only=True)
class SplitCounts:
    """The days of the store, with frames or not yet. The paper counts days that are listed, 812 / 50 / 131 for HKO-7;
    `ingest` leaves out the five of them that have no frame."""

    split: str
    first_year: int
    last_year: int
    days: int
    days_with_frames: int
    frames: int


@dataclass(frozen=True, kw_only=True)
class RainStatistics:
    """Everything follows from one table: how often each byte was seen at valid pixels, by calendar month."""

    levels: NDArray[np.int64]  # (12, 256); the small echoes 1 to 70 are not valid and so 0
    frames: NDArray[np.int64]  # (12,)

    @property
    def proportions(self) -> NDArray[np.float64]:
        """Share of the valid pixels in each of the paper's rain-rate classes."""
        counts = self.levels.sum(0)
        edges = [0, *(level_from_mmh(threshold) for threshold in THRESHOLDS_MMH), 256]
        classes = np.array([counts[low:high].sum() for low, high in itertools.pairwise(edges)])
        return classes / max(counts.sum(), 1)

    @property
    def monthly_mmh(self) -> NDArray[np.float64]:
        """Average rain rate over valid pixels, January to December; not-a-number without frames."""
        pixels = self.levels.sum(1)
        rain = self.levels @ mmh_from_pixel(np.arange(256))
        return np.where(pixels > 0, rain / np.maximum(pixels, 1), np.nan)


def rain_statistics(store: Store, days: Iterable[Day]) -> RainStatistics:
    """Count levels day by day: one day of frames in memory at a time."""
    import cv2

    included = (~store.excluded).astype(np.uint8)
    levels = np.zeros((12, 256), np.int64)
    frames = np.zeros(12, np.int64)
    for day in days:
        _, pixels = store.read_day(day.date)
        month = day.date.month - 1
        for frame in pixels:
            # counts come back as float32, exact to 2^24: more pixels than a frame has
            levels[month] += cv2.calcHist([frame], [0], included, [256], [0, 256]).ravel().astype(np.int64)
        frames[month] += len(pixels)
    levels[:, 1:NOISE_BELOW_PIXEL] = 0
    return RainStatistics(levels=levels, frames=frames)


def split_counts(record: Record) -> list[SplitCounts]:
    counts = []
    for split in SPLITS:
        days = [day for day in record.days if day.split == split]
        if days:
            counts.append(
                SplitCounts(
                    split=split,
                    first_year=days[0].date.year,
                    last_year=days[-1].date.year,
                    days=len(days),
                    days_with_frames=sum(bool(day.minutes) for day in days),
                    frames=sum(len(day.minutes) for day in days),
                )
            )
    return counts


def described(store: Store, statistics: RainStatistics, split: str | None) -> dict[str, Any]:
    """The whole result, ready for JSON."""
    means = statistics.monthly_mmh
    return {
        "store": store.url,
        "title": store.title,
        "digest": store.digest,
        "split": split or "all",
        "rain_rates": [
            {"rain_rate_mmh": name, "proportion_percent": 100 * float(share), "rainfall_level": level}
            for name, share, level in zip(rain_classes(), statistics.proportions, RAIN_LEVELS, strict=True)
        ],
        "valid_pixels": int(statistics.levels.sum()),
        "splits": [dataclasses.asdict(counts) for counts in split_counts(store.record)],
        "months": [
            {"month": month + 1, "frames": int(frames), "mean_mmh": float(mean) if frames else None}
            for month, (frames, mean) in enumerate(zip(statistics.frames, means, strict=True))
        ],
    }


def as_text(result: dict[str, Any]) -> str:
    lines = [f"{result['title']}, {result['split']} frames", ""]
    lines.append(f"{'Rain rate (mm/h)':<18}{'Proportion (%)':>16}   Rainfall level")
    lines += [
        f"{row['rain_rate_mmh']:<18}{row['proportion_percent']:>16.2f}   {row['rainfall_level']}"
        for row in result["rain_rates"]
    ]
    lines += [f"over {result['valid_pixels']:,} valid pixels", ""]
    lines.append(f"{'Split':<8}{'Years':>11}{'#Days':>8}{'with frames':>13}{'#Frames':>10}")
    for row in result["splits"]:
        first, last = row["first_year"], row["last_year"]
        years = str(first) if first == last else f"{first}-{last}"
        lines.append(f"{row['split']:<8}{years:>11}{row['days']:>8,}{row['days_with_frames']:>13,}{row['frames']:>10,}")
    lines += ["", f"{'Month':<8}{'Frames':>10}{'Mean (mm/h)':>14}"]
    lines += [
        f"{row['month']:<8}{row['frames']:>10,}{row['mean_mmh']:>14.3f}" for row in result["months"] if row["frames"]
    ]
    return "\n".join(lines)


@click.command()
@click.argument("store")
@click.option(
    "--split",
    type=click.Choice(["train", "valid", "test"]),
    help="Count rain only on the days to train, validate or test on.  [default: all]",
)
@click.option(
    "--figure",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the months' average rain into this PNG file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for scripts.")
def command(store: str, split: str | None, figure: Path | None, as_json: bool) -> None:
    """Print the rain-rate table, the split counts and the average rain of each month of STORE.

    The classes and their names are those of Shi et al. 2017; their table for HKO-7 reads 90.25, 4.38, 2.46, 1.35, 1.14
    and 0.42 %. Proportions are over valid pixels: not excluded, and no small echo. #Days are those of the store, with
    frames or not yet. The paper prints 812, 50 and 131 for HKO-7, the days that are listed; `ingest` leaves out those
    without any frame, so that a whole HKO-7 has 808, 49 and 131 here.

    \b
    Examples:
      python -m data_pipeline stats work/hko7.zarr
      python -m data_pipeline stats work/hko7.zarr --split test --json
      python -m data_pipeline stats work/hko7.zarr --figure months.png
    """
    from nowcastlab.store import open_store

    opened = open_store(store)
    days = days_of(opened, split, to="count")
    statistics = rain_statistics(opened, progress(days, label="stats", unit="day"))
    result = described(opened, statistics, split)
    click.echo(json.dumps(result, indent=2) if as_json else as_text(result))
    if figure:
        from data_pipeline.pictures import draw_months, save

        title = f"Average rain rate by month: {opened.title}" + (f", {split}" if split else "")
        save(draw_months(statistics.monthly_mmh, statistics.frames, title=title), figure)
        click.echo(f"figure: {figure}", err=True)
