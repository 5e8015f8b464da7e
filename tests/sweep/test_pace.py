"""How little a driver asks of the cores that train: reports now and then, MLflow at a share of a core."""

from __future__ import annotations

from typing import Any

import pytest

from nowcastlab.sweep.clerk import pause_after
from nowcastlab.sweep.driver import paced


def test_a_trial_reports_to_tune_once_a_second_and_after_every_validation() -> None:
    now, heard = 0.0, []
    report = paced(heard.append, clock=lambda: now)
    for step in range(1, 41):  # eight updates a second
        now += 0.125
        metrics: dict[str, Any] = {"step": step}
        report({**metrics, "valid/score": 1.0} if step in (15, 40) else metrics)
    # 1 at once, 9 a second later; the validation at 15 puts off the next second's report to 23
    assert [metrics["step"] for metrics in heard] == [1, 9, 15, 23, 31, 39, 40]


@pytest.mark.parametrize(
    ("cpu_s", "pause_s"),
    [(0.001, 1.0), (0.05, 1.0), (0.2, 4.0), (60.0, 10.0)],  # a twentieth of a core, between one second and ten
)
def test_the_clerk_rests_the_longer_the_more_its_round_took(cpu_s: float, pause_s: float) -> None:
    assert pause_after(cpu_s) == pytest.approx(pause_s)
