"""What seeds alone can prove, exactly: no model, no normal distribution, only counting."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
from numpy.typing import ArrayLike

from nowcastlab.errors import ReportError

MOST_ARRANGEMENTS = 1 << 20


def sign_flip_p(differences: ArrayLike) -> float:
    """Two-sided p of paired differences: the share of all 2^n sign choices whose sum is as far from 0.

    The smallest it can be is 2 / 2^n: 0.25 with three seeds, so three seeds alone never reach 0.05; six do.
    """
    d = np.asarray(differences, np.float64)
    if 2 ** len(d) > MOST_ARRANGEMENTS:
        raise ReportError(f"{len(d)} differences have 2^{len(d)} sign choices: too many to count. Use `compare`.")
    signs = np.array(list(product((1, -1), repeat=len(d))))
    sums = np.abs(signs @ d)
    return float((sums >= sums[0] * (1 - 1e-12)).mean())


def permutation_p(a: ArrayLike, b: ArrayLike) -> float:
    """Two-sided p of two independent sets: the share of all ways to part the runs whose means are as far apart.

    With three seeds an arm it is 2 / 20 = 0.1 at best.
    """
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    pooled, n = np.concatenate([first, second]), len(first)
    ways = math.comb(len(pooled), n)
    if ways > MOST_ARRANGEMENTS:
        raise ReportError(f"{len(pooled)} runs can be parted in {ways} ways: too many to count. Use `compare`.")
    parts = [list(part) for part in combinations(range(len(pooled)), n)]
    chosen = pooled[parts].sum(1)
    gap = np.abs(chosen / n - (pooled.sum() - chosen) / len(second))
    return float((gap >= gap[0] * (1 - 1e-12)).mean())
