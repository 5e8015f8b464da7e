"""What seeds alone can prove, by counting."""

from __future__ import annotations

import pytest

from nowcastlab.errors import ReportError
from nowcastlab.significance import permutation_p, sign_flip_p


@pytest.mark.parametrize(("seeds", "smallest"), [(2, 0.5), (3, 0.25), (5, 0.0625), (6, 0.03125)])
def test_few_paired_seeds_cannot_reach_five_percent(seeds: int, smallest: float) -> None:
    """All differences of one sign and as large as you like: 2 of 2^n sign choices are as extreme."""
    assert sign_flip_p([1000.0 + i for i in range(seeds)]) == smallest


def test_three_seeds_an_arm_reach_a_tenth_at_best() -> None:
    """20 ways to part six runs, two of them as extreme. Four an arm: 2 / 70."""
    assert permutation_p([1, 2, 3], [101, 102, 103]) == pytest.approx(0.1)
    assert permutation_p([1, 2, 3, 4], [101, 102, 103, 104]) == pytest.approx(2 / 70)


def test_no_difference_at_all_has_p_one() -> None:
    assert sign_flip_p([0.0, 0.0, 0.0]) == 1
    assert permutation_p([1, 2], [1, 2]) == 1


def test_too_many_to_count_is_a_message() -> None:
    with pytest.raises(ReportError, match="too many to count"):
        sign_flip_p([1.0] * 30)
    with pytest.raises(ReportError, match="28 runs can be parted in 40116600 ways: too many to count"):
        permutation_p([1.0] * 14, [2.0] * 14)
