"""What the skill tests share: a slow reference that is easy to check, and frames that reach every corner of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nowcastlab.skill import Scorer, SequenceScores

P_FROM = {0.5: 0.328253, 2.0: 0.462426, 5.0: 0.551110, 10.0: 0.618197, 30.0: 0.724527}  # mm/h -> p
WEIGHT_FROM = ((30.0, 30), (10.0, 10), (5.0, 5), (2.0, 2))  # mm/h -> weight, heaviest first


def frame_scores(
    predicted: NDArray[np.float32], true: NDArray[np.uint8], excluded: NDArray[np.bool_]
) -> tuple[dict[str, list[int]], dict[str, float]]:
    """One frame as the benchmark defines its scores, one pixel after another in plain Python."""
    height, width = true.shape

    def valid(y: int, x: int) -> bool:
        return not excluded[y, x] and not 0 < true[y, x] < 71

    counts = {name: [0] * len(P_FROM) for name in ("tp", "fn", "fp", "tn")}
    errors = dict.fromkeys(("mse", "mae", "bmse", "bmae", "gdl"), 0.0)
    for y in range(height):
        for x in range(width):
            if not valid(y, x):
                continue
            p, t = float(predicted[y, x]), int(true[y, x]) / 255
            for j, cut in enumerate(P_FROM.values()):
                counts["tp" if p >= cut and t >= cut else "fn" if t >= cut else "fp" if p >= cut else "tn"][j] += 1
            weight = next((w for rate, w in WEIGHT_FROM if t >= P_FROM[rate]), 1)
            errors["mse"] += (p - t) ** 2
            errors["mae"] += abs(p - t)
            errors["bmse"] += weight * (p - t) ** 2
            errors["bmae"] += weight * abs(p - t)
            for down, right in ((1, 0), (0, 1)):
                y2, x2 = y + down, x + right
                if y2 < height and x2 < width and valid(y2, x2):
                    p2, t2 = float(predicted[y2, x2]), int(true[y2, x2]) / 255
                    errors["gdl"] += abs(abs(p2 - p) - abs(t2 - t))
    return counts, errors


def some_frames(
    rng: np.random.Generator, sequences: int, leads: int, height: int = 23, width: int = 17
) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Every level and every threshold about equally often; predictions that leave [0, 1] here and there."""
    shape = (sequences, leads, height, width)
    true = rng.integers(0, 256, shape).astype(np.uint8)
    true[rng.random(shape) < 0.3] = 0
    predicted = true / 255 + rng.normal(0, 0.15, shape)
    return predicted.astype(np.float32), true


@pytest.fixture
def reference() -> Callable[..., tuple[dict[str, list[int]], dict[str, float]]]:
    return frame_scores


@pytest.fixture
def frames() -> Callable[..., tuple[NDArray[np.float32], NDArray[np.uint8]]]:
    return some_frames


def score_all(predicted: Any, true: Any, **options: Any) -> SequenceScores:
    """Every frame present, nothing excluded, five minutes a lead, one episode, unless told otherwise."""
    sequences, leads, height, width = predicted.shape
    present = options.pop("present", np.ones((sequences, leads), bool))
    start = options.pop("start", 30 * np.arange(sequences))
    episode = options.pop("episode", np.zeros(sequences, int))
    settings = {"excluded": np.zeros((height, width), bool), "lead_minutes": 5 * np.arange(1, leads + 1), **options}
    return Scorer(**settings).score(predicted, true, present=present, start=start, episode=episode)


@pytest.fixture
def score() -> Callable[..., SequenceScores]:
    return score_all
