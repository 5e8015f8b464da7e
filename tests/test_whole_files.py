from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from nowcastlab.whole_files import whole_file, write_atomically


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_new_content_takes_the_place_of_the_old_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["result.json"]


def test_until_the_block_ends_a_reader_finds_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "scores.npz"
    path.write_bytes(b"old")
    with whole_file(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
        assert list(tmp_path.glob("scores*")) == list(tmp_path.glob("*.npz")) == [path]
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError("half way"), KeyboardInterrupt()])
def test_a_block_that_fails_was_never_there(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "scores.npz"
    path.write_bytes(b"old")

    def cut_short() -> None:
        with whole_file(path) as file:
            file.write(b"ne")
            raise error

    with pytest.raises(type(error)):
        cut_short()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["scores.npz"]


def test_a_disk_that_is_full_leaves_the_old_content_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["result.json"]


def test_two_who_write_one_file_at_once_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "scores.npz"
    with whole_file(path) as first, whole_file(path) as second:
        first.write(b"1" * 9)
        second.write(b"2" * 5)
    assert path.read_bytes() == b"1" * 9  # the one that ended last


def test_the_content_is_on_disk_before_it_has_its_name_and_the_name_before_the_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, said = tmp_path / "result.json", []
    monkeypatch.setattr(os, "fsync", lambda handle: said.append((os.path.isdir(handle), path.exists())))
    write_atomically(path, b"new")
    assert said == [(False, False), (True, True)]  # (of the folder, the name was there)
