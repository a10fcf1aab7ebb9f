"""How far two raters agree: Cohen's kappa, plain or weighted. Pure statistics: what a rater is lives elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from ragkit.errors import DataError

Weights = Literal["linear", "quadratic"]


def cohen_kappa(a: Sequence[float], b: Sequence[float], weights: Weights | None = None) -> float | None:
    """Cohen's kappa of two lists of ratings of the same things: 1 is full agreement, 0 what chance would give.

    `weights` tells how a disagreement between two grades counts: None, all alike (also for categories that are
    numbered only); "linear", by their distance; "quadratic", by its square. Distances are of the values themselves,
    so that a grade which nobody gave still takes its room.
    None where it is undefined: nothing to compare, or both gave one and the same rating throughout.

    >>> cohen_kappa([0, 0, 1, 1], [0, 1, 1, 1])
    0.5
    >>> round(cohen_kappa([0, 1, 2, 3], [1, 1, 2, 3], weights="quadratic"), 3)
    0.875
    >>> cohen_kappa([1, 1], [1, 1]) is None
    True
    """
    if len(a) != len(b):
        raise DataError(f"kappa: expected two ratings of each thing, got {len(a)} and {len(b)}")
    if weights not in {None, "linear", "quadratic"}:
        raise DataError(f"kappa: expected weights None, 'linear' or 'quadratic', got {weights!r}")
    if not len(a):
        return None
    levels, places = np.unique(np.concatenate([np.asarray(a, np.float64), np.asarray(b, np.float64)]),
                               return_inverse=True)
    size, count = len(levels), len(a)
    table = np.bincount(places[:count] * size + places[count:], minlength=size * size).reshape(size, size)
    distance = np.abs(levels[:, None] - levels[None, :])
    cost = (distance > 0).astype(np.float64) if weights is None else distance if weights == "linear" else distance**2
    by_chance = float((cost * np.outer(table.sum(axis=1), table.sum(axis=0))).sum()) / count
    return 1 - float((cost * table).sum()) / by_chance if by_chance else None
