"""One evaluation, start to end: what it is, what it leaves in its folder, and the same not twice."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nowcastlab import __version__, engine
from nowcastlab.cli.evaluate_pictures import draw
from nowcastlab.cli.forecasters import Subject
from nowcastlab.cli.sharded import sharded_scores
from nowcastlab.config import RadarData
from nowcastlab.errors import StoreError
from nowcastlab.progress import progress
from nowcastlab.protocol import (
    HKO7,
    PRESETS,
    Benchmark,
    OfflineRun,
    Sequences,
    evaluate_online,
    forecast_from,
    rainy_windows,
)
from nowcastlab.protocol.evaluate import scorer_for
from nowcastlab.skill import SequenceScores, load_scores, save_scores
from nowcastlab.store import Store, open_store
from nowcastlab.training.machine import threads
from nowcastlab.whole_files import write_atomically


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    subject: Subject
    store: Store
    setting: str  # offline, online
    split: str
    limit: int | None  # windows
    preset: str  # of online fine-tuning
    online_rate: float | None  # the preset's, if None
    by_scale: bool
    workers: int
    batch_size: int
    folder: Path
    device: torch.device

    def __post_init__(self) -> None:
        self.subject.model.check_grid(*self.store.grid)
        _ = self.sequences  # a split without windows is refused before anything is done

    @cached_property
    def benchmark(self) -> Benchmark:
        """The paper's rules; a network trained for other numbers of frames is asked for those."""
        if self.subject.config is None:
            return HKO7
        data = self.subject.config.data
        assert isinstance(data, RadarData)
        return Benchmark(
            frames_in=data.in_frames, leads=data.leads, stride=data.walk_stride, max_missing=data.max_missing
        )

    @cached_property
    def sequences(self) -> Sequences:
        return self.benchmark.sequences(self.store, self.split).first(self.limit)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What decides the scores: kept beside them, and compared before they are used again."""
        return {
            **self.subject.facts,
            "setting": self.setting,
            **self._online_facts,
            "store": self.store.digest,
            "split": self.split,
            "windows": len(self.sequences),
            "frames": [self.benchmark.frames_in, self.benchmark.leads, self.benchmark.stride],
            "by_scale": self.by_scale,
            "nowcastlab": __version__,
        }

    @property
    def _online_facts(self) -> dict[str, Any]:
        if self.setting != "online":
            return {}
        return {"preset": self.preset, **({"learning_rate": self.online_rate} if self.online_rate else {})}

    @property
    def scores_file(self) -> Path:
        return self.folder / f"scores-{self.setting}.npz"

    @property
    def facts_file(self) -> Path:
        return self.folder / f"scores-{self.setting}.json"

    @property
    def curves_file(self) -> Path:
        return self.folder / f"curves-{self.setting}.png"

    def files(self) -> list[Path]:
        drawn = sorted(self.folder.glob(f"forecast-{self.setting}*.[pg][ni][gf]"))
        return [f for f in (self.scores_file, self.facts_file, self.curves_file) if f.exists()] + drawn

    def known(self) -> SequenceScores | None:
        """The scores of this very evaluation, if the folder has them. Another's are not overwritten unasked."""
        if not self.scores_file.exists():
            return None
        before = read_facts(self.facts_file)
        if before == self.facts:
            return load_scores(self.scores_file)
        changed = sorted(k for k in self.facts.keys() | before.keys() if self.facts.get(k) != before.get(k))
        raise StoreError(
            f"{self.scores_file} is there and not of this evaluation (they differ in {', '.join(changed)}). "
            "Give another folder with --out, or replace it with --again."
        )

    def scored(self, pictures: int, *, again: bool) -> SequenceScores:
        """Score and draw. An online run that was stopped goes on, unless it is to be done again."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if again:
            shutil.rmtree(self._online_folder, ignore_errors=True)
        rows = self._worth_a_look(pictures)
        scores, forecasts = (self._online if self.setting == "online" else self._offline)(rows)
        for old in self.files():
            old.unlink()
        write_atomically(self.facts_file, json.dumps(self.facts, indent=1).encode())
        save_scores(self.scores_file, scores)  # after the facts: without them it would be nobody's
        shutil.rmtree(self._online_folder, ignore_errors=True)
        draw(self, scores, forecasts)  # last: a picture that cannot be drawn takes no hours of scoring with it
        return scores

    def has_pictures(self, count: int) -> bool:
        """Whether the folder has so many, or as many as there are windows for."""
        drawn = list(self.folder.glob(f"forecast-{self.setting}-*.gif"))
        return len(drawn) >= len(self._worth_a_look(count))

    def _worth_a_look(self, pictures: int) -> list[int]:
        return rainy_windows(self.store, self.sequences, self.benchmark, pictures)

    def _offline(self, rows: list[int]) -> tuple[SequenceScores, dict[int, Any]]:
        run = OfflineRun(
            model=self.subject.model,
            store=self.store,
            sequences=self.sequences,
            benchmark=self.benchmark,
            scorer=scorer_for(self.store, self.benchmark, by_scale=self.by_scale),
            batch_size=self.batch_size,
            device=self.device,
        )
        with threads(1 if self.device.type == "cpu" else 0):  # as workers have, for the same last bits
            if self.workers > 1 and self.device.type == "cpu":
                engine.connect(cpus=self.workers)
                scores = sharded_scores(replace(run, store=_from_anywhere(self.store)), workers=self.workers)
            else:
                scores = run.scores(watch=lambda batches: progress(batches, label="evaluate", unit="batch"))
            forecasts = {}
            for row in rows:
                start = self.sequences.start[row : row + 1]
                pixels, present = self.sequences.read_windows(self.store, start, self.benchmark.frames_in)
                excluded, leads = self.store.excluded, self.benchmark.leads
                forecasts[row] = (
                    forecast_from(run.model, pixels, present, excluded, leads, self.device)[0].cpu().numpy()
                )
        return scores, forecasts

    @property
    def _online_folder(self) -> Path:
        return self.folder / "-".join(["online", *map(str, self._online_facts.values())])

    def _online(self, rows: list[int]) -> tuple[SequenceScores, dict[int, Any]]:
        config = self.subject.config
        assert config is not None
        # A network goes on learning what it was trained to do.
        preset = PRESETS[self.preset]
        rate = self.online_rate or preset.learning_rate
        settings = replace(preset, learning_rate=rate, loss=config.loss, loss_scale=config.loss_scale)
        folder = self._online_folder
        folder.mkdir(parents=True, exist_ok=True)

        def keep(row: int, forecast: torch.Tensor) -> None:
            if row in rows:  # on disk: a run that is stopped and goes on does not make it again
                np.save(folder / f"forecast-{row}.npy", forecast.cpu().numpy(), allow_pickle=False)

        bar = progress(total=len(self.sequences), label="evaluate online", unit="window")
        with bar, threads(config.threads):  # those it was trained with
            scores = evaluate_online(
                self.subject.model,
                self.store,
                split=self.split,
                benchmark=self.benchmark,
                settings=settings,
                limit=len(self.sequences),
                device=self.device,
                by_scale=self.by_scale,
                folder=folder,
                facts=self.subject.facts,
                watch=bar,
                keep=keep,
            )
        saved = ((row, folder / f"forecast-{row}.npy") for row in rows)
        return scores, {row: np.load(path, allow_pickle=False) for row, path in saved if path.exists()}


def read_facts(path: Path) -> dict[str, Any]:
    """What made the scores beside this file; nothing if it is not there, or not sound."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _from_anywhere(store: Store) -> Store:
    """The same store for workers, who stand in other folders."""
    return store if "://" in store.url else open_store(str(Path(store.url).absolute()))
