"""`nowcastlab bench data`: what it costs to read training windows from a store."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

LENGTH = 25
WINDOWS_A_ROUND = 8
DAYS = 2


@click.command()
@click.option("--store", "url", help="Measure on this store's frames.  [default: two days of synthetic rain, 480x480]")
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=15,
    show_default=True,
    help="How many rounds; each contender runs once in each.",
)
@click.option("--loaders/--no-loaders", default=True, help="Also measure torch's loader processes.  [default: yes]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for scripts.")
def command(url: str | None, rounds: int, loaders: bool, as_json: bool) -> None:
    """Reading random 25-frame windows: the store against PNG files and against a memmap copy.

    One core, checksums verified. The same frames lie in all three; contenders take turns on the same windows.

    \b
    Examples:
      nowcastlab bench data
      nowcastlab bench data --store work/hko7.zarr --json
    """
    with tempfile.TemporaryDirectory(prefix="nowcastlab-bench-") as folder:
        result = measure(Path(folder), url=url, rounds=rounds, loaders=loaders)
    if as_json:
        click.echo(json.dumps(result))
        return
    click.echo(
        f"Random {LENGTH}-frame windows of {result['height']}x{result['width']}, one core, {rounds} rounds in turn"
    )
    click.echo(f"  compression                        {result['compression']:6.1f} : 1")
    for name, rate in result["frames_per_s"].items():
        click.echo(f"  {name:<28}{rate:12,.0f} frames/s")
    click.echo(f"  store / PNG, CPU time a frame      {result['cpu_ratio_png']:6.1f} x cheaper")
    click.echo(f"  store / memmap copy, rate          {result['rate_ratio_memmap']:6.2f} x")
    if loaders:
        click.echo(f"  loader process / in this process   {result['rate_ratio_loader']:6.2f} x the rate")


def measure(folder: Path, *, url: str | None, rounds: int, loaders: bool) -> dict[str, Any]:
    """Lay the same frames out in each form, then read the same random windows from each in turn."""
    import cv2

    from nowcastlab.bench.timing import interleave, one_core
    from nowcastlab.errors import StoreError
    from nowcastlab.store import open_store

    cv2.setNumThreads(1)
    path = url or _synthetic_store(folder)
    store = open_store(path)
    days = [day for day in store.record.days if day.minutes][:DAYS]
    minutes = store.minutes()[: sum(len(day.minutes) for day in days)]
    if len(minutes) <= LENGTH:
        raise StoreError(
            f"{path} has {len(minutes)} frames in its first {DAYS} days, too few for windows of {LENGTH}. "
            "Give another store, or none for a synthetic one."
        )
    frames = store.read(minutes).pixels
    png, raw = folder / "png", folder / "frames.raw"
    png.mkdir()
    for stamp, frame in zip(minutes.tolist(), frames, strict=True):
        cv2.imwrite(str(png / f"{stamp}.png"), frame)
    frames.tofile(raw)
    mapped = np.memmap(raw, np.uint8, "r", shape=frames.shape)
    compression = frames.nbytes / sum(day.shard_bytes for day in days)

    rng = np.random.default_rng(0)
    starts: list[int] = []

    def draw() -> None:
        starts[:] = rng.integers(len(minutes) - LENGTH, size=WINDOWS_A_ROUND).tolist()

    def from_store() -> None:
        for start in starts:
            store.read(minutes[start : start + LENGTH])

    def from_memmap() -> None:
        for start in starts:
            np.array(mapped[start : start + LENGTH])

    def from_png() -> None:
        for start in starts:
            window = np.empty((LENGTH, *store.grid), np.uint8)
            for i, stamp in enumerate(minutes[start : start + LENGTH].tolist()):
                window[i] = np.asarray(cv2.imread(str(png / f"{stamp}.png"), cv2.IMREAD_GRAYSCALE))

    contenders = {"windows": draw, "store": from_store, "memmap copy": from_memmap, "PNG with OpenCV": from_png}
    with one_core():
        timings = interleave(contenders, rounds=rounds)
    read = WINDOWS_A_ROUND * LENGTH
    rates = {name: read / timing.median_s for name, timing in timings.items() if name != "windows"}
    result: dict[str, Any] = {
        "height": store.grid[0],
        "width": store.grid[1],
        "compression": compression,
        "cpu_ratio_png": timings["PNG with OpenCV"].ratio_to(timings["store"], cpu=True),
        "rate_ratio_memmap": timings["memmap copy"].ratio_to(timings["store"]),
        "frames_per_s": rates,
    }
    if loaders:
        result["rate_ratio_loader"] = _loader_ratio(path, minutes, rounds=max(3, rounds // 4))
    return result


def _loader_ratio(path: str, minutes: NDArray[np.int64], *, rounds: int) -> float:
    """The rate of one torch loader process over that of reading in this one, both cores free to use.

    The process reads as fast as we do; handing a batch over by shared memory is what it adds.
    """
    from torch.utils.data import DataLoader, Dataset

    from nowcastlab.store import open_store

    batches = 12

    class Windows(Dataset[NDArray[np.uint8]]):
        store = open_store(path)

        def __len__(self) -> int:
            return batches * WINDOWS_A_ROUND

        def __getitem__(self, index: int) -> NDArray[np.uint8]:
            start = int(np.random.default_rng(index).integers(len(minutes) - LENGTH))
            return self.store.read(minutes[start : start + LENGTH]).pixels

    windows = Windows()
    ratios = []
    for _ in range(rounds):
        delivered = iter(DataLoader(windows, batch_size=WINDOWS_A_ROUND, num_workers=1, prefetch_factor=1))
        next(delivered)  # the process is up
        began = time.perf_counter()
        for _ in delivered:
            pass
        there = time.perf_counter() - began
        began = time.perf_counter()
        for batch in range(1, batches):
            np.stack([windows[batch * WINDOWS_A_ROUND + i] for i in range(WINDOWS_A_ROUND)])
        ratios.append((time.perf_counter() - began) / there)
    return statistics.median(ratios)


def _synthetic_store(folder: Path) -> str:
    """Two days of rain-like frames: smooth fields that drift, an eighth of the pixels wet, speckled as radar is."""
    import datetime as dt

    from scipy.ndimage import gaussian_filter

    from nowcastlab.store import StoreWriter

    rng = np.random.default_rng(0)
    grid, dates = (480, 480), [dt.date(2000, 1, 1) + dt.timedelta(days=i) for i in range(DAYS)]
    fields = [gaussian_filter(rng.standard_normal(grid), scale, mode="wrap") for scale in (24, 8, 3)]
    field = sum(f / f.std() * weight for f, weight in zip(fields, (1.0, 0.5, 0.3), strict=True))
    edge = np.quantile(field, 0.85)
    path = str(folder / "synthetic.zarr")
    with StoreWriter.create(
        path, dates=dates, grid=grid, interval_minutes=6, km_per_pixel=512 / 480, title="synthetic"
    ) as writer:
        for date in writer.missing:
            midnight = (date - dt.date(1970, 1, 1)).days * 1440
            frames = np.empty((240, *grid), np.uint8)
            for i in range(240):
                moved = np.roll(field, (i, 2 * i), (0, 1))
                echo = 75 + 60 * (moved - edge) + 4 * rng.standard_normal(grid)
                frames[i] = np.where(moved > edge, np.clip(echo, 71, 255), 0)
            writer.commit(writer.write_day(date, midnight + 6 * np.arange(240), frames))
    return path
