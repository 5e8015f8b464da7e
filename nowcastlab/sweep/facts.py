"""What a report must know of a sweep and cannot see in its scores: how trials were tested, and what the store is."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from nowcastlab.store import open_store
from nowcastlab.sweep.design import Sweep, Trial
from nowcastlab.whole_files import write_atomically

STORE = "store.json"
SYNTHETIC = "synthetic"


def protocol_of(trial: Trial) -> str:
    """In words: two trials of other words must not stand in one table."""
    if trial.radar is not None:
        limit = "all windows" if trial.radar.limit is None else f"the first {trial.radar.limit} windows"
        return f"radar, {trial.radar.split} split, {limit}"
    assert trial.config is not None
    data = trial.config.data
    test_set = "official" if trial.official_test else "generated"  # by the names of TestSet
    return (
        f"digits, {trial.test_sequences} {test_set} test sequences of {data.height}x{data.width}, "
        f"{data.in_frames} frames to {data.leads}"
    )


def store_facts(sweep: Sweep) -> dict[str, Any]:
    """Of the store the arms are tested on; nothing for moving digits.

    A store's title and attributes are no part of its digest, so only the store itself tells that its rain is made up.
    """
    if sweep.radar is None:
        return {}
    store = open_store(sweep.radar.store)
    frames: Counter[str] = Counter()
    days: Counter[str] = Counter()
    for day in store.days:
        days[day.split] += 1
        frames[day.split] += day.frames
    return {
        "title": store.title,
        "digest": store.digest,
        "synthetic": store.attributes.get("source") == SYNTHETIC or SYNTHETIC in store.title.lower(),
        "grid": list(store.grid),
        "interval_minutes": store.interval_minutes,
        "splits": {split: {"days": days[split], "frames": frames[split]} for split in sorted(days)},
    }


def write_store_facts(sweep: Sweep, folder: Path) -> list[Path]:
    """store.json in a sweep's folder, for its parent run in MLflow."""
    facts = store_facts(sweep)
    if not facts:
        return []
    write_atomically(folder / STORE, json.dumps(facts, indent=1).encode())
    return [folder / STORE]
