"""What a collection of runs may be said to prove: about itself, about the paper's claims, about the paper's numbers.

Three steps, each stricter. Any runs may be compared with each other. A claim of the paper is judged only by runs of the
paper's scale on real data. The paper's printed numbers are judged only by runs on its very test set.
"""

from __future__ import annotations

from dataclasses import dataclass

from nowcastlab.report.collect import Collection

# The official test days in windows of 25 frames at stride 5, and the paper's test set of moving digits.
OFFICIAL_SEQUENCES, OFFICIAL_EPISODES = 6053, 56
OFFICIAL_DIGITS, PAPER_DIGITS = 10_000, "mnist"


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What is said above every table of a collection, and what it may not be said to prove."""

    marks: tuple[str, ...]  # printed above every table and figure, in every format
    no_claims: str | None  # why these runs say nothing about the paper's claims; None: they do
    no_verdict: str | None  # why they say nothing about its numbers


def standing(collection: Collection, *, sequences: int | None = None, episodes: int | None = None) -> Standing:
    """`sequences` and `episodes`: how many the runs were tested on, by their score files."""
    marks, reasons = [], []
    scale = collection.scale
    if scale == "files":
        marks.append("From files of scores: neither scale nor store is recorded with them.")
        reasons.append("files of scores do not say at which scale and on which store they were made")
    elif scale != "paper":
        marks.append(
            f"{scale.upper()} SCALE: small frames and networks, few updates. These results say nothing about the "
            "paper's numbers."
        )
        reasons.append(f"{scale} scale")
    if collection.synthetic:
        marks.append("SYNTHETIC DATA: made-up rain, not the HKO-7 archive.")
        reasons.append("synthetic data")
    elif collection.synthetic is None and scale != "files" and collection.kind == "radar":
        marks.append("It is not recorded whether the store is real or synthetic: treated as synthetic.")
        reasons.append("the sweep did not record whether its store is synthetic")
    if collection.kind == "digits" and collection.digits != PAPER_DIGITS:
        marks.append(f"Digits from {collection.digits or 'an unknown set'}, not from MNIST as in the paper.")
        reasons.append(f"the digits are {collection.digits or 'not recorded'}, not MNIST")
    no_claims = "; ".join(reasons) or None
    wanted = (
        (OFFICIAL_DIGITS, OFFICIAL_DIGITS) if collection.kind == "digits" else (OFFICIAL_SEQUENCES, OFFICIAL_EPISODES)
    )
    if sequences is not None and (sequences, episodes) != wanted:
        what = (
            f"{sequences} sequences in {episodes} episodes" if collection.kind == "radar" else f"{sequences} sequences"
        )
        official = f"{wanted[0]} in {wanted[1]} episodes" if collection.kind == "radar" else str(wanted[0])
        reasons.append(f"tested on {what}, not on the paper's {official}")
    return Standing(marks=tuple(marks), no_claims=no_claims, no_verdict="; ".join(reasons) or None)
