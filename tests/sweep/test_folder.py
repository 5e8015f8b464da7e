"""A sweep that has begun stays what it was, but for further seeds, which are on record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults import small_arm, small_sweep

from nowcastlab.errors import ConfigError
from nowcastlab.sweep import Arm, SweepFolder


def claim(root: Path, **changes: Any) -> SweepFolder:
    folder = SweepFolder(root, small_sweep(**changes))
    with folder.claim():
        return folder


def sealed(folder: SweepFolder) -> dict[str, Any]:
    return json.loads((folder.path / "sweep.json").read_text())


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """Arms conv-k3-d1 and traj-l2, seeds 1 and 2, the first trial of which was begun."""
    folder = claim(tmp_path)
    folder.trial(folder.sweep.trials[0]).mkdir(parents=True)
    return tmp_path


def test_further_seeds_may_be_added_and_are_on_record_in_the_order_they_came(begun: Path) -> None:
    grown = claim(begun, seeds=(1, 2, 7, 4))
    assert (grown.added, grown.growth()) == (2, "7,4 after 1,2")
    again = claim(begun, seeds=(3, 1, 2, 7, 4))
    assert (again.added, again.growth()) == (1, "7,4 after 1,2; 3 after 1,2,7,4")
    assert sealed(again)["seeds"] == [[1, 2], [7, 4], [3]]
    assert list(sealed(again)["trials"]) == [trial.key for trial in again.sweep.trials]


def test_run_again_a_grown_sweep_adds_nothing(begun: Path) -> None:
    claim(begun, seeds=(1, 2, 3))
    again = claim(begun, seeds=(1, 2, 3))
    assert (again.added, again.growth()) == (0, "3 after 1,2")


def test_a_sweep_as_it_was_begun_has_not_grown(begun: Path) -> None:
    same = claim(begun)
    assert (same.added, same.growth(), sealed(same)["seeds"]) == (0, "", [[1, 2]])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"seeds": (4, 5, 6)}, "seed 1 is gone; seed 2 is gone"),
        ({"seeds": (1,)}, "seed 2 is gone"),
        ({"models": ("conv-k3-d1", "traj-l2", "traj-l5")}, "arm traj-l5 is new"),
        ({"models": ("conv-k3-d1", "traj-l2", "traj-l5"), "seeds": (1, 2, 3)}, "arm traj-l5 is new"),
        ({"models": ("conv-k3-d1", "traj-l5")}, "arm traj-l2 is gone; arm traj-l5 is new"),
        ({"comparisons": [("traj-l2", "conv-k3-d1")], "seeds": (1, 2, 3)}, "the comparisons"),
        ({"test_sequences": 9, "seeds": (1, 2, 3)}, "trial conv-k3-d1-s1: test_sequences was 8, now 9"),
    ],
)
def test_any_other_change_is_refused_with_what_changed_and_leaves_the_record_alone(
    begun: Path, changes: dict[str, Any], text: str
) -> None:
    before = (begun / "small-demo" / "sweep.json").read_bytes()
    with pytest.raises(ConfigError, match=text):
        claim(begun, **changes)
    assert (begun / "small-demo" / "sweep.json").read_bytes() == before
    claim(begun)  # as it was, it goes on


def test_a_refusal_names_the_seeds_to_go_on_with(begun: Path) -> None:
    grown = claim(begun, seeds=(1, 2, 3))
    grown.trial(grown.sweep.trials[-1]).mkdir()
    text = r"seed 3 is gone. Put it back as it was to go on \(--seeds 1,2,3, to which others may be added\), or give"
    with pytest.raises(ConfigError, match=text):
        claim(begun)


def test_seeds_that_were_added_and_of_which_no_trial_was_begun_may_be_left_out_again(begun: Path) -> None:
    """As when the command that added them was refused for want of space."""
    claim(begun, seeds=(1, 2, 3))
    claim(begun, seeds=(1, 2, 3, 8, 9))
    some = claim(begun, seeds=(1, 2, 3, 8))
    assert (some.added, some.growth()) == (1, "3 after 1,2; 8 after 1,2,3")
    first = claim(begun)
    assert (first.added, first.growth(), sealed(first)["seeds"]) == (0, "", [[1, 2]])
    assert list(sealed(first)["trials"]) == [trial.key for trial in first.sweep.trials]


def test_of_seeds_added_together_one_that_was_begun_keeps_the_other(begun: Path) -> None:
    grown = claim(begun, seeds=(1, 2, 3, 4))
    grown.trial(grown.sweep.trials[-1]).mkdir()  # of seed 4
    with pytest.raises(ConfigError, match="seed 3 is gone"):
        claim(begun, seeds=(1, 2, 4))


def test_an_arm_that_becomes_another_kind_is_refused(begun: Path, tiny_store: Path) -> None:
    """From a network, with a trial a seed, to a baseline, with one in all."""
    from nowcastlab.store import open_store
    from nowcastlab.sweep import Radar

    radar = Radar(store=str(tiny_store), digest=open_store(str(tiny_store)).digest)
    with pytest.raises(ConfigError, match=r"arm conv-k3-d1 is gone; (trial|seed) "):
        claim(begun, arms=[Arm(name="traj-l2", baseline="last-frame")], radar=radar)


def test_a_sweep_that_was_begun_before_seeds_were_on_record_may_grow_too(begun: Path) -> None:
    path = begun / "small-demo" / "sweep.json"
    old = json.loads(path.read_text())
    del old["seeds"]
    path.write_text(json.dumps(old))
    assert claim(begun, seeds=(1, 2, 3)).growth() == "3 after 1,2"


def test_before_a_trial_was_begun_anything_may_be_changed(tmp_path: Path) -> None:
    claim(tmp_path)
    changed = claim(tmp_path, seeds=(4, 5), arms=[small_arm("traj-l5")])
    assert (changed.growth(), sealed(changed)["seeds"]) == ("", [[4, 5]])


def test_its_token_is_its_folders_for_good(tmp_path: Path) -> None:
    first = claim(tmp_path / "here")
    assert claim(tmp_path / "here", seeds=(4, 5)).token == first.token  # changed before a trial was begun
    assert claim(tmp_path / "other").token != first.token
    (tmp_path / "here").rename(tmp_path / "there")
    assert claim(tmp_path / "there").token == first.token


def test_a_sweep_that_was_begun_before_there_were_tokens_stays_without(begun: Path) -> None:
    """Its runs in MLflow have none."""
    path = begun / "small-demo" / "sweep.json"
    old = json.loads(path.read_text())
    del old["token"]
    path.write_text(json.dumps(old))
    assert claim(begun).token is None
    assert "token" not in sealed(claim(begun))


def test_a_damaged_record_is_put_back_from_its_copy(begun: Path) -> None:
    """Written anew it would have another token, and no claim to its runs."""
    (begun / "small-demo" / "sweep.json").write_text("{")
    with pytest.raises(ConfigError, match=r"sweep.json is damaged .*MLflow has a copy, .*put that in its place"):
        claim(begun)


@pytest.mark.parametrize("build", [lambda path: path, lambda path: path / "below"])
def test_a_folder_that_cannot_be_is_named(build: Callable[[Path], Path], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"sweep's folder .*small-demo cannot be used: Not a directory"):
        claim(build(tmp_path / "file"))
