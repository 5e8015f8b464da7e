from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

from nowcastlab.errors import ConfigError, ProtocolError, StoreError
from nowcastlab.protocol import HKO7, Benchmark, Environment
from nowcastlab.skill import Scorer
from nowcastlab.store import Store, StoreWriter, open_store

FIRST = int((np.datetime64("2015-06-05") - np.datetime64("1970-01-01")).astype(int)) * 1440  # minute of 5 June, 00:00
SECOND = FIRST + 5 * 1440  # of 10 June


@pytest.fixture
def environment(broken_store: Store) -> Environment:
    scorer = Scorer(excluded=broken_store.excluded, lead_minutes=HKO7.lead_minutes(broken_store))
    return Environment(broken_store, HKO7.sequences(broken_store, "test"), HKO7, scorer)


def nothing(store: Store) -> np.ndarray:
    return np.zeros((20, *store.grid), np.float32)


def test_the_windows_are_those_of_the_walk(broken_store: Store) -> None:
    sequences = HKO7.sequences(broken_store, "test")
    starts = [*range(181, 217, 5)], [*range(10, 31, 5)]  # worked out by hand, see broken_store
    assert sequences.start.tolist() == [FIRST + 6 * s for s in starts[0]] + [SECOND + 6 * s for s in starts[1]]
    assert sequences.episode.tolist() == [0] * 8 + [1] * 5


def test_observations_are_the_first_five_frames_and_the_episode_flag(
    environment: Environment, broken_store: Store
) -> None:
    seen = []
    while not environment.end:
        observation = environment.next()
        seen.append((observation.start, observation.new_episode))
        stamps = observation.start + 6 * np.arange(5)
        np.testing.assert_array_equal(observation.pixels, broken_store.read(stamps).pixels)
        environment.upload(nothing(broken_store))
    assert [flag for _, flag in seen] == [True] + [False] * 7 + [True] + [False] * 4
    assert [start for start, _ in seen] == HKO7.sequences(broken_store, "test").start.tolist()


def test_a_missing_input_frame_is_empty_and_flagged(environment: Environment, broken_store: Store) -> None:
    for _ in range(3):
        environment.next()
        environment.upload(nothing(broken_store))
    observation = environment.next()  # frames 196 to 200, and 200 is missing
    assert observation.present.tolist() == [True, True, True, True, False]
    assert not observation.pixels[4].any()


def test_asking_for_the_next_frame_is_an_error(environment: Environment) -> None:
    observation = environment.next()
    with pytest.raises(ProtocolError, match="asked for a frame 6 minutes ahead of what has been observed"):
        observation.past.read([observation.start, observation.past.now + 6])


def test_what_may_be_seen_ends_with_the_fifth_frame(environment: Environment) -> None:
    observation = environment.next()
    assert observation.past.now == observation.start + 4 * 6
    np.testing.assert_array_equal(
        observation.past.read(observation.start + 6 * np.arange(5)).pixels, observation.pixels
    )


def test_a_forecaster_cannot_move_the_clock(environment: Environment) -> None:
    past = environment.next().past
    with pytest.raises(AttributeError):
        past.now = past.now + 600  # type: ignore[misc]


def test_an_old_observation_does_not_learn_what_came_later(environment: Environment, broken_store: Store) -> None:
    first = environment.next()
    environment.upload(nothing(broken_store))
    second = environment.next()
    second.past.read([second.start])
    with pytest.raises(ProtocolError, match="30 minutes ahead"):
        first.past.read([second.past.now])


def test_each_observation_wants_its_forecast_before_the_next(environment: Environment, broken_store: Store) -> None:
    environment.next()
    with pytest.raises(ProtocolError, match="still waits for its forecast"):
        environment.next()
    environment.upload(nothing(broken_store))
    assert environment.done == 1


def test_each_observation_takes_one_forecast(environment: Environment, broken_store: Store) -> None:
    with pytest.raises(ProtocolError, match="no observation to forecast from"):
        environment.upload(nothing(broken_store))
    environment.next()
    environment.upload(nothing(broken_store))
    with pytest.raises(ProtocolError, match="no observation to forecast from"):
        environment.upload(nothing(broken_store))


def test_a_refused_forecast_may_be_given_again(environment: Environment, broken_store: Store) -> None:
    environment.next()
    with pytest.raises(ConfigError, match="float32"):
        environment.upload(np.zeros((19, *broken_store.grid), np.float32))
    environment.upload(nothing(broken_store))
    assert environment.done == 1


def test_after_the_last_window_there_is_nothing_more(environment: Environment, broken_store: Store) -> None:
    while not environment.end:
        environment.next()
        environment.upload(nothing(broken_store))
    assert environment.done == 13
    with pytest.raises(ProtocolError, match="All 13 observations have been given"):
        environment.next()


def test_a_missing_target_adds_nothing_and_still_counts(environment: Environment, broken_store: Store) -> None:
    while not environment.end:
        environment.next()
        environment.upload(np.ones((20, *broken_store.grid), np.float32))
    scores = environment.scores()
    missing = np.argwhere(scores.missing).tolist()
    # Frame 200 is lead 15, 10 and 5 of the windows at 181, 186 and 191 (frames 186 + lead ...). The window at 216 ends
    # with frame 240, which is frame 0 of 6 June: a training frame, so missing here.
    assert missing == [[0, 14], [1, 9], [2, 4], [7, 19]]
    assert scores.mae[7, 19] == scores.bmse[7, 19] == 0
    assert len(scores) == 13


def test_a_frame_of_another_split_is_missing(broken_store: Store) -> None:
    sequences = HKO7.sequences(broken_store, "test")
    stamps = FIRST + 6 * np.arange(238, 242)  # two frames of the test day, two of the training day
    assert broken_store.read(stamps).present.all()
    frames = sequences.read(broken_store, stamps)
    assert frames.present.tolist() == [True, True, False, False]
    assert not frames.pixels[2:].any()
    assert frames.pixels[:2].any()


def test_a_split_without_windows_is_named(broken_store: Store) -> None:
    with pytest.raises(StoreError, match=r"no window of 25 frames in its valid split \(0 frames there, 153 in all\)"):
        HKO7.sequences(broken_store, "valid")


def test_a_split_with_too_few_frames_is_named(tmp_path: object) -> None:
    date = dt.date(2015, 6, 1)
    path = f"{tmp_path}/short.zarr"
    with StoreWriter.create(
        path,
        dates=[date],
        grid=(8, 8),
        interval_minutes=6,
        km_per_pixel=1,
        title="short",
        splits={date: "test"},
    ) as writer:
        minutes = (date - dt.date(1970, 1, 1)).days * 1440 + 6 * np.arange(22)
        writer.commit(writer.write_day(date, minutes, np.zeros((22, 8, 8), np.uint8)))
    with pytest.raises(StoreError, match=r"no window of 25 frames in its test split .22 frames there"):
        HKO7.sequences(open_store(path), "test")


@pytest.mark.parametrize("field", ["frames_in", "leads", "stride"])
def test_rules_that_cannot_be_are_refused(field: str) -> None:
    with pytest.raises(ConfigError, match=f"`{field}` .=0. must be at least 1"):
        Benchmark(**{field: 0})


def test_a_limit_of_nothing_is_refused(broken_store: Store) -> None:
    with pytest.raises(ConfigError, match=r"`limit` .=0. must be at least 1"):
        HKO7.sequences(broken_store, "test").first(0)


def test_scores_of_another_run_cannot_be_taken_up(environment: Environment, broken_store: Store) -> None:
    for _ in range(2):
        environment.next()
        environment.upload(nothing(broken_store))
    scores = environment.scores()
    with pytest.raises(ConfigError, match="not the beginning of this run"):
        environment.go_on(scores)  # it has begun already
