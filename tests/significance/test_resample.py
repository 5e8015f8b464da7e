"""The bootstrap itself: every score recomputed on every draw, the same episodes for all arms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nowcastlab.bench.significance import made_up_scores, plain_resample
from nowcastlab.errors import ReportError
from nowcastlab.significance import Arm, Cell, EpisodeSums, resample
from nowcastlab.significance.resample import _episode_draws
from nowcastlab.significance.simulate import OFFICIAL_LENGTHS, Truth, simulate
from nowcastlab.skill import COUNTS, SKILL, SequenceScores, lead_mean, per_lead

MakeArm = Callable[..., Arm]
TRUTH = Truth(seed=0.1, arm_by_episode=0.2, seed_by_episode=0.1)


@pytest.fixture(scope="module")
def scores() -> SequenceScores:
    return made_up_scores(np.random.default_rng(0))


def test_sums_by_episode_lose_nothing_of_the_scores(scores: SequenceScores) -> None:
    """6053 sequences or their 56 sums: CSI, HSS, B-MSE and B-MAE are the same numbers."""
    sums = EpisodeSums.from_scores(scores)
    benchmark = resample([Arm(name="a", runs={1: sums})], seed=0, resamples=100)
    assert (sums.episodes, sums.sequences.sum()) == (56, 6053)
    for name in ("csi", "hss"):
        expected = lead_mean(per_lead(scores, name)).tolist()
        got = [benchmark.scores["a"][0, benchmark.index(c)] for c in benchmark.cells if c.score == name]
        assert got == pytest.approx(expected, rel=1e-12)
    bmse = benchmark.scores["a"][0, benchmark.index(Cell(score="bmse"))]
    assert bmse == pytest.approx(float(lead_mean(per_lead(scores, "bmse"))), rel=1e-12)


def test_a_resample_is_the_score_of_the_drawn_sequences(scores: SequenceScores) -> None:
    """The matrix product against gathering the drawn episodes' sequences one by one."""

    class Drawn:
        """Stands where a generator does, and draws what the bootstrap drew first."""

        def choice(self, ids: np.ndarray, size: int) -> np.ndarray:
            _, weights = next(_episode_draws(56, 100, 7))
            return np.repeat(ids, weights[0].astype(int))

    benchmark = resample([Arm(name="a", runs={1: EpisodeSums.from_scores(scores)})], seed=7, resamples=100)
    expected = plain_resample(scores, Drawn())  # type: ignore[arg-type]
    assert benchmark.resampled["a"][0, 0].tolist() == pytest.approx(expected, rel=1e-12)


def test_a_score_without_an_episode_is_that_of_the_others(scores: SequenceScores) -> None:
    """Episode 3 left out, against the scores of the sequences that are not in it."""
    others = np.flatnonzero(scores.episode != np.unique(scores.episode)[3])
    runs = {1: EpisodeSums.from_scores(scores)}
    benchmark = resample([Arm(name="a", runs=runs)], seed=0, resamples=100, scores=("csi", "bmse"))
    counts = [getattr(scores, name)[others].sum(0) for name in COUNTS]
    expected = [*lead_mean(SKILL["csi"](*counts)).tolist(), scores.bmse[others].mean()]
    assert benchmark.without["a"][:, 3].tolist() == pytest.approx(expected, rel=1e-12)


def test_cells_by_lead_average_to_the_cell_over_all_leads(scores: SequenceScores) -> None:
    runs = {1: EpisodeSums.from_scores(scores)}
    benchmark = resample([Arm(name="a", runs=runs)], seed=0, resamples=100, scores=("csi", "bmae"), by_lead=True)
    table = dict(zip(benchmark.cells, benchmark.resampled["a"][5, 0], strict=True))
    for score, rate in (("csi", 30.0), ("bmae", None)):
        leads = [v for c, v in table.items() if (c.score, c.threshold_mmh) == (score, rate) and c.lead_minutes]
        assert len(leads) == 20
        assert np.mean(leads) == pytest.approx(table[Cell(score=score, threshold_mmh=rate)], rel=1e-12)


def test_every_arm_gets_the_same_episodes(arm: MakeArm) -> None:
    """Two arms that differ by a constant differ by it in every resample: all weather is paired away."""
    weather = np.random.default_rng(0).gamma(1, 5, 30)
    benchmark = resample([arm("a", [weather]), arm("b", [weather + 2])], seed=0, resamples=200, scores=("mse",))
    assert np.ptp(benchmark.resampled["a"]) > 1
    assert benchmark.resampled["b"] - benchmark.resampled["a"] == pytest.approx(2)


def test_the_same_seed_gives_the_same_bytes_and_another_arm_changes_nothing(arm: MakeArm) -> None:
    rng = np.random.default_rng(0)
    one, two, three = (arm(name, rng.random((3, 20))) for name in "abc")
    small, large = (resample(arms, seed=5, resamples=300, scores=("mse",)) for arms in ([one, two], [three, two, one]))
    for field in ("scores", "resampled", "seed_draws", "weights", "without"):
        for name in "ab":
            assert getattr(small, field)[name].tobytes() == getattr(large, field)[name].tobytes()
    other = resample([one, two], seed=6, resamples=300, scores=("mse",))
    assert other.resampled["a"].tobytes() != small.resampled["a"].tobytes()


def test_each_arm_draws_its_own_seeds(arm: MakeArm) -> None:
    rng = np.random.default_rng(0)
    benchmark = resample([arm(n, rng.random((3, 9))) for n in "ab"], seed=0, resamples=2000, scores=("mse",))
    a, b = benchmark.seed_draws["a"], benchmark.seed_draws["b"]
    assert a.sum(1) == pytest.approx(1)
    # uncorrelated: 0 within 4 standard errors of 1 / sqrt(2000)
    assert abs(np.corrcoef(a[:, 0], b[:, 0])[0, 1]) < 4 / np.sqrt(2000)


def test_a_score_without_data_is_not_a_number_and_not_zero() -> None:
    run = EpisodeSums(
        sequences=np.array([1, 1]),
        lead_minutes=np.array([6.0]),
        errors={},
        counts={name: np.full((2, 1, 1), n) for name, n in (("tp", 0), ("fn", 0), ("fp", 3), ("tn", 7))},
        thresholds_mmh=np.array([30.0]),
    )
    benchmark = resample([Arm(name="a", runs={1: run})], seed=0, resamples=100, scores=("csi",))
    assert np.isnan(benchmark.scores["a"]).all()


def test_the_official_walks_lengths_are_its_56_episodes() -> None:
    assert sum(OFFICIAL_LENGTHS.values()) == 56
    assert sum(length * n for length, n in OFFICIAL_LENGTHS.items()) == 6053


def test_runs_on_other_sequences_are_refused(arm: MakeArm, scores: SequenceScores) -> None:
    with pytest.raises(ReportError, match="b, seed 1 and a, seed 1 cannot be compared: the one has 8 sequences"):
        resample([arm("a", [np.ones(9)]), arm("b", [np.ones(8)])], seed=0, scores=("mse",))
    rng = np.random.default_rng(0)
    rain = {1: EpisodeSums.from_scores(scores)}
    other = {1: EpisodeSums.from_scores(made_up_scores(rng, truth_seed=1))}
    with pytest.raises(ReportError, match="same split of the same store"):
        resample([Arm(name="a", runs=rain), Arm(name="b", runs=other)], seed=0)


@pytest.mark.parametrize(
    ("arms", "options", "message"),
    [
        (["a", "a"], {}, "names of their own"),
        (["a"], {"scores": ("csi",)}, r"No score 'csi' in these runs\. There are: mse"),
        (["a"], {"resamples": 10}, r"`resamples` \(=10\) must be at least 100"),
    ],
)
def test_what_cannot_be_resampled_is_refused(
    arm: MakeArm, arms: list[str], options: dict[str, object], message: str
) -> None:
    with pytest.raises(ReportError, match=message):
        resample([arm(n, [np.ones(5)]) for n in arms], **{"seed": 0, "scores": ("mse",), **options})  # type: ignore[arg-type]


def test_an_arm_without_runs_or_with_two_fixed_ones_is_refused(arm: MakeArm) -> None:
    with pytest.raises(ReportError, match="no finished run"):
        arm("a", [])
    with pytest.raises(ReportError, match="deterministic, yet has 2 runs"):
        arm("a", [[1.0, 2.0], [1.0, 2.0]], deterministic=True)


def test_made_up_benchmarks_obey_their_truth() -> None:
    """With all variation off but the rain, two arms are the same run; an advantage shows in every episode."""
    still = Truth(seed=0.0, arm_by_episode=0.0, seed_by_episode=0.0)
    a, b = simulate(still, episodes=12, seeds=(2, 1), rng=np.random.default_rng(0))
    assert np.array_equal(a.runs[1].counts["tp"], b.runs[1].counts["tp"])
    better, worse = simulate(still, episodes=12, seeds=(1, 1), advantage=(0.5, 0.0), rng=np.random.default_rng(0))
    assert (better.runs[1].counts["tp"] > worse.runs[1].counts["tp"]).all()
