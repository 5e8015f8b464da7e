"""`python -m data_pipeline`: everything that fills, describes and checks a store. Each verb is one file here."""

from __future__ import annotations

from nowcastlab.cli.verbs import VerbGroup, run

VERBS: dict[str, str] = {
    "digits": "data_pipeline.digits",
}

main_group = VerbGroup(
    name="python -m data_pipeline",
    verbs=VERBS,
    help="From raw radar files, or none, to one zarr store that feeds everything.",
)

if __name__ == "__main__":
    run(main_group)
