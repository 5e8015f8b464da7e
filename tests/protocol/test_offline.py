from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from nowcastlab.cli.sharded import sharded_scores
from nowcastlab.errors import ConfigError
from nowcastlab.models import Forecaster, build
from nowcastlab.protocol import HKO7, evaluate_offline, evaluate_online, offline_run
from nowcastlab.skill import SequenceScores, concatenate
from nowcastlab.store import Store


def small(name: str = "convgru", seed: int = 1) -> Forecaster:
    return build(name, "hko7", seed=seed, filters=(2, 2, 2), stem_filters=2, strides=(2, 2, 1))


def assert_same_bits(one: SequenceScores, other: SequenceScores) -> None:
    assert one.arrays().keys() == other.arrays().keys()
    for name, array in one.arrays().items():
        assert array.tobytes() == other.arrays()[name].tobytes(), name


class Spy(Forecaster):
    """Keeps what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.frames: list[Tensor] = []
        self.valid: list[Tensor] = []

    def predict(self, frames: Tensor, valid: Tensor | None = None, *, leads: int) -> Tensor:
        assert valid is not None
        self.frames.extend(frames)
        self.valid.extend(valid)
        return frames[:, -1:].expand(-1, leads, -1, -1).contiguous()


def test_a_forecaster_gets_five_frames_as_p_and_the_mask(broken_store: Store) -> None:
    spy = Spy()
    evaluate_offline(spy, broken_store, batch_size=4)
    starts = HKO7.sequences(broken_store, "test").start
    assert len(spy.frames) == len(starts) == 13
    for start, frames, valid in zip(starts, spy.frames, spy.valid, strict=True):
        truth = broken_store.read(start + 6 * np.arange(5))
        torch.testing.assert_close(frames, torch.from_numpy(truth.pixels / np.float32(255)), rtol=0, atol=0)
        small_echo = (truth.pixels > 0) & (truth.pixels < 71)
        expected = ~small_echo & ~broken_store.excluded & truth.present[:, None, None]
        np.testing.assert_array_equal(valid.numpy(), expected)


def test_offline_scores_are_those_of_the_plain_definition(broken_store: Store) -> None:
    """MAE of the last frame, window by window, in four lines of NumPy."""
    scores = evaluate_offline(build("last-frame"), broken_store)
    stamps = set(broken_store.minutes("test").tolist())
    for row, start in enumerate(scores.start):
        frames = broken_store.read(start + 6 * np.arange(25)).pixels.astype(float) / 255
        for lead in range(20):
            truth = frames[5 + lead]
            valid = ~broken_store.excluded & ~((truth > 0) & (truth < 71 / 255))
            there = start + 6 * (5 + lead) in stamps
            expected = np.abs(frames[4] - truth)[valid].sum() if there else 0.0
            assert scores.mae[row, lead] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("batch_size", [1, 3, 4, 13, 50])
def test_parts_put_together_are_the_whole_to_the_bit(broken_store: Store, batch_size: int) -> None:
    run = offline_run(small(), broken_store, batch_size=batch_size)
    whole = run.scores()
    assert len(whole) == 13
    assert_same_bits(concatenate([run.part(i, i + 1) for i in range(run.batches)]), whole)


def test_spread_over_real_workers_the_scores_are_the_same_to_the_bit(broken_store: Store, ray_address: str) -> None:
    run = offline_run(small(), broken_store, batch_size=2, by_scale=True)
    torch.set_num_threads(1)
    assert_same_bits(sharded_scores(run), run.scores())


def test_both_settings_score_the_same_windows(broken_store: Store) -> None:
    offline = evaluate_offline(small(), broken_store)
    online = evaluate_online(small(), broken_store)
    assert offline.start.tolist() == online.start.tolist()
    assert offline.episode.tolist() == online.episode.tolist()
    assert offline.missing.tolist() == online.missing.tolist()
    # the truth is the same too: what was observed at each threshold
    np.testing.assert_array_equal(offline.tp + offline.fn, online.tp + online.fn)


def test_a_limit_takes_the_first_windows(broken_store: Store) -> None:
    whole, first = (evaluate_offline(build("last-frame"), broken_store, limit=n) for n in (None, 5))
    assert first.start.tolist() == whole.start[:5].tolist()
    assert first.mae.tobytes() == np.ascontiguousarray(whole.mae[:5]).tobytes()


def test_scores_by_scale_come_when_asked_for(broken_store: Store) -> None:
    plain, more = (evaluate_offline(build("last-frame"), broken_store, limit=2, by_scale=b) for b in (False, True))
    assert plain.fss_error is None
    assert more.fss_error is not None
    assert more.spectrum_true is not None


def test_a_grid_that_does_not_suit_the_network_is_refused_before_it_runs(broken_store: Store) -> None:
    with pytest.raises(ConfigError, match="16"):
        offline_run(build("convgru", "hko7", filters=(2, 2, 2), stem_filters=2), broken_store)
