"""A YAML file as plain values that still know their lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from nowcastlab.errors import ConfigError

Key = str | int
Place = tuple[Key, ...]  # ("provider", "security_group", "IpPermissions", 0)

UNFILLED = "FILL_IN"


@dataclass(frozen=True, kw_only=True, order=True)
class Finding:
    """Something to mend. `where` is the place in the file, with dots."""

    line: int
    what: str
    where: str = ""


@dataclass(frozen=True, kw_only=True)
class Document:
    """One document of a YAML file, safe-loaded."""

    plain: Any
    text: list[str]  # of the whole file
    spans: dict[Place, tuple[int, int]] = field(default_factory=dict)  # first and last line of each key with its value
    twice: list[tuple[Place, int]] = field(
        default_factory=list
    )  # keys that repeat: YAML itself keeps the last in silence

    def get(self, *place: Key, default: Any = None) -> Any:
        """The value at a place, or the default where the way there is not what it should be."""
        value = self.plain
        for key in place:
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError):
                return default
        return default if value is None else value

    def mapping(self, *place: Key) -> dict[Any, Any]:
        """The mapping at a place; an empty one where something else stands there."""
        value = self.get(*place)
        return value if isinstance(value, dict) else {}

    def sequence(self, *place: Key) -> list[Any]:
        """The list at a place; an empty one where something else stands there."""
        value = self.get(*place)
        return value if isinstance(value, list) else []

    def line(self, *place: Key, of: str = "") -> int:
        """Where a place begins, or the line in it that holds a text. What is not there has its parent's line."""
        while place and place not in self.spans:
            place = place[:-1]
        first, last = self.spans.get(place, (1, len(self.text)))
        if of:
            for number in range(first, last + 1):
                if of in self.text[number - 1]:
                    return number
        return first

    def finding(self, what: str, *place: Key, of: str = "") -> Finding:
        """What is to be mended at a place, or in the line there that holds the text `of`."""
        return Finding(line=self.line(*place, of=of), what=what, where=dotted(place))

    def scalars(self, *place: Key) -> Iterator[tuple[Place, Any]]:
        """Every single value below a place."""
        value = self.get(*place)
        if isinstance(value, dict):
            for key in value:
                yield from self.scalars(*place, key)
        elif isinstance(value, list):
            for i in range(len(value)):
                yield from self.scalars(*place, i)
        else:
            yield place, value


def read_documents(path: Path) -> list[Document]:
    """The documents of a YAML file; a ConfigError with the line where it is none."""
    try:
        source = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read {path}: {error}") from None
    text = source.splitlines()
    try:
        nodes = [node for node in yaml.compose_all(source, Loader=yaml.SafeLoader) if node is not None]
        return [_document(node, text) for node in nodes]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{line}: not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: a value holds an alias of itself, or lies too deep. Write it out.") from None


def dotted(place: Place) -> str:
    """A place as people write it: provider.region."""
    return ".".join(map(str, place))


def _document(root: yaml.Node, text: list[str]) -> Document:
    spans: dict[Place, tuple[int, int]] = {(): (root.start_mark.line + 1, len(text))}
    twice: list[tuple[Place, int]] = []

    def walk(node: yaml.Node, place: Place) -> None:
        if isinstance(node, yaml.MappingNode):
            seen = set()
            for key, value in node.value:
                inner = (*place, key.value)
                if inner in seen:
                    twice.append((inner, key.start_mark.line + 1))
                seen.add(inner)
                spans[inner] = (key.start_mark.line + 1, _last_line(value))
                walk(value, inner)
        elif isinstance(node, yaml.SequenceNode):
            for i, value in enumerate(node.value):
                spans[*place, i] = (value.start_mark.line + 1, _last_line(value))
                walk(value, (*place, i))

    loader = yaml.SafeLoader("")
    try:
        plain = loader.construct_document(root)  # safe: plain values only
    finally:
        loader.dispose()
    walk(root, ())  # after that has refused keys that are lists or mappings
    return Document(plain=plain, text=text, spans=spans, twice=twice)


def _last_line(node: yaml.Node) -> int:
    """The mark at the end of a block stands at the beginning of what follows it."""
    end = node.end_mark
    return max(node.start_mark.line + 1, end.line + (1 if end.column else 0))
