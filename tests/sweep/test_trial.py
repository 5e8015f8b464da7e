"""What a trial leaves in its folder."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nowcastlab.config import mnist_config, radar_config
from nowcastlab.errors import StoreError
from nowcastlab.protocol import load_examples
from nowcastlab.store import Store, open_store
from nowcastlab.store.local_copy import open_anew, open_once
from nowcastlab.sweep import DIGITS, OFFLINE, Arm, Radar, Sweep, Trial, run_trial

STEPS = {"max_steps": 2, "validate_every": 1, "threads": 1}


def digits_trial() -> Trial:
    config = mnist_config(
        "traj-l2",
        digits="sklearn-digits",
        **STEPS,
        **{"data.size": 16, "data.count": 1, "data.valid_sequences": 2},
    )
    arm = Arm(name="Traj-L2", config=config, settings=(DIGITS,))
    return Sweep(name="one", question="?", scale="demo", arms=[arm], seeds=(1,), test_sequences=4).trials[0]


def radar_trials(store: Path) -> list[Trial]:
    arms = [
        Arm(name="Last-Frame", baseline="last-frame"),
        Arm(
            name="ConvGRU",
            config=radar_config("convgru", store=str(store), **STEPS, **{"data.valid_windows": 2}),
            settings=(OFFLINE,),
        ),
    ]
    radar = Radar(store=str(store), digest=open_store(str(store)).digest)
    return Sweep(name="two", question="?", scale="demo", arms=arms, seeds=(1,), radar=radar).trials


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("trial")
    return folder, run_trial(digits_trial(), folder)


def test_it_keeps_examples_with_the_links_of_a_trajgru(finished: tuple[Path, dict[str, Any]]) -> None:
    shown = load_examples(finished[0] / "examples.npz")
    assert len(shown) == 3
    assert shown.links is not None


def test_it_says_where_it_ran_and_with_what(finished: tuple[Path, dict[str, Any]]) -> None:
    lines = (finished[0] / "environment.txt").read_text().splitlines()
    assert f"torch=={torch.__version__}".split("+")[0] in "\n".join(lines)
    assert f"numpy=={np.__version__}" in lines
    assert finished[1]["environment"]["torch"] == str(torch.__version__)
    assert finished[1]["environment"]["device"].startswith("c")  # cpu or cuda, and the chip


def test_its_weights_are_named_with_their_hash(finished: tuple[Path, dict[str, Any]]) -> None:
    folder, result = finished
    for which in ("best", "last"):
        weights = result["weights"][which]
        assert hashlib.sha256((folder / weights["path"]).read_bytes()).hexdigest() == weights["sha256"]
    assert "best-" in result["weights"]["best"]["path"]


def test_examples_lost_before_the_end_are_made_again_the_same(finished: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = finished
    before = load_examples(folder / "examples.npz")
    for name in ("examples.npz", "result.json"):  # killed just before the end
        (folder / name).unlink()
    run_trial(digits_trial(), folder)
    after = load_examples(folder / "examples.npz")
    for name in ("inputs", "truth", "forecast", "links"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))


def test_baselines_and_networks_are_shown_on_the_same_windows(tiny_store: Path, tmp_path: Path) -> None:
    trials = radar_trials(tiny_store)
    for trial in trials:
        assert run_trial(trial, tmp_path / trial.key)["status"] == "finished"
    last, network = (load_examples(tmp_path / trial.key / "examples.npz") for trial in trials)
    assert last.labels == network.labels
    np.testing.assert_array_equal(last.inputs, network.inputs)
    assert json.loads((tmp_path / trials[0].key / "result.json").read_text())["weights"] == {}


def test_a_worker_opens_a_store_once_for_all_it_trains_and_tests(
    tiny_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = radar_trials(tiny_store)
    open_anew()
    opened: list[str] = []
    real = Store.__init__

    def counting(self: Store, url: str, **options: Any) -> None:
        opened.append(url)
        real(self, url, **options)

    monkeypatch.setattr(Store, "__init__", counting)
    for trial in trials:
        assert run_trial(trial, tmp_path / trial.key)["status"] == "finished"
    assert opened == [str(tiny_store)]


def test_a_store_with_other_data_is_refused_and_not_kept(tiny_store: Path, tmp_path: Path) -> None:
    store, digest = tmp_path / "moved.zarr", open_store(str(tiny_store)).digest
    shutil.copytree(tiny_store, store)
    with pytest.raises(StoreError, match=r"moved.zarr is not the data this run was set up with: .* the run's 0{64}"):
        open_once(str(store), "0" * 64)
    assert open_once(str(store), digest).digest == digest


def test_after_an_error_a_store_is_opened_anew(tiny_store: Path, tmp_path: Path) -> None:
    """It may be what went wrong: a copy in a temporary folder that was tidied, say."""
    (trial,) = radar_trials(tiny_store)[:1]
    assert trial.radar is not None
    before = open_once(trial.radar.store, trial.radar.digest)
    (tmp_path / "trial" / "scores-offline.npz").mkdir(parents=True)  # in the way of the scores
    assert run_trial(trial, tmp_path / "trial")["status"] == "failed"
    assert open_once(trial.radar.store, trial.radar.digest) is not before
