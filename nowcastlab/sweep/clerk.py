"""The driver's clerk: keeps MLflow and the person watching up to date while trials run elsewhere.

It reads the trials' folders, which survive anything; so a tracking server that is away for a while loses nothing, and a
driver that dies leaves nothing that the next one cannot copy.
"""

from __future__ import annotations

import platform
import threading
import time
from pathlib import Path
from typing import Any

from nowcastlab import __version__
from nowcastlab.errors import TrackingError
from nowcastlab.sweep.design import DIGITS, Sweep, Trial
from nowcastlab.sweep.folder import SweepFolder
from nowcastlab.sweep.trial import FINISHED, read_result, scores_path
from nowcastlab.tracking import Mirror, TrialRecord
from nowcastlab.training import read_history

EVERY_S = 1.0
PATIENCE_S = 600.0  # for a tracking server at the end of a sweep


class Clerk:
    def __init__(self, sweep: Sweep, folder: SweepFolder, mirror: Mirror, code_version: str) -> None:
        self._sweep, self._folder, self._mirror, self._code = sweep, folder, mirror, code_version
        self._pending: dict[str, Trial] = {}  # started, and not yet copied to their end
        self._stop = threading.Event()
        self._guard = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="clerk", daemon=True)
        self.trouble: Exception | None = None  # of the last attempt

    def start(self) -> None:
        self._thread.start()

    def watch(self, trial: Trial) -> None:
        with self._guard:
            self._pending[trial.key] = trial

    def finish(self, *, unfinished: str) -> None:
        """Copy what is left; wait for the server if need be. Trials without an end get the status `unfinished`."""
        self._stop.set()
        self._thread.join()
        deadline = time.monotonic() + PATIENCE_S
        while not self._round(unfinished=unfinished):
            if time.monotonic() > deadline:
                raise TrackingError(
                    f"The tracking store at {self._mirror.uri} has not answered for {PATIENCE_S / 60:.0f} minutes "
                    f"({self.trouble}). Nothing is lost: run the same command again when it is back."
                )
            time.sleep(2)

    def _work(self) -> None:
        while not self._stop.wait(EVERY_S):
            self._round(unfinished="RUNNING")

    def _round(self, *, unfinished: str) -> bool:
        """Copy every pending trial once; False if MLflow did not answer."""
        with self._guard:
            pending = list(self._pending.values())
        for trial in pending:
            record = record_of(trial, self._folder.trial(trial), code_version=self._code, unfinished=unfinished)
            try:
                self._mirror.sync(record)
            except Exception as error:
                # whatever a client far away raises: the folder still has it, and the next round tries again
                self.trouble = error
                return False
            if record.status in ("FINISHED", "FAILED"):
                with self._guard:
                    self._pending.pop(trial.key, None)
        self.trouble = None
        return True


def record_of(trial: Trial, folder: Path, *, code_version: str, unfinished: str) -> TrialRecord:
    """A trial's folder in MLflow's terms. Names sort and filter: arm, seed, scale, model are params and tags."""
    result = read_result(folder)
    status = unfinished if result is None else "FINISHED" if result["status"] == FINISHED else "FAILED"
    config = trial.config.to_plain() if trial.config else {}
    data = config.pop("data", {})
    overrides = config.pop("overrides", {})
    params: dict[str, Any] = {
        "arm": trial.arm,
        "seed": trial.seed,
        **({"parameters": result["parameters"]} if result and "parameters" in result else {}),
        **{name: value for name, value in config.items() if name not in ("seed", "device", "version")},
        **{f"model.{name}": value for name, value in overrides.items()},
        **{f"data.{name}": value for name, value in data.items() if name != "store"},
    }
    tags = {
        "sweep": trial.sweep,
        "arm": trial.arm,
        "seed": str(trial.seed),
        "scale": trial.scale,
        "model": trial.config.model if trial.config else trial.baseline or "",
        "nowcastlab.identity": trial.identity,
        "nowcastlab.data_digest": _digest(trial),
        "nowcastlab.code": code_version,
        "nowcastlab.version": __version__,
        "nowcastlab.python": platform.python_version(),
        "nowcastlab.machine": platform.node(),
        "nowcastlab.folder": str(folder.resolve()),
    }
    done = result if result is not None and result["status"] == FINISHED else None
    files = [folder / "config.json", folder / "history.jsonl", *(scores_path(folder, s) for s in trial.settings)]
    return TrialRecord(
        key=f"{trial.sweep}/{trial.scale}/{trial.key}",
        name=trial.key,
        params=params,
        tags=tags,
        history=read_history(folder),
        curves=_curves(done) if done else {},
        artifacts=[path for path in files if path.is_file()],
        status=status,
        error=result.get("error") if result else None,
    )


def _curves(result: dict[str, Any]) -> dict[str, dict[int, float]]:
    """Final scores as single values at step 0."""
    curves: dict[str, dict[int, float]] = {"seconds": {0: result["seconds"]}}
    for setting, scores in result["scores"].items():
        if setting == DIGITS:
            curves["test/mse"] = {0: scores["mse"]}
            curves["test/mse/lead"] = {i + 1: value for i, value in enumerate(scores["mse_per_lead"])}
            continue
        for name in ("bmse", "bmae", "mse", "mae"):
            curves[f"{setting}/{name}"] = {0: scores[name]}
        for name in ("csi", "hss", "pod", "far"):
            for threshold, value in zip(scores["thresholds_mmh"], scores[name], strict=True):
                if value is not None:  # a threshold that never occurred has no score
                    curves[f"{setting}/{name}/r{threshold:g}"] = {0: value}
    return curves


def _digest(trial: Trial) -> str:
    if trial.radar is not None:
        return trial.radar.digest
    assert trial.config is not None
    return trial.config.data.digest
