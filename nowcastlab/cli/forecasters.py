"""What the commands can forecast with: a run's folder, or a baseline by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from nowcastlab.config import TrainConfig
    from nowcastlab.models import Forecaster
    from nowcastlab.store import Store

SYNTH = "python -m data_pipeline synth work/demo.zarr --days 12 --size 120"  # for whoever has no radar at hand

WHICH = click.option(
    "--which",
    type=click.Choice(["best", "last"]),
    default="best",
    show_default=True,
    help="A run's weights: those of its best validation, or the newest.",
)
DEVICE = click.option(
    "--device",
    default="auto",
    show_default=True,
    help="Where to compute: auto (a GPU if there is one), cpu, cuda, or one of several, as cuda:1.",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """A forecaster, and what a reader of its results must know of it."""

    name: str
    model: Forecaster
    config: TrainConfig | None  # None for a baseline
    folder: Path | None
    facts: dict[str, Any]  # plain values

    @property
    def store(self) -> str | None:
        """Where the run's own data lies."""
        from nowcastlab.config import RadarData

        return self.config.data.store if self.config and isinstance(self.config.data, RadarData) else None


def open_forecaster(what: str, *, which: str, device: Any) -> Subject:
    from nowcastlab.config import RADAR_LOSSES, RadarData
    from nowcastlab.models import BASELINES, build
    from nowcastlab.training import load_trained

    folder = Path(what)
    if what in BASELINES:
        if folder.is_dir():
            click.echo(f"{what} is taken as the baseline; for the folder of that name write ./{what}.", err=True)
        return Subject(
            name=what, model=build(what, "hko7").to(device), config=None, folder=None, facts={"forecaster": what}
        )
    if not folder.exists():
        raise click.UsageError(
            f"No run folder {what}, and no baseline of that name: the baselines are {', '.join(BASELINES)}. "
            "A run is made by `nowcastlab train`."
        )
    trained = load_trained(folder, which, device=device)
    config = trained.config
    balanced = not isinstance(config.data, RadarData) or config.loss == RADAR_LOSSES["balanced"]
    return Subject(
        name=config.model if balanced else f"{config.model}, {config.loss}",
        model=trained.model,
        config=config,
        folder=folder,
        facts={
            "forecaster": config.model,
            "run": config.identity,
            "step": trained.step,
            "seed": config.seed,
            "loss": config.loss,
            "scale": config.scale,
            "trained_on": trained.data_digest,
        },
    )


def open_data(subject: Subject, url: str | None) -> Store:
    """The store a user named, or the run's own."""
    from nowcastlab.store import open_store

    url = url or subject.store
    if url is None:
        raise click.UsageError(
            f"{subject.name} needs data: give a store with --store. One to try is made by\n  {SYNTH}"
        )
    return open_store(url)
