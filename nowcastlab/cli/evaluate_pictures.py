"""What `nowcastlab evaluate` draws: curves by lead, and a few sequences with what was forecast for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nowcastlab.units import level_from_mmh

if TYPE_CHECKING:
    from nowcastlab.cli.evaluation import Evaluation
    from nowcastlab.protocol import Benchmark, Sequences
    from nowcastlab.skill import SequenceScores
    from nowcastlab.store import Store

LOOKED_AT = 40  # windows, spread over the run: enough to find rain, few enough to read at once
RAIN_MMH = 5.0


def chosen(store: Store, sequences: Sequences, benchmark: Benchmark, count: int) -> list[int]:
    """The windows to draw: of some spread over the run, the wettest of each part, by what was seen before forecasting.

    Known before the run, because online the forecast of a window cannot be made again after it.
    """
    if not count:
        return []
    rows = np.unique(np.linspace(0, len(sequences) - 1, min(LOOKED_AT, len(sequences))).round().astype(int))
    now = sequences.start[rows] + (benchmark.frames_in - 1) * store.interval_minutes
    frames = sequences.read(store, now)
    wet = ((frames.pixels >= level_from_mmh(RAIN_MMH)) & ~store.excluded).mean((1, 2))
    parts = np.array_split(np.arange(len(rows)), min(count, len(rows)))
    return [int(rows[part[np.argmax(wet[part])]]) for part in parts]


def draw(run: Evaluation, scores: SequenceScores, forecasts: dict[int, Any]) -> None:
    from nowcastlab.figures.curves import lead_curves
    from nowcastlab.figures.forecast import Nowcast, animate, clock, forecast_grid

    lead_curves({run.subject.name: scores}).savefig(run.curves_file)
    nowcasts = []
    for row, forecast in sorted(forecasts.items()):
        start = int(run.sequences.start[row])
        times = start + run.store.interval_minutes * np.arange(run.benchmark.length)
        frames = run.sequences.read(run.store, times)
        nowcasts.append(
            Nowcast(
                name=run.subject.name,
                times=times,
                observed=frames.pixels,
                present=frames.present,
                forecast=forecast,
                excluded=run.store.excluded,
            )
        )
    if nowcasts:
        forecast_grid(nowcasts).savefig(run.folder / f"forecast-{run.setting}.png")
    for nowcast in nowcasts:
        moment = clock(nowcast.now).replace("-", "").replace(" ", "-").replace(":", "")
        animate(nowcast, run.folder / f"forecast-{run.setting}-{moment}.gif")
