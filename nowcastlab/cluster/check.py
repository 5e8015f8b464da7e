"""Everything that can be said about a cluster file without a cloud, in the order of its lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nowcastlab.cluster.commands import swallowed
from nowcastlab.cluster.document import UNFILLED, Document, Finding, Place, dotted, read_documents
from nowcastlab.cluster.keys import misspelt_keys
from nowcastlab.cluster.kuberay import CLUSTER_SPECS, check_manifest
from nowcastlab.cluster.launcher import ask_ray
from nowcastlab.cluster.security import missing_token, open_doors, secrets
from nowcastlab.cluster.storage import lonely_storage
from nowcastlab.cluster.sums import wrong_sums
from nowcastlab.errors import ConfigError

CHECKS = (ask_ray, misspelt_keys, swallowed, open_doors, missing_token, secrets, wrong_sums, lonely_storage)


def check_cluster_file(path: Path | str) -> list[Finding]:
    """What to mend in a file of Ray's cluster launcher, or in a KubeRay manifest; nothing is an empty list."""
    path = Path(path)
    documents = read_documents(path)
    findings: list[Finding] = []
    for document in documents:
        findings += [
            Finding(line=line, what=f"{place[-1]} stands here again: only this one would count.", where=dotted(place))
            for place, line in document.twice
        ]
        findings += unfilled(document)
    if any(str(document.get("kind")) in CLUSTER_SPECS for document in documents):
        findings += check_manifest(documents)
    elif len(documents) == 1 and isinstance(documents[0].plain, dict) and documents[0].get("provider"):
        for check in CHECKS:
            findings += check(documents[0])
    else:
        raise ConfigError(
            f"{path} is no cluster file: it has neither a `provider`, as Ray's launcher wants, nor a kind of KubeRay's "
            f"({', '.join(CLUSTER_SPECS)})."
        )
    return sorted(set(findings))


def unfilled(document: Document) -> Iterator[Finding]:
    """What only the user can say, with the comment that tells how."""
    for place, value in document.scalars():
        if UNFILLED in str(value):
            line = document.line(*place, of=UNFILLED)
            name = next((key for key in reversed(place) if isinstance(key, str)), "this")
            yield Finding(line=line, what=f"Fill in {name}{_comment(document, line, place)}", where=dotted(place))


def _comment(document: Document, line: int, place: Place) -> str:
    """The comment on a line, or the one just above what the line belongs to."""
    on_it = document.text[line - 1].partition("# ")[2]
    above = document.text[max(0, document.line(*place) - 2)].strip()
    said = on_it or above.removeprefix("# ") * above.startswith("# ")
    return f": {said}" if said else "."
