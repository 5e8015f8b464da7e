"""Sweeps in a real MLflow database, made by the mirror that real sweeps use; only the scores in them are made up."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nowcastlab.metric_names import DIGITS_MSE, radar_metrics
from nowcastlab.report import Findings, collect, find
from nowcastlab.report.paper import OFFLINE, OFFLINE_STD, ONLINE, ONLINE_STD
from nowcastlab.significance import EpisodeSums
from nowcastlab.skill import SequenceScores, save_scores, summarize
from nowcastlab.tracking import Mirror, TrackedTrial, TrialRecord, connect
from nowcastlab.tracking.sweep_record import SweepRecord
from nowcastlab.units import THRESHOLDS_MMH

LEADS = 3
CODE = "c" * 40
Scores = SequenceScores | NDArray[np.float64]


def radar_scores(
    hits: float, *, seed: int, episodes: int = 12, length: int = 4, noise: float = 0.02, weather: int = 7
) -> SequenceScores:
    """A run on made-up weather: `hits` of the observed pixels are found, a little more or less by seed and episode.

    The weather, and so what is observed, depends on `weather` alone: runs of one weather can be paired.
    """
    sky, own = np.random.default_rng(weather), np.random.default_rng([seed, round(hits * 1e6)])
    n = episodes * length
    wet = np.repeat(sky.uniform(0.5, 2.0, episodes), length)[:, None, None]
    observed = np.rint(wet * sky.uniform(0.8, 1.2, (n, LEADS, 1)) * [2000.0, 1200.0, 700.0, 300.0, 80.0]).astype(int)
    luck = noise * own.standard_normal() + np.repeat(noise * own.standard_normal(episodes), length)
    rate = np.clip(hits + luck[:, None, None] - 0.05 * np.arange(LEADS)[:, None] - 0.02 * np.arange(5), 0.02, 0.98)
    tp = np.rint(observed * rate).astype(int)
    fp = np.rint(0.8 * (observed - tp)).astype(int)
    missed = (observed - tp).sum(2).astype(float)
    return SequenceScores(
        tp=tp,
        fn=observed - tp,
        fp=np.minimum.accumulate(fp + tp, axis=2) - tp,
        tn=20_000 - observed - np.minimum.accumulate(fp + tp, axis=2) + tp,
        mse=0.02 * missed + 10 * own.uniform(size=(n, LEADS)),
        mae=0.05 * missed + 20 * own.uniform(size=(n, LEADS)),
        bmse=missed,
        bmae=2.5 * missed,
        gdl=missed,
        start=30 * np.arange(n) + 1440 * np.repeat(np.arange(episodes), length),
        episode=np.repeat(np.arange(episodes), length),
        thresholds_mmh=np.array(THRESHOLDS_MMH),
        lead_minutes=6.0 * np.arange(1, LEADS + 1),
    )


def digits_errors(mse: float, *, seed: int, sequences: int = 60) -> NDArray[np.float64]:
    hard, own = np.random.default_rng(3), np.random.default_rng([seed, round(mse * 1e9)])
    level = mse * (1 + 0.02 * own.standard_normal()) * hard.uniform(0.5, 1.5, (sequences, 1))
    return level * np.linspace(0.8, 1.2, 10) * own.uniform(0.95, 1.05, (sequences, 10))


@dataclass(kw_only=True)
class MadeSweep:
    """What `make` turns into runs: {arm: {seed: {setting: scores}}}; an arm with seed 0 alone is a baseline."""

    arms: Mapping[str, Mapping[int, Mapping[str, Scores]]]
    name: str = "hko7-benchmark"
    scale: str = "demo"
    comparisons: Sequence[tuple[str, str]] = ()
    store: Mapping[str, Any] = field(default_factory=lambda: {"synthetic": True, "title": "made up"})
    protocol: str = "test split, all windows"
    digits: str = "mnist"
    unfinished: Sequence[str] = ()  # keys of trials left running
    left_out: Sequence[str] = ()  # keys of trials never begun
    reverse: bool = False  # log the trials in the other order


@lru_cache
def _empty_database() -> bytes:
    """MLflow takes seconds to lay out a database: done once."""
    with tempfile.TemporaryDirectory() as folder:
        connect(f"sqlite:///{folder}/mlflow.db")
        return Path(folder, "mlflow.db").read_bytes()


def make(folder: Path, sweep: MadeSweep) -> str:
    """Write a sweep to a database in `folder`; gives its address."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "mlflow.db").exists():
        (folder / "mlflow.db").write_bytes(_empty_database())
    uri = f"sqlite:///{folder}/mlflow.db"
    mirror = Mirror(connect(uri), sweep.name)
    tags = {"sweep": sweep.name, "scale": sweep.scale}
    trials = [(arm, seed, its) for arm, seeds in sweep.arms.items() for seed, its in seeds.items()]
    plain = {f"{arm}-s{seed}": {"arm": arm, "seed": seed, "config": None} for arm, seed, _ in trials}
    files = {"sweep.json": {"comparisons": [list(p) for p in sweep.comparisons], "trials": plain}}
    if sweep.store:
        files["store.json"] = dict(sweep.store)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    mirror.open_sweep(
        key=f"{sweep.name}/{sweep.scale}",
        name=sweep.name,
        params={},
        tags=tags,
        artifacts=[folder / name for name in files],
    )
    for arm, seed, its in reversed(trials) if sweep.reverse else trials:
        if f"{arm}-s{seed}" not in sweep.left_out:
            mirror.sync(_record(folder / f"{sweep.name}-{arm}-{seed}", sweep, arm, seed, its))
    whole = not sweep.unfinished and not sweep.left_out
    mirror.close_sweep(status="FINISHED" if whole else "KILLED")
    return uri


def findings_of(sweep: MadeSweep) -> Findings:
    """What `from_mlflow` and `find` would give of a sweep."""
    trials = {
        (arm, seed): TrackedTrial(
            run_id=f"run-{arm}-{seed}",
            sweep=sweep.name,
            arm=arm,
            seed=seed,
            scale=sweep.scale,
            status="FINISHED",
            data_digest="d" * 64,
            code=CODE,
            params={"parameters": "0" if seed == 0 else str(1000 * len(arm)), "data.digits": sweep.digits},
            metrics={
                "seconds": 360.0 + 36 * seed + len(arm),
                **{name: value for setting, scores in its.items() for name, value in _metrics(setting, scores).items()},
            },
            tags={"nowcastlab.protocol": sweep.protocol},
        )
        for arm, seeds in sweep.arms.items()
        for seed, its in seeds.items()
    }
    record = SweepRecord(
        run_id="parent",
        status="FINISHED",
        scale=sweep.scale,
        plain={"comparisons": [list(pair) for pair in sweep.comparisons]},
        store=sweep.store,
    )

    def load(trial: TrackedTrial, setting: str) -> EpisodeSums:
        scores = sweep.arms[trial.arm][trial.seed][setting]
        known = isinstance(scores, SequenceScores)
        return EpisodeSums.from_scores(scores) if known else EpisodeSums.from_errors(scores)

    return find(collect(list(trials.values()), record), load, resamples=500)


def _metrics(setting: str, scores: Scores) -> dict[str, float]:
    if isinstance(scores, SequenceScores):
        return radar_metrics(setting, summarize(scores))
    return {DIGITS_MSE: float(scores.mean())}


def _record(folder: Path, sweep: MadeSweep, arm: str, seed: int, by_setting: Mapping[str, Scores]) -> TrialRecord:
    folder.mkdir()
    curves: dict[str, dict[int, float]] = {"seconds": {0: 360.0 + 36 * seed + len(arm)}}
    for setting, scores in by_setting.items():
        path = folder / f"scores-{setting}.npz"
        curves |= {name: {0: value} for name, value in _metrics(setting, scores).items()}
        if isinstance(scores, SequenceScores):
            save_scores(path, scores)
        else:
            np.savez(path, mse=scores)
    baseline = seed == 0
    running = f"{arm}-s{seed}" in sweep.unfinished
    return TrialRecord(
        key=f"{sweep.name}/{sweep.scale}/{arm}-s{seed}",
        name=f"{arm}-s{seed}",
        params={"parameters": 0 if baseline else 1000 * len(arm), "data.digits": sweep.digits},
        tags={
            "sweep": sweep.name,
            "arm": arm,
            "seed": str(seed),
            "scale": sweep.scale,
            "nowcastlab.data_digest": "d" * 64,
            "nowcastlab.code": CODE,
            "nowcastlab.protocol": sweep.protocol,
        },
        curves=curves,
        artifacts=sorted(folder.iterdir()),
        status="RUNNING" if running else "FINISHED",
    )


def radar_arms(seeds: Sequence[int] = (1, 2, 3), **options: Any) -> dict[str, dict[int, dict[str, Any]]]:
    """Eight of the benchmark's rows, in the paper's order of quality."""
    quality = {"2D-CNN": 0.50, "3D-CNN": 0.53, "ConvGRU": 0.60, "TrajGRU": 0.64}
    arms: dict[str, dict[int, dict[str, Any]]] = {
        name: {0: {"offline": radar_scores(hits, seed=0, **options)}}
        for name, hits in {"Last-Frame": 0.30, "ROVER-Linear": 0.38, "ROVER-Nonlinear": 0.40}.items()
    }
    for name, hits in quality.items():
        arms[name] = {
            s: {
                "offline": radar_scores(hits, seed=s, **options),
                "online": radar_scores(hits + 0.05, seed=s, **options),
            }
            for s in seeds
        }
    arms["ConvGRU-nobal"] = {s: {"offline": radar_scores(0.42, seed=s, **options)} for s in seeds}
    return arms


def digits_arms(seeds: Sequence[int] = (1, 2, 3), **options: Any) -> dict[str, dict[int, dict[str, Any]]]:
    mse = {"Conv-K3-D2": 0.020, "Conv-K7-D1": 0.016, "Traj-L5": 0.015, "Traj-L9": 0.013, "Traj-L13": 0.011}
    mse["Traj-L17"] = 0.009
    return {
        arm: {seed: {"digits": digits_errors(value, seed=seed, **options)} for seed in seeds}
        for arm, value in mse.items()
    }


RADAR_COMPARISONS = (("TrajGRU", "ConvGRU"), ("2D-CNN", "ROVER-Nonlinear"), ("ConvGRU", "ConvGRU-nobal"))
DIGITS_COMPARISONS = (("Traj-L5", "Conv-K3-D2"), ("Traj-L9", "Traj-L5"))


# Share of pixels observed at each threshold. Counts that give all of the paper's scores exist only near these; the
# official shares are smaller, since the paper's scores are means over leads and not of one table of counts.
OBSERVED = (0.11, 0.075, 0.05, 0.032, 0.016)


def printed_scores(
    csi: Sequence[float],
    hss: Sequence[float],
    bmse: float,
    bmae: float,
    *,
    sequences: int = 8,
    episodes: int = 4,
    pixels: int = 10**12,
) -> SequenceScores:
    """Counts from which exactly these scores come, derived by hand.

    Of N pixels T are observed, F forecast and H both. With c = CSI = H / (T + F - H), H = c / (1 + c) (T + F). In
    HSS = s = 2 (H N - T F) / (N (T + F) - 2 T F), with S = T + F, h = 2 c / (1 + c) and T F = T S - T^2, S is linear:

        S (s N - 2 s T - h N + 2 T) = 2 T^2 (1 - s),    S = 2 T^2 (1 - s) / (2 T (1 - s) - N (h - s))

    T is the same for every arm, as it is what truly happened; N so large that whole pixels round nothing away.
    """
    tables: dict[str, list[int]] = {name: [] for name in ("tp", "fn", "fp", "tn")}
    for c, s, share in zip(csi, hss, OBSERVED, strict=True):
        t, h = round(share * pixels), 2 * c / (1 + c)
        both = 2 * t**2 * (1 - s) / (2 * t * (1 - s) - pixels * (h - s))
        hits, forecast = round(h / 2 * both), round(both - t)
        for name, count in (("tp", hits), ("fn", t - hits), ("fp", forecast - hits)):
            tables[name].append(count)
        tables["tn"].append(pixels - t - forecast + hits)
    shape = (sequences, 2, 5)
    errors = {name: np.full(shape[:2], value) for name, value in (("bmse", bmse), ("bmae", bmae), ("mse", bmse / 8.0))}
    return SequenceScores(
        **{name: np.broadcast_to(np.array(table), shape).copy() for name, table in tables.items()},
        **errors,
        mae=np.full(shape[:2], bmae / 4.0),
        gdl=np.zeros(shape[:2]),
        start=30 * np.arange(sequences),
        episode=np.arange(sequences) * episodes // sequences,
        thresholds_mmh=np.array(THRESHOLDS_MMH),
        lead_minutes=np.array([6.0, 12.0]),
    )


def paper_runs(arm: str, setting: str = "offline", **options: Any) -> list[SequenceScores]:
    """Runs whose mean and deviation over three seeds are the paper's: at m - d, m and m + d the deviation is d."""
    means, stds = {"offline": (OFFLINE, OFFLINE_STD), "online": (ONLINE, ONLINE_STD)}[setting]
    m, d = means[arm], stds.get(arm)
    steps = (0,) if d is None else (-1, 0, 1)
    return [
        printed_scores(
            [c + step * (d.csi[i] if d else 0) for i, c in enumerate(m.csi)],
            [s + step * (d.hss[i] if d else 0) for i, s in enumerate(m.hss)],
            m.bmse + step * (d.bmse if d else 0),
            m.bmae + step * (d.bmae if d else 0),
            **options,
        )
        for step in steps
    ]


@pytest.fixture(scope="session")
def radar_uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A demo benchmark on a synthetic store."""
    return make(tmp_path_factory.mktemp("radar"), MadeSweep(arms=radar_arms(), comparisons=RADAR_COMPARISONS))


@pytest.fixture(scope="session")
def digits_uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    sweep = MadeSweep(arms=digits_arms(), name="links-vs-kernel", comparisons=DIGITS_COMPARISONS, store={})
    return make(tmp_path_factory.mktemp("digits"), sweep)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Everything above. made.sweep(arms=..., scale="paper") gives the address of a database with that sweep in it,
    made.findings(...) what would be read from it, without the seconds that a database takes."""
    return SimpleNamespace(
        sweep=lambda **options: make(tmp_path_factory.mktemp("sweep"), MadeSweep(**options)),
        findings=lambda **options: findings_of(MadeSweep(**options)),
        radar_scores=radar_scores,
        radar_arms=radar_arms,
        digits_arms=digits_arms,
        digits_errors=digits_errors,
        paper_runs=paper_runs,
        printed_scores=printed_scores,
    )
