"""What `nowcastlab evaluate` draws: curves by lead, and a few sequences with what was forecast for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nowcastlab.stamps import clock

if TYPE_CHECKING:
    from nowcastlab.cli.evaluation import Evaluation
    from nowcastlab.skill import SequenceScores


def draw(run: Evaluation, scores: SequenceScores, forecasts: dict[int, Any]) -> None:
    from nowcastlab.figures.curves import lead_curves
    from nowcastlab.figures.forecast import Nowcast, animate, forecast_grid

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
