"""A whole benchmark run in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from nowcastlab.models import Forecaster
from nowcastlab.protocol.benchmark import HKO7, Benchmark
from nowcastlab.protocol.environment import Environment
from nowcastlab.protocol.offline import OfflineRun
from nowcastlab.protocol.online import PRESETS, FineTuner, FineTuning, run_online
from nowcastlab.skill import Scorer, SequenceScores
from nowcastlab.store import Store


def offline_run(
    model: Forecaster,
    store: Store,
    *,
    split: str = "test",
    benchmark: Benchmark = HKO7,
    limit: int | None = None,
    batch_size: int = 4,
    device: torch.device | str = "cpu",
    by_scale: bool = False,
) -> OfflineRun:
    """`limit` scores the first windows only; `by_scale` adds fractions skill scores and spectra."""
    model.check_grid(*store.grid)
    return OfflineRun(
        model=model.to(device),
        store=store,
        sequences=benchmark.sequences(store, split).first(limit),
        benchmark=benchmark,
        scorer=scorer_for(store, benchmark, by_scale=by_scale),
        batch_size=batch_size,
        device=device,
    )


def evaluate_offline(
    model: Forecaster, store: Store, *, watch: Callable[[Iterable[int]], Iterable[int]] = iter, **options: Any
) -> SequenceScores:
    """Score a forecaster in the offline setting, in this process. Options as in `offline_run`."""
    return offline_run(model, store, **options).scores(watch=watch)


def evaluate_online(
    model: Forecaster,
    store: Store,
    *,
    split: str = "test",
    benchmark: Benchmark = HKO7,
    settings: FineTuning = PRESETS["paper"],
    limit: int | None = None,
    device: torch.device | str = "cpu",
    by_scale: bool = False,
    folder: Path | None = None,
    facts: dict[str, Any] | None = None,
    save_every: int = 200,
    watch: Any = None,
    keep: Callable[[int, torch.Tensor], object] = lambda row, forecast: None,
) -> SequenceScores:
    """Score a network that is fine-tuned as it goes: the same windows as offline, one after the other.

    The model is changed. With a `folder` the run can be stopped and goes on there. The rest as in `run_online`.
    """
    model.check_grid(*store.grid)
    sequences = benchmark.sequences(store, split).first(limit)
    environment = Environment(store, sequences, benchmark, scorer_for(store, benchmark, by_scale=by_scale))
    learner = FineTuner(model, store.excluded, benchmark, settings, device=device)
    known = {
        "store": store.digest,
        "split": split,
        "windows": len(sequences),
        "by_scale": by_scale,
        "settings": asdict(settings),
    }
    return run_online(
        environment,
        learner,
        facts={**known, **(facts or {})},
        folder=folder,
        save_every=save_every,
        watch=watch,
        keep=keep,
    )


def scorer_for(store: Store, benchmark: Benchmark, *, by_scale: bool = False) -> Scorer:
    return Scorer(
        excluded=store.excluded,
        lead_minutes=benchmark.lead_minutes(store),
        km_per_pixel=store.km_per_pixel,
        fss=by_scale,
        spectrum=by_scale,
    )
