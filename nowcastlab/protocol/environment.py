"""The testing environment of Algorithm 1 (Shi et al. 2017): gives what has been observed, takes what is forecast.

    while not environment.end:
        observation = environment.next()
        environment.upload(forecast_of(observation))
    scores = environment.scores()

A forecaster gets its segment, the new-episode flag, and the past up to that moment. What comes later is out of its
reach: asking for it is an error, whether by mistake or not. Forecasts are scored as they come and then let go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nowcastlab.errors import ConfigError, ProtocolError
from nowcastlab.protocol.benchmark import Benchmark, Sequences
from nowcastlab.skill import Scorer, SequenceScores, concatenate
from nowcastlab.store import Frames, Store


class Past:
    """The frames up to one moment."""

    def __init__(self, store: Store, now: int) -> None:
        self.__store = store
        self.__now = now

    @property
    def now(self) -> int:
        """Minutes since 1970-01-01 of the newest frame that may be seen. Only the environment moves it."""
        return self.__now

    def read(self, minutes: ArrayLike) -> Frames:
        """The frames with these stamps, of any split; one of a stamp after `now` is a ProtocolError."""
        asked = np.asarray(minutes, np.int64)
        if asked.size and asked.max() > self.now:
            ahead = int(asked.max()) - self.now
            raise ProtocolError(
                f"The forecaster asked for a frame {ahead} minutes ahead of what has been observed. "
                "It may read `observation.past` up to `now`, and must forecast the rest."
            )
        return self.__store.read(asked)


@dataclass(frozen=True, kw_only=True, eq=False)
class Observation:
    start: int  # minutes since 1970-01-01 of the segment's first frame
    new_episode: bool  # the segment does not follow the one before
    pixels: NDArray[np.uint8]  # (frames_in, y, x)
    present: NDArray[np.bool_]  # (frames_in,)
    past: Past


class Environment:
    def __init__(self, store: Store, sequences: Sequences, benchmark: Benchmark, scorer: Scorer) -> None:
        self._store, self._sequences, self._benchmark, self._scorer = store, sequences, benchmark, scorer
        self._parts: list[SequenceScores] = []
        self._done = 0
        self._waiting = False  # for the forecast of the last observation

    @property
    def done(self) -> int:
        """How many forecasts have been uploaded."""
        return self._done

    @property
    def end(self) -> bool:
        return self.done == len(self._sequences)

    def next(self) -> Observation:
        """The next segment, in the order of time."""
        if self._waiting:
            raise ProtocolError("The last observation still waits for its forecast: upload it first.")
        if self.end:
            raise ProtocolError(f"All {len(self._sequences)} observations have been given.")
        window = self._sequences.windows[self.done]
        stamps = self._stamps(window.start)[: self._benchmark.frames_in]
        frames = self._sequences.read(self._store, stamps)
        self._waiting = True
        return Observation(
            start=window.start,
            new_episode=window.new_episode,
            pixels=frames.pixels,
            present=frames.present,
            past=Past(self._store, int(stamps[-1])),
        )

    def upload(self, forecast: Any) -> None:
        """Score the forecast (leads, y, x) of the last observation, float32 p; a torch tensor or a numpy array."""
        if not self._waiting:
            raise ProtocolError("There is no observation to forecast from: call next first.")
        row = self.done
        start = self._sequences.windows[row].start
        truth = self._sequences.read(self._store, self._stamps(start)[self._benchmark.frames_in :])
        part = self._scorer.score(
            forecast[None],
            truth.pixels[None],
            present=truth.present[None],
            start=[start],
            episode=self._sequences.episode[row : row + 1],
        )
        self._parts.append(part)
        self._done += 1
        self._waiting = False

    def scores(self) -> SequenceScores:
        """Of what has been uploaded so far."""
        return concatenate(self._parts)

    def go_on(self, scores: SequenceScores) -> None:
        """Take up a run that was stopped: its first scores are these."""
        expected = self._sequences.start[: len(scores)]
        if self._parts or not np.array_equal(scores.start, expected):
            raise ConfigError(
                f"These {len(scores)} scores are not the beginning of this run of {len(self._sequences)} windows. Give "
                "those of the same run, before its first forecast."
            )
        self._parts, self._done = [scores], len(scores)

    def _stamps(self, start: int) -> NDArray[np.int64]:
        return start + self._store.interval_minutes * np.arange(self._benchmark.length)
