"""MLflow: what a person browses. Each trial's folder is the truth, MLflow a copy that is always catching up.

backend connects, to a local sqlite file or a server; mirror copies: one run a trial, every value once; reading gives it
back to whoever makes tables.
"""

from nowcastlab.tracking.backend import connect, connect_existing, tracking_uri
from nowcastlab.tracking.mirror import Data, Mirror, TrialRecord
from nowcastlab.tracking.reading import TrackedTrial, read_examples, read_scores, read_trials, sweep_names

__all__ = [
    "Data",
    "Mirror",
    "TrackedTrial",
    "TrialRecord",
    "connect",
    "connect_existing",
    "read_examples",
    "read_scores",
    "read_trials",
    "sweep_names",
    "tracking_uri",
]
