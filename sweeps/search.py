"""Which learning rate, width and number of links suit a TrajGRU on MovingMNIST++?

Looked for with Optuna's TPE sampler, most trials stopped early by ASHA. Held fixed: data, the order in which they come,
batch size, the largest number of updates. Decided by the best validation score; the test set is not looked at, it is
for the one configuration that comes out of this. The study is on disk: the same command, run again, goes on.

    python sweeps/search.py                             demo: 12 trials, minutes on two cores
    python sweeps/search.py --trials 30                 goes on from there
    python sweeps/search.py --scale laptop --trials 40  a few hours on two cores
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from nowcastlab.cli.search import search_command
from nowcastlab.config import TrainConfig, mnist_config
from nowcastlab.sweep.search import Real, Search, Whole

# The largest number of updates and, a ninth of it, the first rung.
UPDATES = {"demo": 90, "laptop": 1080, "paper": 200_000 - 200_000 % 9}
WIDEST = {"demo": 16, "laptop": 32, "paper": 96}


def configured(scale: str, values: Mapping[str, Any]) -> TrainConfig:
    """Widths in the paper's proportions: 64, 96, 96."""
    width, updates = values["width"], UPDATES[scale]
    return mnist_config(
        "traj-l13",
        scale=scale,
        threads=1,
        learning_rate=values["learning_rate"],
        max_steps=updates,
        validate_every=updates // 9,
        **{"overrides.links": values["links"], "overrides.filters": (width, width * 3 // 2, width * 3 // 2)},
    )


def links_search(scale: str) -> Search:
    return Search(
        name="links-search",
        question="Which learning rate, width and number of links suit a TrajGRU?",
        scale=scale,
        space={
            "learning_rate": Real(low=1e-4 if scale == "paper" else 5e-4, high=2e-2),
            "width": Whole(low=4, high=WIDEST[scale], step=4),
            "links": Whole(low=5, high=17, step=4),
        },
        config=partial(configured, scale),
        first_rung=UPDATES[scale] // 9,
    )


if __name__ == "__main__":
    search_command(links_search, __doc__, trials=12)
