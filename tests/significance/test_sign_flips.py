"""The critical value by turned signs: where episodes are far from normal, and where it must not be trusted."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy import stats

from nowcastlab.significance import Arm, Cell, compare, estimate
from nowcastlab.significance import resample as draw
from nowcastlab.significance.sign_flips import MOST_EPISODES, critical_factor
from nowcastlab.significance.simulate import OFFICIAL_LENGTHS

MSE = Cell(score="mse")
SIMULATIONS = 2000


def left_out(d: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """The weighted mean of an episode's differences, and the same without each."""
    mean = float(weights @ d)
    return mean, (mean - weights * d) / (1 - weights)


def called(d: np.ndarray, weights: np.ndarray, factor: float) -> bool:
    """The test of episodes alone: t with as many degrees of freedom as they weigh, less one."""
    n, mean = len(d), float(weights @ d)
    error = factor * np.sqrt(n / (n - 1) * ((weights * (d - mean)) ** 2).sum())
    return bool(abs(mean) > error * stats.t.ppf(0.975, 1 / (weights**2).sum() - 1))


def rates(make: Callable[[int], np.ndarray], weights: Callable[[], np.ndarray]) -> tuple[float, float]:
    """How often Student's t calls a mean of 0 a difference, and how often with the factor."""
    answers = []
    for _ in range(SIMULATIONS):
        w = weights()
        d = make(len(w))
        answers.append((called(d, w, 1.0), called(d, w, critical_factor(*left_out(d, w), w))))
    plain, flipped = np.mean(answers, axis=0)
    return float(plain), float(flipped)


def test_the_factor_is_that_of_all_turned_signs() -> None:
    """Ten equal episodes: 2^10 t-tests by scipy, their 95% point over Student's."""
    d = np.array([0.1, -0.4, 0.8, 0.3, -0.7, 0.5, 6.0, 0.2, -0.1, 1.1])  # the storm speaks for the difference
    t = [abs(stats.ttest_1samp(d * signs, 0).statistic) for signs in product((1, -1), repeat=10)]
    expected = np.quantile(t, 0.95) / stats.t.ppf(0.975, 9)
    equal = np.full(10, 0.1)
    assert critical_factor(*left_out(d, equal), equal) == pytest.approx(expected, rel=1e-2)
    assert expected < 0.9
    d[6] = -1.5  # and now against it
    assert left_out(d, equal)[0] > 0
    assert critical_factor(*left_out(d, equal), equal) == 1.0


def official(rng: np.random.Generator, n: int) -> np.ndarray:
    drawn = rng.choice(list(OFFICIAL_LENGTHS.elements()), n).astype(np.float64)
    return drawn / drawn.sum()


def test_a_few_storms_that_make_most_of_the_error_no_longer_make_it_too_careful() -> None:
    """20 episodes of the official lengths whose rain differs tenfold and more. 2000 simulations: one error is 0.5%."""
    rng = np.random.default_rng(0)
    plain, flipped = rates(
        lambda n: np.exp(1.2 * rng.standard_normal(n)) * rng.standard_t(4, n), lambda: official(rng, 20)
    )
    assert plain < 0.04
    assert flipped == pytest.approx(0.05, abs=0.01)


@pytest.mark.parametrize(("equal", "by_t"), [(True, 0.06), (False, 0.22)])
def test_better_nearly_always_and_far_worse_in_one_storm_is_not_called_more_often_than_by_t(
    equal: bool, by_t: float
) -> None:
    """56 episodes, 1 better in 19 of 20 and 19 worse in the other. Of equal length turned signs alone would call 23%;
    of the official lengths t itself does: then nothing seen in the test set tells of the storms that were missed."""
    rng = np.random.default_rng(0)
    plain, flipped = rates(
        lambda n: np.where(rng.random(n) < 0.05, -19.0, 1.0) + 0.3 * rng.standard_normal(n),
        lambda: np.full(56, 1 / 56) if equal else official(rng, 56),
    )
    assert flipped < plain + 0.01
    assert plain == pytest.approx(by_t, abs=0.03)


def test_swapping_the_arms_changes_nothing() -> None:
    rng = np.random.default_rng(1)
    w = rng.dirichlet(np.ones(30))
    mean, without = left_out(rng.standard_t(3, 30), w)
    assert critical_factor(mean, without, w) == critical_factor(-mean, -without, w)


def test_the_units_of_the_score_change_nothing() -> None:
    rng = np.random.default_rng(1)
    w = rng.dirichlet(np.ones(30))
    mean, without = left_out(rng.standard_t(3, 30), w)
    assert critical_factor(mean, without, w) == pytest.approx(critical_factor(1e-6 * mean, 1e-6 * without, w))


def test_without_weather_or_with_an_episode_that_holds_all_the_rain_it_stays_students() -> None:
    w = np.full(4, 0.25)
    assert critical_factor(0.0, np.zeros(4), w) == 1.0
    assert critical_factor(2.0, np.array([2.0, np.nan, 1.9, 1.5]), w) == 1.0


def test_an_arms_own_score_is_not_turned_round(arm: Callable[..., Arm]) -> None:
    """No one thinks that it is 0: the interval is Student's, with the bootstrap's wobble of sqrt(2 / 20,000) = 1%."""
    values = np.exp(2 * np.random.default_rng(0).standard_normal(12))
    own = estimate(draw([arm("a", [values], deterministic=True)], seed=0, resamples=20_000, scores=("mse",)), "a", MSE)
    assert own.standard_error == pytest.approx(values.std(ddof=1) / np.sqrt(12), rel=0.02)


@pytest.mark.parametrize(("episodes", "students"), [(MOST_EPISODES, False), (MOST_EPISODES + 1, True)])
def test_of_many_sequences_none_is_left_out(arm: Callable[..., Arm], episodes: int, students: bool) -> None:
    """Heavy tails, skewed the way of the difference: turned signs ask for less than t, as far as they are asked."""
    d = np.append(np.random.default_rng(0).standard_normal(episodes - 1), 60.0)
    arms = [arm(name, [values], deterministic=True) for name, values in (("a", d), ("b", 0 * d))]
    found = compare(draw(arms, seed=0, resamples=2000, scores=("mse",)), "a", "b", MSE)
    assert found.standard_error is not None
    ratio = found.standard_error / (d.std(ddof=1) / np.sqrt(episodes))
    # The storm is drawn Poisson(1) often, of kurtosis 4: the bootstrap's error wobbles by sqrt(3 / 2000) / 2 = 2%.
    assert bool(ratio > 0.94) is students
