from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.models import Forecaster, build
from nowcastlab.protocol import HKO7, PRESETS, Benchmark, FineTuner, FineTuning, evaluate_online
from nowcastlab.skill import SequenceScores
from nowcastlab.store import Store
from nowcastlab.training.checkpoints import Checkpoints

RATE = 0.01  # large, so that a forgotten update shows


class Mixer(Forecaster):
    """Each lead is a weighted sum of the five frames; batch norm, to see whose statistics are used."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(5)
        self.mix = nn.Conv2d(5, 20, 1)
        with torch.no_grad():
            rng = np.random.default_rng(3)
            self.mix.weight.copy_(torch.from_numpy(rng.normal(0.2, 0.05, (20, 5, 1, 1))))
            self.mix.bias.zero_()
            self.norm.running_mean.fill_(0.2)
            self.norm.running_var.fill_(0.5)

    def forward(self, frames: Tensor, leads: int) -> Tensor:
        return self.mix(self.norm(frames))


class Recorder(FineTuner):
    """Keeps every forecast, and the weights it was made with."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.forecasts: list[Tensor] = []
        self.weights: list[Tensor] = []

    def predict(self) -> Tensor:
        forecast = super().predict()
        self.forecasts.append(forecast.clone())
        self.weights.append(self.model.mix.weight.detach().clone())  # type: ignore[union-attr, operator]
        return forecast


def run(store: Store, settings: FineTuning) -> Recorder:
    from nowcastlab.protocol import Environment
    from nowcastlab.protocol.online import run_online
    from nowcastlab.skill import Scorer

    scorer = Scorer(excluded=store.excluded, lead_minutes=HKO7.lead_minutes(store))
    learner = Recorder(Mixer(), store.excluded, HKO7, settings)
    run_online(Environment(store, HKO7.sequences(store, "test"), HKO7, scorer), learner, facts={})
    return learner


def by_hand(store: Store, *, lag: int) -> tuple[list[Tensor], list[Tensor], int]:
    """Algorithm 1 without any of the protocol's code: forecasts, the weights each was made with, and updates."""
    model = Mixer().eval()
    of_split = set(store.minutes("test").tolist())
    parameters = list(model.parameters())
    squares = [torch.zeros_like(p) for p in parameters]
    forecasts, weights, updates = [], [], 0
    buffer: list[tuple[np.ndarray, np.ndarray]] = []

    def update() -> None:
        nonlocal updates
        if len(buffer) < 5:
            return
        frames = np.concatenate([pixels for pixels, _ in buffer])
        valid = np.concatenate([mask for _, mask in buffer])
        truth = torch.from_numpy(frames[5:].astype(np.float32) / 255)
        # 30 mm/h is level 185, 10 is 158, 5 is 141, 2 is 118
        weight = np.select([frames >= 185, frames >= 158, frames >= 141, frames >= 118], [30.0, 10.0, 5.0, 2.0], 1.0)
        w = torch.from_numpy((weight * valid)[5:].astype(np.float32))
        error = model(torch.from_numpy(frames[None, :5].astype(np.float32) / 255), 20)[0] - truth
        loss = (w * error.square() + w * error.abs()).sum() / 20 * 1e-5
        for p, total, gradient in zip(parameters, squares, torch.autograd.grad(loss, parameters), strict=True):
            total += gradient.square()
            p.data -= RATE * gradient / (total.sqrt() + 1e-10)
        updates += 1
        buffer.pop(0)

    windows = HKO7.sequences(store, "test").windows
    for start, new_episode in windows:
        stamps = start + 6 * np.arange(5)
        frames = store.read(stamps).pixels
        present = np.array([stamp in of_split for stamp in stamps.tolist()])
        valid = ~store.excluded & ~((frames > 0) & (frames < 71)) & present[:, None, None]
        if lag:
            update()
        if new_episode:
            buffer.clear()
        buffer.append((frames, valid))
        if not lag:
            update()
        with torch.no_grad():
            forecasts.append(model(torch.from_numpy(frames[None].astype(np.float32) / 255), 20)[0].clamp(0, 1))
        weights.append(model.mix.weight.detach().clone())
    return forecasts, weights, updates


@pytest.mark.parametrize(("preset", "updates"), [("paper", 5), ("release", 4)])
def test_online_is_algorithm_1_by_hand(broken_store: Store, preset: str, updates: int) -> None:
    """8 segments give 4 samples of 25 frames, 5 more in a new episode 1; the release never comes to the very last."""
    settings = FineTuning(learning_rate=RATE, lag=PRESETS[preset].lag)
    learner = run(broken_store, settings)
    forecasts, weights, expected = by_hand(broken_store, lag=settings.lag)
    assert learner.updates == expected == updates
    for ours, theirs in zip(learner.weights, weights, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)
    for ours, theirs in zip(learner.forecasts, forecasts, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


def changes(weights: list[Tensor]) -> list[int]:
    """The forecasts, from 0, made with other weights than the one before."""
    return [i for i in range(1, len(weights)) if not torch.equal(weights[i], weights[i - 1])]


def test_an_update_comes_with_the_fifth_segment_of_an_episode_and_every_one_after(broken_store: Store) -> None:
    # Segments 0 to 7 are one episode, 8 to 12 the next: its buffer starts empty, its weights do not.
    learner = run(broken_store, FineTuning(learning_rate=RATE))
    assert changes(learner.weights) == [4, 5, 6, 7, 12]


def test_the_release_is_a_segment_behind(broken_store: Store) -> None:
    learner = run(broken_store, FineTuning(learning_rate=RATE, lag=1))
    assert changes(learner.weights) == [5, 6, 7, 8]


def test_the_optimiser_lives_on_across_episodes(broken_store: Store) -> None:
    """AdaGrad's steps shrink. A fresh one would move each weight by the full rate in the second episode."""
    learner = run(broken_store, FineTuning(learning_rate=RATE))
    first = (learner.weights[4] - learner.weights[3]).abs()
    last = (learner.weights[12] - learner.weights[11]).abs()
    seen = [lead for lead in range(20) if lead != 14]  # that target was missing from the first sample: no gradient
    assert not first[14].any()
    torch.testing.assert_close(first[seen], torch.full_like(first[seen], RATE), rtol=1e-3, atol=0)
    assert last[seen].max() < 0.9 * RATE


def test_batch_norm_keeps_the_statistics_of_its_training(broken_store: Store) -> None:
    learner = run(broken_store, FineTuning(learning_rate=RATE))
    assert not learner.model.training
    assert (learner.model.norm.running_mean == 0.2).all()  # type: ignore[union-attr]
    assert (learner.model.norm.running_var == 0.5).all()  # type: ignore[union-attr]


def test_what_has_no_weights_cannot_learn(broken_store: Store) -> None:
    with pytest.raises(ConfigError, match="LastFrame has no weights to fine-tune"):
        evaluate_online(build("last-frame"), broken_store)


def test_segments_that_do_not_follow_each_other_are_refused(broken_store: Store) -> None:
    with pytest.raises(ConfigError, match=r"stride .=3. must be frames_in .=5."):
        FineTuner(Mixer(), broken_store.excluded, Benchmark(stride=3))


# --- stopped and taken up

NETWORK = {"filters": (2, 2, 2), "stem_filters": 2, "strides": (2, 2, 1)}
KILLED = """
import sys, time, torch
from pathlib import Path
from nowcastlab.models import build
from nowcastlab.protocol import FineTuning, evaluate_online
from nowcastlab.store import open_store

class Slowly:
    def update(self, n=1):
        print("forecast", flush=True)
        time.sleep(0.1)

torch.set_num_threads(1)
model = build("convgru", "hko7", seed=1, filters=(2, 2, 2), stem_filters=2, strides=(2, 2, 1))
evaluate_online(model, open_store(sys.argv[1]), settings=FineTuning(learning_rate=0.01), folder=Path(sys.argv[2]),
                save_every=2, watch=Slowly())
print("finished", flush=True)
"""


def online(store: Store, folder: Path | None = None, **options: object) -> SequenceScores:
    torch.set_num_threads(1)
    model = build("convgru", "hko7", seed=1, **NETWORK)  # type: ignore[arg-type]
    options = {"settings": FineTuning(learning_rate=0.01), **options}
    return evaluate_online(model, store, folder=folder, save_every=2, **options)  # type: ignore[arg-type]


def test_killed_and_run_again_it_ends_with_the_same_scores_to_the_bit(
    broken_store: Store, broken_store_path: Path, tmp_path: Path
) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", KILLED, str(broken_store_path), str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    for _ in range(9):  # of 13: the checkpoint of the 8th is there, the 9th forecast is lost
        assert process.stdout.readline() == "forecast\n"
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    assert Checkpoints(tmp_path).steps("online")[0] in (8, 10)

    resumed, alone = online(broken_store, tmp_path), online(broken_store)

    for name, array in alone.arrays().items():
        assert array.tobytes() == resumed.arrays()[name].tobytes(), name


def test_a_run_taken_up_does_not_begin_again(broken_store: Store, tmp_path: Path) -> None:
    online(broken_store, tmp_path)
    seen = []

    class Count:
        def update(self, n: int = 1) -> None:
            seen.append(n)

    online(broken_store, tmp_path, watch=Count())
    assert seen == [12, 1]  # the checkpoint after 12 of 13, then the last


def test_another_run_in_the_same_folder_is_refused_by_name(broken_store: Store, tmp_path: Path) -> None:
    online(broken_store, tmp_path)
    with pytest.raises(StoreError, match=r"holds another online run \(its settings differ\)"):
        online(broken_store, tmp_path, settings=FineTuning(learning_rate=0.02))


def test_a_damaged_checkpoint_gives_way_to_the_one_before(broken_store: Store, tmp_path: Path) -> None:
    alone = online(broken_store, tmp_path)
    newest = Checkpoints(tmp_path).path("online", 12) / "state.pt"
    newest.write_bytes(newest.read_bytes()[:-100])
    with pytest.warns(UserWarning, match="damaged"):
        resumed = online(broken_store, tmp_path)
    assert alone.bmse.tobytes() == resumed.bmse.tobytes()
