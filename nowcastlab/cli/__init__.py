"""The `nowcastlab` command. Each verb is one file here, imported only when it is used."""

from __future__ import annotations

from nowcastlab import __version__
from nowcastlab.cli.verbs import VerbGroup, run

VERBS = {
    "models": "nowcastlab.cli.models",
    "train": "nowcastlab.cli.train",
    "evaluate": "nowcastlab.cli.evaluate",
    "predict": "nowcastlab.cli.predict",
    "scores": "nowcastlab.cli.scores",
    "report": "nowcastlab.cli.report",
    "calibrate": "nowcastlab.cli.calibrate",
    "cluster": "nowcastlab.cli.cluster",
    "bench": "nowcastlab.cli.bench",
}

main_group = VerbGroup(
    name="nowcastlab",
    verbs=VERBS,
    version=__version__,
    help="Experiment sweeps for radar precipitation nowcasting.",
)


def main() -> None:
    run(main_group)
