"""A search's folder: what was asked for, sealed on the first run, Optuna's study, and a folder a trial.

work/sweeps/links-search-demo/
  search.json        the search as it was begun
  study.journal
  trials/t000-s1/
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nowcastlab.errors import ConfigError
from nowcastlab.sweep.design import Trial
from nowcastlab.sweep.folder import claimed, config_digest, read_sealed, refuse_other_data
from nowcastlab.sweep.search.design import Search
from nowcastlab.whole_files import write_atomically

SEARCH, STUDY = "search.json", "study.journal"


class SearchFolder:
    def __init__(self, root: Path, search: Search) -> None:
        self.path = Path(root) / f"{search.name}-{search.scale}"
        self.search = search

    def trial(self, trial: Trial) -> Path:
        return self.path / "trials" / trial.key

    @property
    def journal(self) -> Path:
        return self.path / STUDY

    @contextmanager
    def claim(self) -> Iterator[None]:
        """One driver at a time; and the search must be the one that was begun here."""
        with claimed(self.path, "search", self._settle):
            yield

    def _settle(self) -> None:
        path = self.path / SEARCH
        plain = {"identity": self.search.identity, **self.search.to_plain()}
        begun = read_sealed(path, "Delete it if the search was not changed since: it is written anew.")
        if begun is not None and begun["identity"] != plain["identity"]:
            refuse_other_data("search", _digests(begun), _digests(plain), self.path)
            changed = [name for name in plain if name != "identity" and begun.get(name) != _as_read(plain[name])]
            raise ConfigError(
                f"The search was changed after it was begun in {self.path} ({', '.join(changed)}). Put it back as "
                "it was to go on, or give it another name."
            )
        write_atomically(path, json.dumps(plain, indent=1).encode())
        self._mend()

    def _mend(self) -> None:
        """What a killed driver may have left of Optuna's journal: its lock, for which others wait half a minute, and
        half a line, to which the next would be glued."""
        self.journal.with_name(STUDY + ".lock").unlink(missing_ok=True)
        if self.journal.exists():
            content = self.journal.read_bytes()
            whole = content[: content.rfind(b"\n") + 1]
            if len(whole) < len(content):
                write_atomically(self.journal, whole)


def _digests(plain: dict[str, Any]) -> dict[str, str]:
    """What each store and digit set is, by its name: of the corners, which stand for all points."""
    return dict(config_digest(config) for config in plain["configs"])


def _as_read(value: Any) -> Any:
    return json.loads(json.dumps(value))
