"""The file of scores: what is written is read back, and nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nowcastlab.errors import StoreError
from nowcastlab.skill import SequenceScores, load_scores, save_scores

PLAIN = ["tp", "fn", "fp", "tn", "mse", "mae", "bmse", "bmae", "gdl"]
PLAIN += ["start", "episode", "thresholds_mmh", "lead_minutes"]


@pytest.fixture
def scores(frames: Any, score: Any) -> SequenceScores:
    return score(*frames(np.random.default_rng(0), 3, 2), start=[0, 30, 900], episode=[0, 0, 1])


@pytest.fixture
def path(scores: SequenceScores, tmp_path: Path) -> Path:
    save_scores(tmp_path / "scores.npz", scores)
    return tmp_path / "scores.npz"


def test_the_file_holds_the_documented_arrays_and_no_others(path: Path) -> None:
    with np.load(path, allow_pickle=False) as content:
        shapes = {name: (content[name].shape, content[name].dtype) for name in content}
    counts, errors = ((3, 2, 5), np.dtype(np.int64)), ((3, 2), np.dtype(np.float64))
    assert list(shapes) == PLAIN
    assert [shapes[name] for name in PLAIN[:4]] == [counts] * 4
    assert [shapes[name] for name in PLAIN[4:9]] == [errors] * 5
    assert shapes["start"] == shapes["episode"] == ((3,), np.dtype(np.int64))
    assert (shapes["thresholds_mmh"][0], shapes["lead_minutes"][0]) == ((5,), (2,))


@pytest.mark.parametrize("options", [{}, {"fss": True, "spectrum": True, "km_per_pixel": 2.0}])
def test_what_is_read_is_what_was_written(options: dict[str, Any], frames: Any, score: Any, tmp_path: Path) -> None:
    written = score(*frames(np.random.default_rng(1), 2, 2), **options).arrays()
    save_scores(tmp_path / "a.npz", SequenceScores(**written))
    read = load_scores(tmp_path / "a.npz").arrays()
    assert read.keys() == written.keys()
    for name in read:
        assert read[name].dtype == written[name].dtype
        assert np.array_equal(read[name], written[name])


def test_the_same_scores_are_the_same_bytes(scores: SequenceScores, path: Path) -> None:
    save_scores(path.with_name("again.npz"), scores)
    assert path.read_bytes() == path.with_name("again.npz").read_bytes()


def test_a_failed_write_is_a_message_and_leaves_no_litter(scores: SequenceScores, tmp_path: Path) -> None:
    taken = tmp_path / "scores.npz"
    taken.mkdir()
    with pytest.raises(StoreError, match=r"scores\.npz: the scores cannot be written: Is a directory"):
        save_scores(taken, scores)
    assert list(tmp_path.iterdir()) == [taken]


def test_a_file_is_replaced_whole(scores: SequenceScores, path: Path) -> None:
    with open(path, "rb") as reader:  # who has the old file open keeps the old file
        before = path.read_bytes()
        save_scores(path, SequenceScores(**{**scores.arrays(), "episode": scores.episode + 1}))
        assert reader.read() == before
    assert load_scores(path).episode.tolist() == [1, 1, 2]
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_named(scores: SequenceScores, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"nowhere.*No such file or directory"):
        save_scores(tmp_path / "nowhere" / "scores.npz", scores)


def changed(path: Path, **arrays: Any) -> None:
    """The same file with some arrays replaced, or left out where None."""
    with np.load(path) as content:
        everything = {**{name: content[name] for name in content}, **arrays}
    np.savez(path, **{name: array for name, array in everything.items() if array is not None})


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ({"tp": None, "gdl": None}, "it has no `tp`, `gdl`"),
        ({"start": np.zeros(4, int)}, r"`start` has shape \(4,\): 4 along sequence, where `tp` has 3"),
        ({"tp": np.zeros((3, 2), int)}, r"`tp` has shape \(3, 2\); its axes are \(sequence, lead, threshold\)"),
        ({"tp": np.zeros((3, 2, 5))}, "`tp` holds float64, not integers"),
        ({"mse": np.full((3, 2), "x")}, "`mse` holds <U1, not numbers"),
        ({"tn": np.full((3, 2, 5), -1)}, "`tn` holds negative counts"),
        ({"mse": np.full((3, 2), np.nan)}, "`mse` holds values that are not finite"),
        ({"tn": np.arange(30).reshape(3, 2, 5)}, "valid pixels, yet differs between thresholds"),
        ({"thresholds_mmh": np.array([0.5, 2, 5, 30, 10])}, "`thresholds_mmh`.*must be positive and increase"),
        ({"lead_minutes": np.array([0.0, 6])}, "`lead_minutes`.*must be positive and increase"),
        ({"fss_error": np.zeros((3, 2, 5, 1), int)}, "The fss arrays come together: `fss_reference`"),
    ],
)
def test_a_file_that_does_not_agree_with_itself_is_refused(path: Path, arrays: dict[str, Any], text: str) -> None:
    changed(path, **arrays)
    with pytest.raises(StoreError, match=rf"scores\.npz is not a file of scores: .*{text}"):
        load_scores(path)


def test_more_rain_at_a_higher_threshold_is_refused(path: Path, scores: SequenceScores) -> None:
    changed(path, tp=scores.tp[..., ::-1], fn=scores.fn[..., ::-1], fp=scores.fp[..., ::-1], tn=scores.tn[..., ::-1])
    with pytest.raises(StoreError, match="More pixels are observed at a higher threshold"):
        load_scores(path)


@pytest.mark.parametrize("kind", [np.uint32, np.uint64, ">i4"])
def test_whole_numbers_of_any_width_are_the_same_scores(path: Path, scores: SequenceScores, kind: Any) -> None:
    """A difference of unsigned numbers wraps around: fewer pixels at a higher threshold would look like more."""
    wider = {name: getattr(scores, name).astype(kind) for name in ("tp", "fn", "fp", "tn", "episode")}
    changed(path, **{**wider, "start": scores.start.astype(np.int32), "mse": scores.mse.astype(np.float32)})
    read = load_scores(path)
    for name, array in read.arrays().items():
        assert array.dtype == getattr(scores, name).dtype
    assert np.array_equal(read.tp, scores.tp)


def test_keys_of_another_version_are_ignored(path: Path, scores: SequenceScores) -> None:
    changed(path, note=np.array("hello"))
    assert np.array_equal(load_scores(path).tp, scores.tp)


def test_files_that_are_not_ours_are_named(tmp_path: Path) -> None:
    text, array, folder = tmp_path / "notes.npz", tmp_path / "array.npz", tmp_path / "folder.npz"
    text.write_text("tp,fn\n1,2\n")
    with open(array, "wb") as file:
        np.save(file, np.zeros(3))
    folder.mkdir()
    for file in (text, array):
        with pytest.raises(StoreError, match=rf"{file.name} is not a file of scores: not an \.npz"):
            load_scores(file)
    with pytest.raises(StoreError, match=r"folder\.npz: no such file"):
        load_scores(folder)


def test_a_pickle_inside_is_not_opened(path: Path) -> None:
    changed(path, tp=np.array([object()]))
    with pytest.raises(StoreError, match="`tp` cannot be read"):
        load_scores(path)


def test_damage_anywhere_is_an_error_of_ours_or_harmless(path: Path, scores: SequenceScores) -> None:
    """A cut or a flipped byte never ends in another error, nor in other numbers."""
    whole = path.read_bytes()
    rng = np.random.default_rng(2)
    refused = 0
    for trial in range(300):
        damaged = bytearray(whole)
        if trial % 3:
            damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        else:
            del damaged[rng.integers(len(whole)) :]
        path.write_bytes(damaged)
        try:
            read = load_scores(path).arrays()
        except StoreError as error:
            refused += str(path) in str(error)
        else:
            for name, array in scores.arrays().items():
                assert np.array_equal(read[name], array)
    assert refused > 200
