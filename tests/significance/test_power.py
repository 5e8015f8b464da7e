"""Power: what is stated before the spend is what the test then does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from nowcastlab.errors import ReportError
from nowcastlab.significance import Arm, Cell, Design, compare, power, resample, seeds_needed, smallest_difference

TABLE = Design(std=(52.0, 18.0))  # B-MSE of ConvGRU and TrajGRU, offline, in Shi et al. 2017


def test_with_episodes_alone_it_is_the_textbooks_power() -> None:
    """Noncentral t; 20,000 draws are good to 3 x sqrt(0.25 / 20,000) = 0.011."""
    design = Design(std=(0.0,), episodes=4.0, effective_episodes=21.0)
    cut = stats.t.ppf(0.975, 20)
    expected = stats.nct.sf(cut, 20, 5.0 / 2) + stats.nct.cdf(-cut, 20, 5.0 / 2)
    assert power(design, difference=5.0, seeds=3) == pytest.approx(expected, abs=0.011)


def test_without_a_difference_power_is_the_level_of_the_test() -> None:
    for design in (TABLE, Design(std=(1.0, 1.0), episodes=1.0), Design(std=(1.0, 1.0), interaction=0.5)):
        assert 0.03 < power(design, difference=0.0, seeds=3) < 0.07


def test_power_rises_with_seeds_and_with_the_difference() -> None:
    by_seeds = [power(TABLE, difference=135.0, seeds=n) for n in (2, 3, 5, 8)]
    by_size = [power(TABLE, difference=d, seeds=3) for d in (50.0, 100.0, 200.0)]
    assert by_seeds == sorted(by_seeds)
    assert by_size == sorted(by_size)


def test_the_fewest_seeds_reach_the_power_and_one_fewer_does_not() -> None:
    plan = seeds_needed(TABLE, difference=135.0)
    assert plan.seeds is not None
    assert plan.power >= 0.8 > power(TABLE, difference=135.0, seeds=plan.seeds - 1)
    assert f"{plan.seeds} seeds an arm find a difference of 135" in plan.text()
    assert seeds_needed(TABLE, difference=-135.0) == plan


def test_a_stricter_level_asks_for_more_seeds() -> None:
    few, many = (seeds_needed(TABLE, difference=60.0, alpha=alpha).seeds for alpha in (0.05, 0.05 / 10))
    assert few is not None
    assert many is not None
    assert many > few


def test_weather_can_hide_a_difference_from_any_number_of_seeds() -> None:
    plan = seeds_needed(Design(std=(1.0, 1.0), episodes=4.0), difference=1.0)
    assert plan.seeds is None
    assert "the chance of the test set alone hides it" in plan.text()
    # 2 x (1.96 + 0.84) = 5.6, a little more for the t distribution
    assert 5.6 < plan.smallest_with_most < 6.3


def test_without_weather_it_is_the_deviations_over_seeds_that_hide_it() -> None:
    plan = seeds_needed(Design(std=(52.0, 18.0)), difference=1.0)
    assert plan.seeds is None
    assert "it is too small beside the deviations over seeds" in plan.text()
    assert "weather" not in plan.text()


def test_the_smallest_difference_is_found_with_the_wanted_power() -> None:
    size = smallest_difference(TABLE, seeds=5)
    assert power(TABLE, difference=size, seeds=5) == pytest.approx(0.8, abs=0.02)


def test_a_pilot_tells_deviations_and_weather(arm: Callable[..., Arm]) -> None:
    """Seeds of deviation 2 without weather: the plan sees just that."""
    a, b = np.outer([8.0, 10.0, 12.0], np.ones(6)), np.outer([18.0, 20.0, 22.0], np.ones(6))
    benchmark = resample([arm("a", a), arm("b", b)], seed=0, resamples=500, scores=("mse",))
    design = Design.from_pilot(compare(benchmark, "a", "b", Cell(score="mse")))
    assert design.std == pytest.approx((2.0, 2.0))
    assert (design.episodes, design.interaction) == pytest.approx((0.0, 0.0))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: power(TABLE, difference=1.0, seeds=1), r"`seeds` \(=1\) must be at least 2"),
        (lambda: seeds_needed(TABLE, difference=0.0), "A difference of 0 is never found"),
        (lambda: Design(std=()), "standard deviation over seeds for each arm"),
        (lambda: Design(std=(1.0,), effective_episodes=1.0), "must be above 1"),
    ],
)
def test_questions_without_an_answer_are_refused(ask: Callable[[], object], message: str) -> None:
    with pytest.raises(ReportError, match=message):
        ask()
