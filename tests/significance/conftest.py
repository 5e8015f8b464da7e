"""What the significance tests share: small runs whose scores can be worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from nowcastlab.significance import Arm, EpisodeSums


def errors_arm(name: str, by_seed: Sequence[Sequence[float]], *, deterministic: bool = False) -> Arm:
    """Runs of one lead whose error is a number an episode: the score is their mean."""
    runs = {s: EpisodeSums.from_errors(np.reshape(values, (-1, 1))) for s, values in enumerate(by_seed, 1)}
    return Arm(name=name, runs=runs, deterministic=deterministic)


@pytest.fixture
def arm() -> Callable[..., Arm]:
    return errors_arm
