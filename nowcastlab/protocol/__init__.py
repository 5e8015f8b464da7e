"""The benchmark's Algorithm 1: offline and online, with future frames out of a forecaster's reach.

benchmark is the rules and the windows they give, environment what a forecaster meets, offline and online the two
settings, evaluate a whole run in one call. digits is MovingMNIST++'s simpler test, examples a few forecasts kept to be
looked at.
"""

from nowcastlab.protocol.benchmark import HKO7, Benchmark, Sequences
from nowcastlab.protocol.digits import digits_test, evaluate_digits
from nowcastlab.protocol.environment import Environment, Observation, Past
from nowcastlab.protocol.evaluate import evaluate_offline, evaluate_online, offline_run
from nowcastlab.protocol.examples import (
    Examples,
    digit_examples,
    load_examples,
    radar_examples,
    rainy_windows,
    save_examples,
)
from nowcastlab.protocol.offline import OfflineRun, forecast_from
from nowcastlab.protocol.online import PRESETS, FineTuner, FineTuning, run_online

__all__ = [
    "HKO7",
    "PRESETS",
    "Benchmark",
    "Environment",
    "Examples",
    "FineTuner",
    "FineTuning",
    "Observation",
    "OfflineRun",
    "Past",
    "Sequences",
    "digit_examples",
    "digits_test",
    "evaluate_digits",
    "evaluate_offline",
    "evaluate_online",
    "forecast_from",
    "load_examples",
    "offline_run",
    "radar_examples",
    "rainy_windows",
    "run_online",
    "save_examples",
]
