"""Arms x seeds on Ray Tune.

design is the sweep as a value, trial what happens to one arm and seed, folder what it leaves on disk, driver the run on
Ray, clerk the copy of it in MLflow. search tries points of a space, proposed one after the other,
instead of arms that were listed.
"""

from nowcastlab.sweep.design import DIGITS, OFFLINE, ONLINE, Arm, Radar, Sweep, Trial
from nowcastlab.sweep.driver import SweepResult, run_sweep
from nowcastlab.sweep.folder import SweepFolder
from nowcastlab.sweep.trial import read_result, run_trial, scores_path

__all__ = [
    "DIGITS",
    "OFFLINE",
    "ONLINE",
    "Arm",
    "Radar",
    "Sweep",
    "SweepFolder",
    "SweepResult",
    "Trial",
    "read_result",
    "run_sweep",
    "run_trial",
    "scores_path",
]
