"""MLflow: what a person browses. Each trial's folder is the truth, MLflow a copy that is always catching up.

backend connects, to a local sqlite file or a server; mirror copies: one run a trial, every value once.
"""

from nowcastlab.tracking.backend import connect, tracking_uri
from nowcastlab.tracking.mirror import Mirror, TrialRecord

__all__ = ["Mirror", "TrialRecord", "connect", "tracking_uri"]
