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
    first, *added = collection.record.seeds if collection.record and collection.record.seeds else [[]]
    if added:
        later = ", ".join(str(seed) for seeds in added for seed in seeds)
        marks.append(
            f"Seeds {later} were added after the sweep had begun with {', '.join(map(str, first))}: whoever adds seeds "
            "after a look at the results finds differences more often than p-values say."
        )
    no_claims = "; ".join(reasons) or None
    if sequences is not None:
        reasons += (
            _other_digits(collection, sequences) if collection.kind == "digits" else _other_days(sequences, episodes)
        )
    return Standing(marks=tuple(marks), no_claims=no_claims, no_verdict="; ".join(reasons) or None)


def _other_days(sequences: int, episodes: int | None) -> list[str]:
    if (sequences, episodes) == (OFFICIAL_SEQUENCES, OFFICIAL_EPISODES):
        return []
    paper = f"{OFFICIAL_SEQUENCES} in {OFFICIAL_EPISODES} episodes"
    return [f"tested on {sequences} sequences in {episodes} episodes, not on the paper's {paper}"]


def _other_digits(collection: Collection, sequences: int) -> list[str]:
    """As many sequences, made the same way, are still others: how hard they are differs."""
    if collection.official_digits and sequences == OFFICIAL_DIGITS:
        return []
    made = "" if collection.official_digits else " generated here"
    return [
        f"tested on {sequences} sequences{made}, not on the paper's {OFFICIAL_DIGITS} (a sweep takes the authors' file "
        "of them as official_test=)"
    ]
