"""Which algorithm forecasts radar rain best, and does going on learning help it?

The benchmark table of Shi et al. 2017: seven algorithms, ConvGRU without the balanced loss, and ConvLSTM beside them,
because people who tried found it as good as TrajGRU. Held fixed: windows, loss, optimiser, the number of updates.
Decided by B-MSE and B-MAE over the test windows, offline and, for networks, online; the comparisons below were named
before any run.

    python sweeps/hko7_benchmark.py                          demo: minutes on two cores, on a synthetic store it makes
    python sweeps/hko7_benchmark.py --scale paper --store work/hko7.zarr --gpus-per-trial 1
"""

from __future__ import annotations

import contextlib
import datetime as dt
from pathlib import Path

from data_pipeline.synth.days import SyntheticPlan
from data_pipeline.synth.write import write_store
from nowcastlab.cli.sweep import sweep_command
from nowcastlab.config import radar_config
from nowcastlab.errors import StoreError
from nowcastlab.store import open_store
from nowcastlab.sweep import OFFLINE, ONLINE, Arm, Radar, Sweep

BASELINES = {"Last-Frame": "last-frame", "ROVER-Linear": "rover", "ROVER-Nonlinear": "rover-nonlinear"}
NETWORKS = {"2D-CNN": "conv2d", "3D-CNN": "conv3d", "ConvGRU": "convgru", "TrajGRU": "trajgru", "ConvLSTM": "convlstm"}
COMPARISONS = [
    ("TrajGRU", "ConvGRU"),
    ("TrajGRU", "ConvLSTM"),
    ("3D-CNN", "2D-CNN"),
    ("2D-CNN", "ROVER-Nonlinear"),
    ("ConvGRU", "ConvGRU-nobal"),
]
# Of the synthetic store, and the first windows of its test days that are scored.
DAYS = {"demo": 6, "laptop": 24, "paper": 96}
SIZE = {"demo": 60, "laptop": 120, "paper": 480}
LIMIT = {"demo": 12, "laptop": None, "paper": None}


def hko7_benchmark(scale: str, seeds: tuple[int, ...], store: str | None = None) -> Sweep:
    path = store or synthetic_store(scale)
    radar = Radar(store=path, digest=open_store(path).digest, limit=LIMIT[scale])
    arms = [Arm(name=name, baseline=baseline) for name, baseline in BASELINES.items()]
    for name, model in NETWORKS.items():
        config = radar_config(model, store=path, scale=scale, threads=1)
        arms.append(Arm(name=name, config=config, settings=(OFFLINE, ONLINE)))
    plain = radar_config("convgru", store=path, scale=scale, loss="plain", threads=1)
    arms.append(Arm(name="ConvGRU-nobal", config=plain))
    return Sweep(
        name="hko7-benchmark",
        question="Which algorithm forecasts radar rain best, and does going on learning help it?",
        scale=scale,
        arms=arms,
        seeds=seeds,
        comparisons=COMPARISONS,
        radar=radar,
    )


def synthetic_store(scale: str) -> str:
    """Made once, or what is missing of it. A finished one is only looked at: other sweeps may be reading it."""
    path = Path("work") / f"synthetic-{scale}.zarr"
    plan = SyntheticPlan(start=dt.date(2014, 5, 1), days=DAYS[scale], size=SIZE[scale], seed=1)
    with contextlib.suppress(StoreError):  # there is none, or only its beginning
        if [day.date for day in open_store(str(path)).days] == plan.dates:
            return str(path)
    write_store(plan, path)
    return str(path)


if __name__ == "__main__":
    sweep_command(hko7_benchmark, __doc__)
