"""Models of one's own: a file outside the package, known by name wherever it is needed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from nowcastlab.config import TrainConfig, mnist_config, radar_config
from nowcastlab.errors import ConfigError
from nowcastlab.models import build, names, own, register, spec_of
from nowcastlab.training import load_trained, train

SOURCE = """
import torch
from torch import nn
from nowcastlab.models import Forecaster, register

@register("drift")
class Drift(Forecaster):
    def __init__(self, *, filters: int = 4, out_frames: int = 10):
        super().__init__()
        self.told_frames = out_frames
        self.change = nn.Conv2d(1, 1, 3, padding=1)

    def forward(self, frames, leads):
        last = frames[:, -1:]
        return torch.cat([last + self.change(last)] * leads, dim=1)
"""


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins in a process that knows no models but nowcastlab's."""
    monkeypatch.setenv(own.VARIABLE, "")
    monkeypatch.setattr(own, "_own", {})


@pytest.fixture
def drift(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return named(tmp_path / "drift.py", SOURCE, monkeypatch)


def named(file: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    file.write_text(source)
    monkeypatch.setenv(own.VARIABLE, str(file))
    return file


def test_a_named_file_adds_its_model_to_every_dataset(drift: Path) -> None:
    assert "drift" in names("mnist")
    assert "drift" in names("hko7")
    assert build("drift", "hko7")(torch.zeros(1, 5, 8, 8), 3).shape == (1, 3, 8, 8)


def test_weights_follow_from_the_seed_and_leave_the_global_state_alone(drift: Path) -> None:
    before = torch.get_rng_state()
    first, again, other = (build("drift", seed=seed).change.weight for seed in (1, 1, 2))  # type: ignore[union-attr]
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(before, torch.get_rng_state())


def test_a_config_keeps_the_digest_of_the_file_and_no_path(drift: Path) -> None:
    config = mnist_config("drift")
    assert config.overrides["code"] == own._own["drift"].code
    assert str(drift) not in str(config.to_plain())
    assert TrainConfig.from_plain(config.to_plain()) == config


def test_the_identity_changes_with_the_code(drift: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = mnist_config("drift").identity
    drift.write_text(SOURCE + "# another version\n")
    own._own.clear()
    assert mnist_config("drift").identity != before


def test_a_file_changed_after_a_run_is_noticed(drift: Path) -> None:
    plain = mnist_config("drift").to_plain()
    drift.write_text(SOURCE + "# another version\n")
    own._own.clear()
    with pytest.raises(ConfigError, match=r"is not what it was.*Put the file back"):
        TrainConfig.from_plain(plain)


def test_a_config_alone_runs_no_code(drift: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who opens somebody's run must name the file themselves."""
    plain = mnist_config("drift").to_plain()
    own._own.clear()
    monkeypatch.setenv(own.VARIABLE, "")
    with pytest.raises(ConfigError, match="No model 'drift'"):
        TrainConfig.from_plain(plain)


def test_the_constructor_is_told_the_frames_it_asks_for(drift: Path) -> None:
    config = mnist_config("drift", **{"data.leads": 7})
    assert config.network_overrides["out_frames"] == 7
    assert "in_frames" not in config.network_overrides


def test_registering_tells_the_processes_that_are_started_from_here(drift: Path) -> None:
    names("mnist")
    assert os.environ[own.VARIABLE] == str(drift)


def test_it_trains_and_is_loaded_again(drift: Path, tiny_store: Path, tmp_path: Path) -> None:
    config = radar_config("drift", store=str(tiny_store), max_steps=2, threads=1, **{"data.valid_windows": 1})
    assert train(config, [].append, folder=tmp_path / "run").finished
    assert load_trained(tmp_path / "run").config.model == "drift"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1", "registers no model"),
        ("import no_such_thing", "cannot be loaded: ModuleNotFoundError: No module named 'no_such_thing'"),
        (SOURCE.replace('"drift"', '"rover"'), "'rover' is a model of nowcastlab already"),
        (SOURCE.replace('"drift"', '"traj-l21"'), "'traj-l21' is a model of nowcastlab already"),
        (SOURCE.replace('"drift"', '"My Model"'), "a name is small letters"),
        (SOURCE.replace("filters: int = 4", "filters: int"), "its option filters has no default"),
        (SOURCE.replace("filters: int", "code: int"), "may not be called code"),
        (SOURCE.replace("(Forecaster)", "(nn.Module)"), "is no Forecaster"),
    ],
)
def test_what_cannot_work_is_refused_with_its_reason(
    source: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named(tmp_path / "mine.py", source, monkeypatch)
    with pytest.raises(ConfigError, match=message):
        names("mnist")


def test_an_unknown_option_is_answered_with_the_list(drift: Path) -> None:
    with pytest.raises(ConfigError, match=r"Unknown override links\. drift takes: filters, out_frames"):
        spec_of("drift", links=3)


def test_a_model_without_weights_is_not_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named(tmp_path / "still.py", SOURCE.replace("nn.Conv2d(1, 1, 3, padding=1)", "nn.Identity()"), monkeypatch)
    with pytest.raises(ConfigError, match="drift has no weights to train"):
        mnist_config("drift")


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(own.VARIABLE, str(tmp_path / "gone.py"))
    with pytest.raises(ConfigError, match=r"gone.py, which is not there"):
        names("mnist")


def test_one_name_is_one_file(drift: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.py"
    other.write_text(SOURCE)
    monkeypatch.setenv(own.VARIABLE, f"{drift}{os.pathsep}{other}")
    with pytest.raises(ConfigError, match=r"is in .*drift.py and in .*other.py"):
        names("mnist")


def test_a_built_in_name_is_refused_before_the_class_is_seen() -> None:
    with pytest.raises(ConfigError, match="'convgru' is a model of nowcastlab already"):
        register("convgru")
