"""`nowcastlab bench`: how fast this machine does the work, always as a ratio to something plain."""

from __future__ import annotations

from nowcastlab.cli.verbs import VerbGroup

command = VerbGroup(
    name="bench",
    verbs={
        "data": "nowcastlab.bench.data",
        "models": "nowcastlab.bench.models",
        "rover": "nowcastlab.bench.rover",
        "digits": "nowcastlab.bench.digits",
        "scores": "nowcastlab.bench.scores",
        "significance": "nowcastlab.bench.significance",
        "sweep": "nowcastlab.bench.sweep",
        "scale": "nowcastlab.bench.scale",
    },
    help="""Measure this machine. Every figure is a ratio to a plain way of doing the same work, the two run in turn in
    one process, because machines are noisy.

    \b
    Examples:
      nowcastlab bench data             reading windows against PNG and memmap
      nowcastlab bench data --json      the same for scripts
      nowcastlab bench digits           sequences of moving digits a second
    """,
)
