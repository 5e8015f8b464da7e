"""The rule by itself, on normal variables: the size of a 5% test wherever the variance lies."""

from __future__ import annotations

import numpy as np
import pytest

from nowcastlab.significance.interval import combine, p_value

DRAWS = 40_000
ERROR = 3 * np.sqrt(0.07 * 0.93 / DRAWS)  # three binomial standard errors: 0.4%
# the true variances of the mean: seeds of either arm, episodes, interaction (half of it each arm's)
CASES = [
    (1.0, 1.0, 0.0, 0.0),
    (1.0, 0.0, 0.0, 0.0),
    (1.0, 0.2, 0.0, 0.0),
    (1.0, 1.0, 0.5, 0.0),
    (1.0, 1.0, 8.0, 0.0),
    (1.0, 0.0, 1.0, 0.0),
    (0.0, 0.0, 1.0, 0.0),
    (0.0, 0.0, 0.0, 1.0),
    (0.0, 0.0, 1.0, 1.0),
    (0.5, 0.5, 0.0, 1.0),
    (1.0, 0.0, 0.0, 1.0),
    (2.0, 2.0, 0.0, 1.0),
    (1.0, 1.0, 1.0, 1.0),
    (0.2, 0.2, 1.0, 0.5),
]


def size(case: tuple[float, float, float, float], seeds: int, episodes: int) -> float:
    """How often a true difference of 0 has p < 0.05, if every part is normal and estimated on its own."""
    a, b, weather, interaction = case
    rng = np.random.default_rng(0)
    df, episodes_df = seeds - 1, episodes - 1
    found = np.sqrt(sum(case)) * rng.standard_normal(DRAWS)
    true = np.array([a, b]) + interaction / 2
    variance, combined = combine(
        true * rng.chisquare(df, (DRAWS, 2)) / df,
        [df, df],
        (weather + interaction) * rng.chisquare(episodes_df, DRAWS) / episodes_df,
        episodes_df,
        interaction * rng.chisquare(2 * df * episodes_df, DRAWS) / (2 * df * episodes_df),
    )
    return float((p_value(found, variance, combined) < 0.05).mean())


@pytest.mark.parametrize("seeds", [3, 5, 10, 50])
@pytest.mark.parametrize("episodes", [10, 30, 150])
def test_from_three_seeds_on_five_percent_means_three_to_seven(seeds: int, episodes: int) -> None:
    sizes = {case: size(case, seeds, episodes) for case in CASES}
    assert min(sizes.values()) > 0.03 - ERROR, sizes
    assert max(sizes.values()) < 0.07 + ERROR, sizes


def test_two_seeds_promise_less() -> None:
    sizes = [size(case, 2, 30) for case in CASES]
    assert min(sizes) > 0.02 - ERROR
    assert max(sizes) < 0.08 + ERROR


@pytest.mark.parametrize(("seeds", "expected"), [(3, 1.25), (10, 1.075), (1_000_000, 1.0)])
def test_adding_the_parts_up_would_count_the_interaction_twice(seeds: int, expected: float) -> None:
    """Pure interaction of variance 1, known exactly: seeds and episodes both see it, and their sum would be 2. The rule
    has 1 + 3 / (4 x 3), 1 + 3 / (4 x 10), and with ever more seeds the truth."""
    variance, _ = combine([0.5, 0.5], [seeds - 1, seeds - 1], 1.0, 1e9, 1.0)
    assert variance == pytest.approx(expected, abs=1e-5)


def test_the_arm_with_fewer_seeds_decides_how_much_interaction_is_left() -> None:
    variance, _ = combine([0.5, 0.5], [2, 9], 1.0, 1e9, 1.0)
    assert variance == pytest.approx(1.25)
