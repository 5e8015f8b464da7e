"""`python -m data_pipeline`: everything that fills, describes and checks a store. Each verb is one file here."""

from __future__ import annotations

from nowcastlab.cli.verbs import VerbGroup, run

VERBS = {
    "ingest": "data_pipeline.ingest",
    "synth": "data_pipeline.synth.command",
    "import": "data_pipeline.import_radar",
    "digits": "data_pipeline.digits",
    "denoise": "data_pipeline.denoise",
    "check": "data_pipeline.check",
    "info": "data_pipeline.info",
    "stats": "data_pipeline.stats",
}

main_group = VerbGroup(
    name="python -m data_pipeline",
    verbs=VERBS,
    help="From raw radar files, or none, to one zarr store that feeds everything.",
)

if __name__ == "__main__":
    run(main_group)
