"""Comparisons whose numbers can be worked out by hand, and the sentences made of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from nowcastlab.errors import ReportError
from nowcastlab.significance import (
    Arm,
    Benchmark,
    Cell,
    Comparison,
    EpisodeSums,
    all_of,
    compare,
    contrast,
    estimate,
    family,
    holm,
    summarise,
)
from nowcastlab.significance import resample as draw
from nowcastlab.significance.interval import combine, p_value
from nowcastlab.significance.sign_flips import critical_factor

MakeArm = Callable[..., Arm]
MSE = Cell(score="mse")


def resampled(*arms: Arm, resamples: int = 4000) -> Benchmark:
    return draw(arms, seed=0, resamples=resamples, scores=("mse",))


def test_a_resample_is_lost_where_either_arm_has_no_score() -> None:
    """Rain in two of five episodes: without them, (3/5)^5 = 8% of resamples, a cautious arm has no CSI. One that cries
    wolf everywhere has 0 there, and their difference none."""

    def run(hits: int, false_alarms: int) -> EpisodeSums:
        observed = np.array([10, 10, 0, 0, 0])
        tp = np.minimum(observed, hits)
        fp = np.full(5, false_alarms)
        counts = {"tp": tp, "fn": observed - tp, "fp": fp, "tn": 100 - observed - fp}
        return EpisodeSums(
            sequences=np.ones(5, np.int64),
            lead_minutes=np.array([6.0]),
            errors={},
            counts={name: table.astype(np.int64).reshape(5, 1, 1) for name, table in counts.items()},
            thresholds_mmh=np.array([5.0]),
        )

    wolf = Arm(name="wolf", runs={1: run(5, 3), 2: run(6, 3)})
    cautious = Arm(name="cautious", runs={1: run(5, 0), 2: run(6, 0)})
    benchmark = draw([wolf, cautious], seed=0, resamples=4000, scores=("csi",))
    found = compare(benchmark, "wolf", "cautious", Cell(score="csi", threshold_mmh=5.0))
    assert found.untestable is not None
    assert found.untestable.startswith("in 8% of the resamples the threshold is not observed")


def test_mean_and_deviation_over_seeds_use_n_minus_one(arm: MakeArm) -> None:
    summary = summarise(resampled(arm("a", [[1.0, 1.0], [2.0, 2.0], [6.0, 6.0]])), "a", MSE)
    # mean 3; squares 4 + 1 + 9 = 14; 14 / 2 = 7
    assert (summary.mean, summary.seeds) == (3.0, 3)
    assert summary.std == pytest.approx(np.sqrt(7))
    assert summarise(resampled(arm("a", [[1.0, 2.0]])), "a", MSE).std is None


def test_with_seeds_alone_it_is_welchs_test(arm: MakeArm) -> None:
    """Every episode alike: no weather, no interaction, and scipy's Welch test is the answer."""
    a, b = [1.0, 1.3, 1.7], [2.0, 2.1, 2.5, 2.2]
    benchmark = resampled(arm("a", np.outer(a, np.ones(8))), arm("b", np.outer(b, np.ones(8))))
    mine, welch = compare(benchmark, "a", "b", MSE), stats.ttest_ind(a, b, equal_var=False)
    assert mine.p == pytest.approx(welch.pvalue, rel=1e-6)
    interval = welch.confidence_interval(0.95)
    assert (mine.low, mine.high) == pytest.approx((interval.low, interval.high), rel=1e-6)


@pytest.mark.parametrize("storm", [-4.0, 9.0])
def test_with_episodes_alone_it_is_the_paired_t_test_or_that_of_turned_signs(arm: MakeArm, storm: float) -> None:
    """Two methods without seeds on episodes of equal weight, and a storm that speaks against the difference or for it.
    The bootstrap's variance wobbles by sqrt(2 / 20,000) = 1%, so t by half of that: 4 such errors are 2%."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(5.0, 1, 25), rng.normal(5.5, 1, 25)
    b[0] += storm
    assert (a - b).mean() < 0
    assert np.sign(stats.skew(a - b)) == -np.sign(storm)
    mine = compare(
        resampled(arm("a", [a], deterministic=True), arm("b", [b], deterministic=True), resamples=20_000), "a", "b", MSE
    )
    without = np.array([np.delete(a - b, e).mean() for e in range(25)])
    factor = critical_factor(float((a - b).mean()), without, np.full(25, 1 / 25))
    assert factor < 1 if storm > 0 else factor == 1
    assert mine.df == pytest.approx(24)
    assert mine.standard_error is not None
    t = mine.difference / mine.standard_error
    assert t == pytest.approx(stats.ttest_rel(a, b).statistic / factor, rel=0.02)


def test_interaction_is_not_counted_twice(arm: MakeArm) -> None:
    """Runs of pure noise, independent from cell to cell: both sources see the same noise. Their sum would be twice the
    true variance of 2 / (30 x 40) (two arms); the rule has 1 + 3 / (4 x 30) of it. Each estimate is good to
    sqrt(2 / 39 + 2 / 300 + 2 / 58) = 0.3, so 40 of them to 0.05."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(40):
        arms = [arm(name, rng.normal(10, 1, (30, 40))) for name in "ab"]
        error = compare(resampled(*arms, resamples=300), "a", "b", MSE).standard_error
        assert error is not None
        found.append(error**2)
    assert np.mean(found) / (2 / (30 * 40)) == pytest.approx(1.025, abs=0.15)


def test_paired_seeds_take_away_what_the_seeds_share(arm: MakeArm) -> None:
    """Online is offline minus 1 in every seed but for a tenth; the seeds themselves differ by much more."""
    offline = np.outer([5.0, 9.0, 13.0], np.ones(6))
    online = offline - np.outer([0.9, 1.0, 1.1], np.ones(6))
    benchmark = resampled(arm("online", online), arm("offline", offline))
    apart = compare(benchmark, "online", "offline", MSE)
    paired = compare(benchmark, "online", "offline", MSE, paired_seeds=True)
    assert apart.p is not None
    assert paired.p is not None
    assert apart.p > 0.5
    # t = 1 / (0.1 / sqrt(3)) with 2 degrees of freedom
    assert paired.p == pytest.approx(2 * stats.t.sf(np.sqrt(3) / 0.1, 2), rel=1e-6)


def test_paired_seeds_are_matched_by_number_not_by_order(arm: MakeArm) -> None:
    rng = np.random.default_rng(0)
    a, b = arm("a", rng.random((3, 6))), arm("b", rng.random((3, 6)))
    turned = Arm(name="b", runs={s: b.runs[s] for s in (3, 1, 2)})
    one, other = (compare(resampled(a, x), "a", "b", MSE, paired_seeds=True) for x in (b, turned))
    assert one.p == pytest.approx(other.p)


def test_seeds_that_differ_cannot_be_paired(arm: MakeArm) -> None:
    benchmark = resampled(arm("a", np.ones((3, 4))), arm("b", np.ones((2, 4))))
    with pytest.raises(ReportError, match=r"a has \[1, 2, 3\]; b has \[1, 2\]"):
        compare(benchmark, "a", "b", MSE, paired_seeds=True)


def test_unequal_episodes_weigh_as_fewer() -> None:
    """Shares 1/2, 1/4, 1/4: 1 / (1/4 + 1/16 + 1/16) = 8/3."""
    from nowcastlab.significance import EpisodeSums

    def run(shift: float) -> EpisodeSums:
        errors = {"bmse": np.array([[2.0], [1.0], [4.0]]) + shift}
        return EpisodeSums(sequences=np.array([2, 1, 1]), lead_minutes=np.array([6.0]), errors=errors)

    arms = [Arm(name=n, runs={1: run(s), 2: run(s + 0.1)}) for n, s in (("a", 0.0), ("b", 1.0))]
    benchmark = draw(arms, seed=0, resamples=500, scores=("bmse",))
    assert compare(benchmark, "a", "b", Cell(score="bmse")).effective_episodes == pytest.approx(8 / 3)


def test_effect_size_is_in_deviations_between_seeds(arm: MakeArm) -> None:
    """Means 2 and 5, both with deviation 1: d = -3, times Hedges' 1 - 3 / (4 x 4 - 1) = 0.8."""
    a, b = np.outer([1.0, 2.0, 3.0], np.ones(4)), np.outer([4.0, 5.0, 6.0], np.ones(4))
    found = compare(resampled(arm("a", a), arm("b", b)), "a", "b", MSE)
    assert found.effect_size == pytest.approx(-2.4)
    # the difference is exactly three deviations, and the rule asks for more
    assert found.three_deviations is False


def test_one_seed_is_not_tested(arm: MakeArm) -> None:
    rng = np.random.default_rng(0)
    benchmark = resampled(arm("a", rng.random((1, 9))), arm("b", rng.random((3, 9))))
    found = compare(benchmark, "a", "b", MSE)
    assert (found.p, found.low, found.winner()) == (None, None, None)
    assert "Not testable: a has one seed" in found.text()
    fixed = resampled(arm("a", rng.random((1, 9)), deterministic=True), arm("b", rng.random((3, 9))))
    assert compare(fixed, "a", "b", MSE).p is not None


def test_one_episode_is_not_tested(arm: MakeArm) -> None:
    benchmark = resampled(arm("a", [[1.0], [2.0]]), arm("b", [[3.0], [4.0]]))
    assert "one decides the score alone" in str(compare(benchmark, "a", "b", MSE).untestable)


def test_the_better_arm_has_the_lower_error(arm: MakeArm) -> None:
    rng = np.random.default_rng(0)
    benchmark = resampled(arm("good", rng.normal(1, 0.1, (3, 20))), arm("bad", rng.normal(2, 0.1, (3, 20))))
    for pair in (("good", "bad"), ("bad", "good")):
        found = compare(benchmark, *pair, MSE)
        assert found.winner() == "good"
        assert "good is better" in found.text()
        assert "3 and 3 seeds, 20 episodes that weigh as 20.0" in found.text()


@pytest.mark.parametrize(("scale", "shown"), [(1000.0, "-1000: "), (0.001, "-0.001000: ")])
def test_numbers_show_two_digits_of_their_uncertainty(arm: MakeArm, scale: float, shown: str) -> None:
    """Deviation 0.1 over 3 seeds an arm: an error of 0.1 sqrt(2 / 3) = 0.08, in B-MSE and in MovingMNIST++'s MSE."""
    a, b = (np.outer([m - 0.1, m, m + 0.1], scale * np.ones(4)) for m in (1.0, 2.0))
    assert shown in compare(resampled(arm("a", a), arm("b", b)), "a", "b", MSE).text()


def test_no_difference_shown_is_never_called_equal(arm: MakeArm) -> None:
    rng = np.random.default_rng(0)
    benchmark = resampled(*(arm(n, rng.normal(1, 0.5, (3, 20))) for n in "ab"))
    assert "no difference shown, which does not show that there is none" in compare(benchmark, "a", "b", MSE).text()


def test_a_trend_over_four_arms_is_one_contrast(arm: MakeArm) -> None:
    arms = {
        f"L{n}": arm(f"L{n}", np.outer([v - 0.01, v, v + 0.01], np.ones(5))) for n, v in ((5, 4.0), (9, 3.0), (13, 2.0))
    }
    found = contrast(resampled(*arms.values()), {"L5": -1.0, "L9": 0.0, "L13": 1.0}, MSE, names=("L13", "L5"))
    assert found.difference == pytest.approx(-2)
    assert found.winner() == "L13"


def test_an_arms_own_interval_holds_its_mean(arm: MakeArm) -> None:
    own = estimate(resampled(arm("a", np.random.default_rng(0).normal(7, 1, (3, 50)))), "a", MSE)
    assert own.low is not None
    assert own.high is not None
    assert own.low < own.difference < own.high


def test_unknown_arms_and_cells_are_named(arm: MakeArm) -> None:
    benchmark = resampled(arm("a", np.ones((2, 4))), arm("b", np.ones((2, 4))))
    with pytest.raises(ReportError, match=r"No arm 'c'\. The arms are: a, b\."):
        compare(benchmark, "a", "c", MSE)
    with pytest.raises(ReportError, match="CSI at 30 mm/h was not resampled"):
        compare(benchmark, "a", "b", Cell(score="csi", threshold_mmh=30.0))
    with pytest.raises(ReportError, match="with itself"):
        compare(benchmark, "a", "a", MSE)


def test_without_any_variance_only_a_difference_of_zero_is_none() -> None:
    variance, df = combine([0.0, 0.0], [2.0, 2.0], 0.0, 10.0, 0.0)
    assert p_value(0.0, variance, df) == 1
    assert p_value(0.1, variance, df) == 0


def test_holm_multiplies_the_smallest_by_all_and_never_falls() -> None:
    """0.01 x 4; 0.02 x 3 = 0.06; 0.03 x 2 = 0.06; 0.9."""
    assert holm([0.9, 0.01, 0.03, 0.02]).tolist() == pytest.approx([0.9, 0.04, 0.06, 0.06])
    assert holm([0.6, 0.7]).tolist() == [1.0, 1.0]


def test_a_family_is_corrected_and_says_over_how_many(arm: MakeArm) -> None:
    rng = np.random.default_rng(0)
    means = {"a": 1.0, "b": 1.08, "c": 3.0, "one": 3.0}
    arms = [arm(n, rng.normal(m, 0.05, (1 if n == "one" else 3, 20))) for n, m in means.items()]
    benchmark = resampled(*arms)
    found = family([compare(benchmark, "a", other, MSE) for other in ("b", "c", "one")])
    assert [c.family for c in found] == [3, 3, 3]
    # the one that cannot be tested still counts, and stays untested
    assert found[2].p_holm is None
    assert found[1].p is not None
    assert found[1].p_holm == pytest.approx(3 * found[1].p)
    assert "after Holm over 3" in found[0].text()


def made(p: float, difference: float) -> Comparison:
    """Of an error, where lower is better: a negative difference speaks for the claim that a is better."""
    plain = {"cell": MSE, "seeds": (3, 3), "paired_seeds": False, "episodes": 56, "effective_episodes": 28.7}
    rest = {"resamples": 100, "effect_size": None, "std_larger": None}
    return Comparison(a="a", b="b", difference=difference, p=p, **plain, **rest)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ([(0.04, -1.0), (0.03, -1.0)], "shown"),  # each at 5%: an intersection needs no correction
        ([(0.001, -1.0), (0.2, -1.0)], "undecided"),
        ([(0.001, -1.0), (0.001, 1.0)], "contradicted"),
        ([(0.2, -1.0), (0.04, 1.0)], "undecided"),  # contradicting is corrected: 0.04 x 2
    ],
)
def test_a_claim_needs_all_of_its_comparisons(parts: list[tuple[float, float]], verdict: str) -> None:
    assert all_of([made(*part) for part in parts]).verdict == verdict
