"""The `nowcastlab` command. Each verb is one file here, imported only when it is used."""

from __future__ import annotations

from nowcastlab import __version__
from nowcastlab.cli.verbs import VerbGroup, exit_code_help, run

VERBS = {
    "models": "nowcastlab.cli.models",
    "train": "nowcastlab.cli.train",
    "evaluate": "nowcastlab.cli.evaluate",
    "predict": "nowcastlab.cli.predict",
    "scores": "nowcastlab.cli.scores",
    "report": "nowcastlab.cli.report",
    "ui": "nowcastlab.cli.ui",
    "plan": "nowcastlab.cli.plan",
    "calibrate": "nowcastlab.cli.calibrate",
    "cluster": "nowcastlab.cli.cluster",
    "bench": "nowcastlab.cli.bench",
    "doctor": "nowcastlab.cli.doctor",
    "completion": "nowcastlab.cli.completion",
}

# For --help: what a newcomer looks for. A verb that is in none of these is listed all the same.
SECTIONS = {
    "One model": ("models", "train", "evaluate", "predict", "scores"),
    "Sweeps, which are files of their own (sweeps/), and what became of them": ("plan", "ui", "report"),
    "This machine, and others": ("doctor", "bench", "calibrate", "cluster", "completion"),
}

HELP = """Experiment sweeps for radar precipitation nowcasting, and tables that say no more than their runs prove.

\b
The usual way:
  python -m data_pipeline synth work/rain.zarr --days 12 --size 120    rain to try; `ingest` and `import` take yours
  python sweeps/links_vs_kernel.py                                     a sweep; again, it does what is missing
  nowcastlab ui                                                        its trials in MLflow: curves, pictures
  nowcastlab report --table mnist                                      its table, and what may be believed of it

The MLflow database (MLFLOW_TRACKING_URI, or work/mlflow.db) keeps every trial; Ray (RAY_ADDRESS, or this machine) runs
them. Each verb has its own --help, with examples. The documentation is in docs/ of the source.
"""

main_group = VerbGroup(
    name="nowcastlab",
    verbs=VERBS,
    version=__version__,
    sections=SECTIONS,
    help=HELP,
    epilog=exit_code_help(),
)


def main() -> None:
    run(main_group)
