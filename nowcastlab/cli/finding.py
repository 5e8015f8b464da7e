"""What `nowcastlab doctor` finds: one look at one thing, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

OK, NOTE, PROBLEM = "ok", "note", "problem"


@dataclass(frozen=True, kw_only=True)
class Finding:
    what: str  # what was looked at, in a word or two
    state: str  # ok; note: works, but should be known; problem: something will not work
    found: str
    todo: str = ""  # empty where there is nothing to do

    def __post_init__(self) -> None:
        assert self.state in (OK, NOTE, PROBLEM), self.state
        assert self.state != PROBLEM or self.todo, f"{self.what}: a problem says what to do about it"
