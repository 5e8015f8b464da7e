"""Training runs as frozen values: their fields in train_config, the paper's settings by name in presets."""

from nowcastlab.config.data import Data, DigitsData, RadarData
from nowcastlab.config.presets import PRESETS, RADAR_LOSSES, SCALES, departures, mnist_config, radar_config
from nowcastlab.config.train_config import TrainConfig, with_changes

__all__ = [
    "PRESETS",
    "RADAR_LOSSES",
    "SCALES",
    "Data",
    "DigitsData",
    "RadarData",
    "TrainConfig",
    "departures",
    "mnist_config",
    "radar_config",
    "with_changes",
]
