"""Does a small ConvGRU beat the last frame on drifting showers? A sweep for the cluster's test: minutes anywhere.

Seven trials of half a minute, tested offline and online, with a checkpoint every few updates.
"""

from __future__ import annotations

from nowcastlab.cli.sweep import sweep_command
from nowcastlab.config import radar_config
from nowcastlab.store import open_store
from nowcastlab.sweep import OFFLINE, ONLINE, Arm, Radar, Sweep

UPDATES = 30


def showers(scale: str, seeds: tuple[int, ...], store: str) -> Sweep:
    arms = [Arm(name="Last-Frame", baseline="last-frame")]
    for name, model in {"ConvGRU": "convgru", "TrajGRU": "trajgru"}.items():
        config = radar_config(
            model,
            store=store,
            scale=scale,
            threads=1,
            max_steps=UPDATES,
            validate_every=15,
            report_every=2,
            checkpoint_every=2,
        )
        arms.append(Arm(name=name, config=config, settings=(OFFLINE, ONLINE)))
    return Sweep(
        name="showers",
        question="Does a small ConvGRU beat the last frame on drifting showers?",
        scale=scale,
        arms=arms,
        seeds=seeds,
        comparisons=[("ConvGRU", "Last-Frame")],
        radar=Radar(store=store, digest=open_store(store).digest, limit=6),
    )


if __name__ == "__main__":
    sweep_command(showers, __doc__)
