"""Is the balanced loss what makes a network forecast heavy rain?

ConvGRU trained on B-MSE + B-MAE, and on plain MSE + MAE: the same network, data, optimiser and number of updates.
Decided by CSI at 30 mm/h, where the paper finds .1776 against .0712, and by B-MSE + B-MAE.

    python sweeps/balanced_loss.py                                         demo, on a synthetic store that it makes
    python sweeps/balanced_loss.py --scale paper --store work/hko7.zarr --gpus-per-trial 1
"""

from __future__ import annotations

from hko7_benchmark import synthetic_store

from nowcastlab.cli.sweep import sweep_command
from nowcastlab.config import radar_config
from nowcastlab.store import open_store
from nowcastlab.sweep import Arm, Radar, Sweep


def balanced_loss(scale: str, seeds: tuple[int, ...], store: str | None = None) -> Sweep:
    path = store or synthetic_store(scale)
    losses = {"ConvGRU": "balanced", "ConvGRU-nobal": "plain"}
    return Sweep(
        name="balanced-loss",
        question="Is the balanced loss what makes a network forecast heavy rain?",
        scale=scale,
        arms=[
            Arm(name="Last-Frame", baseline="last-frame"),
            *(
                Arm(name=name, config=radar_config("convgru", store=path, scale=scale, loss=loss, threads=1))
                for name, loss in losses.items()
            ),
        ],
        seeds=seeds,
        comparisons=[("ConvGRU", "ConvGRU-nobal")],
        radar=Radar(store=path, digest=open_store(path).digest),
    )


if __name__ == "__main__":
    sweep_command(balanced_loss, __doc__)
