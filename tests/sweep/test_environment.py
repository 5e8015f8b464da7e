"""Which code a trial ran with."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from nowcastlab import __version__
from nowcastlab.sweep.environment import code_version, shown_code


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Somebody's project, under version control, with the library among its installed packages."""
    monkeypatch.delenv("GIT_DIR", raising=False)
    package = tmp_path / "env" / "nowcastlab"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (tmp_path / "theirs.py").touch()
    git(tmp_path, "init")
    git(tmp_path, "add", "theirs.py")
    commit(tmp_path)
    return tmp_path


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    return subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def commit(folder: Path) -> None:
    git(folder, "commit", "--message", "so far")


def test_in_a_message_a_commit_is_short_and_says_whether_it_was_changed() -> None:
    shown = [shown_code(version) for version in ("0.9.0", "ab" * 20, "ab" * 20 + "+changed")]
    assert shown == ["0.9.0", "abababababab", "abababababab+changed"]


def test_the_commit_of_a_project_around_the_library_is_not_the_librarys(repository: Path) -> None:
    assert code_version(repository / "env" / "nowcastlab") == __version__


def test_in_a_repository_of_its_own_it_is_the_commit_and_whether_that_was_changed(repository: Path) -> None:
    git(repository, "add", "env")
    commit(repository)
    package = repository / "env" / "nowcastlab"
    head = git(repository, "rev-parse", "HEAD")
    assert code_version(package) == head
    (package / "__init__.py").write_text("# changed\n")
    assert code_version(package) == f"{head}+changed"
