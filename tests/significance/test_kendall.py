"""Kendall's tau over runs, with an interval that knows that runs of one arm are kin."""

from __future__ import annotations

import numpy as np
import pytest

from nowcastlab.errors import ReportError
from nowcastlab.significance import kendall, kendall_gain


def test_tau_counts_pairs_in_the_same_order() -> None:
    """Of 6 pairs 5 agree and 1 does not: (5 - 1) / 6."""
    found = kendall([1, 2, 3, 4], [1, 2, 4, 3], ["a", "b", "c", "d"])
    assert found.tau == pytest.approx(4 / 6)
    assert (found.runs, found.arms) == (4, 4)
    assert found.low is None  # four arms are too few for an interval


def test_more_seeds_of_the_same_arms_do_not_make_the_interval_narrow() -> None:
    """Each run copied three times says no more than once; an interval over runs would shrink by sqrt(3)."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=9)
    y = x + rng.normal(size=9)
    names = [f"arm{i}" for i in range(9)]
    once = kendall(x, y, names)
    thrice = kendall(np.tile(x, 3) + 1e-9 * rng.normal(size=27), np.tile(y, 3) + 1e-9 * rng.normal(size=27), names * 3)
    assert once.low is not None
    assert once.high is not None
    assert thrice.low is not None
    assert thrice.high is not None
    assert thrice.high - thrice.low > 0.8 * (once.high - once.low)
    assert (thrice.runs, thrice.arms) == (27, 9)


def test_the_gain_is_the_difference_of_strengths_whatever_their_sign() -> None:
    y = np.arange(8.0)
    names = list("abcdefgh")
    close, loose = -y, np.array([3.0, 1, 0, 2, 7, 4, 6, 5])
    gain = kendall_gain(close, loose, y, names)
    assert gain.tau == pytest.approx(1 - abs(kendall(loose, y, names).tau))
    assert gain.low is not None
    assert gain.low < gain.tau


def test_there_is_no_interval_where_leaving_an_arm_out_shows_nothing() -> None:
    """Five arms in one order: -1 whichever is left out, which does not make -1 certain."""
    order, names = np.arange(5.0), list("abcde")
    assert (kendall(-order, order, names).low, kendall(-order, order, names).tau) == (None, pytest.approx(-1))
    # one arm alone differs in y: without it there is nothing to correlate
    alone = kendall(order, [0, 0, 0, 0, 1], names)
    assert (alone.low, alone.high) == (None, None)
    assert np.isfinite(alone.tau)


def test_runs_of_one_arm_or_missing_scores_are_refused() -> None:
    with pytest.raises(ReportError, match="two arms at least"):
        kendall([1, 2, 3], [1, 2, 3], ["a", "a", "a"])
    with pytest.raises(ReportError, match="3 runs need 3 finite values"):
        kendall([1, 2, np.nan], [1, 2, 3], ["a", "b", "c"])
