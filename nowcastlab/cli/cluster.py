"""`nowcastlab cluster`: the cluster's file, before money is spent on it."""

from __future__ import annotations

from nowcastlab.cli.verbs import VerbGroup

command = VerbGroup(
    name="cluster",
    verbs={"check": "nowcastlab.cli.cluster_check"},
    help="""Check a cluster file without a cloud. `ray up`, `ray down` and `ray exec` do the rest: see docs/cluster.md.

    \b
    Examples:
      nowcastlab cluster check cluster.yaml
    """,
)
