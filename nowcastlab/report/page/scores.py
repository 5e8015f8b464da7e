"""What the page calls things: scores and by how much it multiplies them, runs, arms, what was tested."""

from __future__ import annotations

from nowcastlab.report.collect import Collection
from nowcastlab.report.findings import Findings
from nowcastlab.report.tables import SETTING_TITLES, ordered
from nowcastlab.significance import Cell

DIGITS_TIMES = 100.0  # their errors are printed times this, as in the paper's table


def score_title(cell: Cell) -> str:
    """Above a picture."""
    return f"CSI, {cell.threshold_mmh:g} mm/h and more" if cell.score == "csi" and cell.threshold_mmh else str(cell)


def score_scale(cell: Cell) -> float:
    """What the page multiplies a score by."""
    return DIGITS_TIMES if cell.score == "mse" else 1.0


def times(scale: float) -> str:
    """Behind a title: by what its numbers were multiplied."""
    return f" × {scale:g}" if scale != 1 else ""


def slug(cell: Cell) -> str:
    """A score in the name of an HTML element."""
    return cell.score if cell.threshold_mmh is None else f"{cell.score}-{cell.threshold_mmh:g}".replace(".", "_")


def every_arm(collection: Collection) -> list[str]:
    """Of all settings, in the paper's order where it has them."""
    return list(dict.fromkeys(arm for setting in SETTING_TITLES for arm in ordered(collection, setting)))


def run_names(collection: Collection) -> dict[str, str]:
    """By run id: arm and seed, as trials are called in MLflow."""
    return {trial.run_id: f"{arm} s{trial.seed}" for arm in every_arm(collection) for trial in collection.arms[arm]}


def tested_on(findings: Findings) -> str:
    """How much."""
    sequences, episodes = findings.tested_on
    return f"{sequences:,} sequences" + (f" in {episodes:,} episodes" if findings.drawn == "episodes" else "")
