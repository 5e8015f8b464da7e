"""How hard it rains in what the runs were tested on: the paper's table 2, from the counts in the runs' scores.

Hits plus misses at a threshold are the pixels at which it truly rained that hard, whatever the forecast was: so the
scores of any run tell, over the valid pixels of the target frames. Every run of a collection tells the same.
"""

from __future__ import annotations

import numpy as np

from nowcastlab.errors import ReportError
from nowcastlab.report.findings import Findings
from nowcastlab.report.paper import RAIN_PERCENT
from nowcastlab.report.table import Column, Entry, Row, Section, Table, provenance
from nowcastlab.units import RAIN_LEVELS, THRESHOLDS_MMH, rain_classes


def rain_table(findings: Findings) -> Table:
    """Table 2: the share of pixels in each class of rain rate, these runs' beside the paper's."""
    if findings.collection.kind != "radar":
        raise ReportError("Moving digits have no rain. Give a radar sweep: --sweep hko7-benchmark.")
    arm = findings.rows[0]
    sums = next(iter(arm.runs.values()))
    if sums.thresholds_mmh.tolist() != list(THRESHOLDS_MMH):
        raise ReportError(f"Scored at {sums.thresholds_mmh.tolist()} mm/h; the table has {list(THRESHOLDS_MMH)}.")
    observed = sums.observed.sum((0, 1))
    pixels = int(sum(table.sum((0, 1))[0] for table in sums.counts.values()))
    edges = np.array([pixels, *observed, 0], np.float64)
    shares = 100 * -np.diff(edges) / max(pixels, 1)
    sequences, episodes = findings.tested_on
    run = next(iter(findings.collection.arms.values()))[0].run_id
    rows = []
    for name, share, count, paper, level in zip(
        rain_classes(), shares, -np.diff(edges), RAIN_PERCENT, RAIN_LEVELS, strict=True
    ):
        facts = {"pixels": int(count), "of": pixels, "n": f"{sequences} sequences, {episodes} episodes"}
        ours = Entry(text=f"{share:.2f}", value=float(share), facts=facts, run_ids=(run,))
        rows.append(Row(title=name, cells=(ours, Entry(text=f"{paper:.2f}", value=paper), Entry(text=level))))
    return Table(
        title="Rain rate statistics",
        name="rain",
        corner="Rain rate (mm/h)",
        columns=(
            Column(title="These runs (%)", metric="rain", decimals=2, better=""),
            Column(title="The paper (%)", metric="rain", decimals=2, better=""),
            Column(title="Rainfall level", metric="", better=""),
        ),
        sections=(Section(title="", rows=tuple(rows)),),
        marks=findings.standing.marks,
        notes=(
            *provenance(findings.collection)[:1],
            f"These runs: the {pixels:,} valid pixels of the target frames of {sequences} test sequences in {episodes} "
            "episodes; a frame counts once for each window it is a target of.",
            "The paper: its whole archive. A whole store's: python -m data_pipeline stats STORE.",
        ),
    )
