"""One live view of a sweep: how far, what runs, how long still. Off a terminal, a line a trial."""

from __future__ import annotations

import sys
from collections.abc import Callable

from nowcastlab.progress import progress
from nowcastlab.sweep.design import Trial
from nowcastlab.sweep.plan import duration

SHOWN = 4  # running trials named in the bar


class View:
    """Counts updates of all trials, so that the bar moves evenly and its remaining time means something."""

    def __init__(self, trials: list[Trial], say: Callable[[str], None]) -> None:
        self._trials = {trial.key: trial for trial in trials}
        self._steps = dict.fromkeys(self._trials, 0)
        self._running: list[str] = []
        self._ended = 0
        self._say = say
        self._bar = progress(total=sum(map(steps_of, trials)), label="sweep", unit="updates")

    def started(self, key: str) -> None:
        if key not in self._running:
            self._running.append(key)

    def moved(self, key: str, step: int) -> None:
        if key in self._steps and step > self._steps[key]:
            self._bar.update(step - self._steps[key])
            self._steps[key] = step
            self._label()

    def ended(self, key: str, outcome: str) -> None:
        self._ended += 1
        if key in self._running:
            self._running.remove(key)
        self._bar.update(steps_of(self._trials[key]) - self._steps[key])
        self._steps[key] = steps_of(self._trials[key])
        line = f"  [{self._ended}/{len(self._trials)}] {key}: {outcome}"
        if sys.stderr.isatty():
            self._bar.write(line, file=sys.stderr)
        else:
            self._say(line)
        self._label()

    def close(self) -> None:
        self._bar.close()

    def _label(self) -> None:
        shown = ", ".join(f"{key} {self._steps[key]}/{steps_of(self._trials[key])}" for key in self._running[:SHOWN])
        self._bar.set_postfix_str(f"{self._ended}/{len(self._trials)} trials; {shown}", refresh=False)


def steps_of(trial: Trial) -> int:
    return trial.config.max_steps if trial.config else 1


def outcome_text(seconds: float, scores: dict[str, dict[str, object]]) -> str:
    """A finished trial in a few words."""
    parts = []
    for setting, values in scores.items():
        if "mse_per_lead" in values:
            parts.append(f"test MSE {values['mse']:.5f}")
        else:
            parts.append(f"{setting} B-MSE {values['bmse']:.0f} B-MAE {values['bmae']:.0f}")
    return f"{', '.join(parts)} ({duration(seconds)})"
