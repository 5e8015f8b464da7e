"""Training a network, knowing neither Ray nor MLflow.

loop is the story, trainer its four verbs; task (with radar and digits) is what it learns from; checkpoints, history and
run_folder are what it leaves on disk; trained is how others pick that up.
"""

from nowcastlab.training.checkpoints import CheckpointWarning
from nowcastlab.training.history import read_history
from nowcastlab.training.loop import Report, TrainResult, check, train
from nowcastlab.training.run_folder import read_config
from nowcastlab.training.trained import Trained, load_trained, progress_of
from nowcastlab.training.trainer import Progress, build_model

__all__ = [
    "CheckpointWarning",
    "Progress",
    "Report",
    "TrainResult",
    "Trained",
    "build_model",
    "check",
    "load_trained",
    "progress_of",
    "read_config",
    "read_history",
    "train",
]
