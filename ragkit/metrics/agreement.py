"""How far two raters agree: kappa, AUROC, balanced accuracy, confusion, each with an interval.

Pure statistics: who the raters are and where their labels come from lives elsewhere; the intervals in resampling.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from ragkit.errors import DataError
from ragkit.metrics.resampling import CELLS_AT_ONCE, NOTHING, Array, Figure, Resampling

Weights = Literal["linear", "quadratic"]

ONE_CLASS = "the labels are all of one class"
ONE_RATING = "both gave one and the same rating throughout"


@dataclass(frozen=True)
class Confusion:
    """How often the first rater said `levels[i]` where the second said `levels[j]`: counts[i][j]."""

    levels: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]


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
    table = confusion(a, b)
    if not table.levels:
        return None
    found = float(_kappas(np.array(table.counts, np.float64)[None], _costs(table.levels, weights))[0])
    return None if np.isnan(found) else found


def auroc(positive: Sequence[bool | float], scores: Sequence[float]) -> float | None:
    """The chance that a positive thing scores above a negative one, ties as a half; None where a class is empty.

    >>> auroc([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    0.875
    """
    truth, begins = _ranked(positive, scores)
    if not len(truth):
        return None
    found = float(_areas(truth[None], (~truth)[None], begins)[0])
    return None if np.isnan(found) else found


def balanced_accuracy(positive: Sequence[bool | float], decided: Sequence[bool | float]) -> float | None:
    """The mean of the shares of positives and of negatives that were decided right; None where a class is empty.

    >>> balanced_accuracy([1, 1, 1, 0], [1, 1, 0, 0])
    0.8333333333333333
    """
    found = float(_balanced(np.bincount(_cells(positive, decided), minlength=4).reshape(1, 2, 2))[0])
    return None if np.isnan(found) else found


def confusion(a: Sequence[float], b: Sequence[float]) -> Confusion:
    """The table of two lists of ratings, over all values that either of them holds, in ascending order.

    >>> confusion([0, 1, 1], [0, 1, 5])
    Confusion(levels=(0.0, 1.0, 5.0), counts=((1, 0, 0), (0, 1, 1), (0, 0, 0)))
    """
    levels, places = _places(a, b)
    size = len(levels)
    table = np.bincount(places, minlength=size * size).reshape(size, size)
    return Confusion(tuple(levels.tolist()), tuple(map(tuple, table.tolist())))


def rating_figures(a: Sequence[float], b: Sequence[float], weights: Weights | None, rows: Resampling,
                   widest: float | None = None) -> dict[str, Figure]:
    """Figures of two lists of ratings on one scale: "exact" (the share of equal ratings), "kappa", and the weighted
    kappa as "kappa_linear" or "kappa_quadratic" where weights are named.

    `widest` is the width of the scale, which no distance exceeds: one 10 on a scale from 0 to 3 is as wrong as can
    be, and must not outweigh all else.

    >>> figures = rating_figures([0, 1, 2, 2], [0, 1, 2, 1], "quadratic", Resampling(4))
    >>> {name: round(figure.value, 3) for name, figure in figures.items()}
    {'exact': 0.75, 'kappa': 0.636, 'kappa_quadratic': 0.8}
    """
    levels, places = _places(a, b)
    shape = (len(levels), len(levels))
    found = {"exact": rows.of_tables(places, shape, NOTHING, _equal)}
    for kind in dict.fromkeys((None, weights)):
        statistic = partial(_kappas, cost=_costs(levels, kind, widest))
        found[f"kappa_{kind}" if kind else "kappa"] = rows.of_tables(places, shape, ONE_RATING, statistic)
    return found


def decision_figures(positive: Sequence[bool | float], decided: Sequence[bool | float],
                     rows: Resampling) -> dict[str, Figure]:
    """Figures of yes-or-no decisions against labels: "balanced_accuracy", its two halves "sensitivity" (of the
    positives) and "specificity" (of the negatives), "exact" and "kappa".

    >>> figures = decision_figures([1, 1, 1, 0], [1, 1, 0, 0], Resampling(4))
    >>> {name: round(figure.value, 3) for name, figure in figures.items()}
    {'balanced_accuracy': 0.833, 'sensitivity': 0.667, 'specificity': 1.0, 'exact': 0.75, 'kappa': 0.5}
    """
    places = _cells(positive, decided)
    statistics: Mapping[str, tuple[Callable[[Array], Array], str]] = {
        "balanced_accuracy": (_balanced, ONE_CLASS),
        "sensitivity": (lambda tables: _right(tables, 1), "no positive label"),
        "specificity": (lambda tables: _right(tables, 0), "no negative label"),
        "exact": (_equal, NOTHING),
        "kappa": (partial(_kappas, cost=1 - np.eye(2)), ONE_RATING),
    }
    return {name: rows.of_tables(places, (2, 2), reason, statistic) for name, (statistic, reason) in statistics.items()}


def score_figures(positive: Sequence[bool | float], scores: Sequence[float], rows: Resampling) -> dict[str, Figure]:
    """Figures of scores against yes-or-no labels: "auroc", and "base_rate", the share of positive labels.

    >>> figures = score_figures([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8], Resampling(4))
    >>> figures["auroc"].value, figures["base_rate"].value
    (0.875, 0.5)
    """
    base_rate = rows.of_tables(_cells(positive, positive), (2, 2), NOTHING,
                               lambda tables: tables[:, 1, 1] / tables.sum(axis=(1, 2)))
    return {"auroc": _area_figure(positive, scores, rows), "base_rate": base_rate}


def _area_figure(positive: Sequence[bool | float], scores: Sequence[float], rows: Resampling) -> Figure:
    truth, begins = _ranked(positive, scores)
    order = np.argsort(np.asarray(scores, np.float64), kind="stable")
    if len(begins) * rows.n_groups > CELLS_AT_ONCE // 100:

        def areas(times: Array) -> Array:
            times = times[:, order]
            return _areas(times * truth, times * ~truth, begins)

        return rows.of_rows(ONE_CLASS, areas)
    level = np.searchsorted(begins, np.arange(len(truth)), side="right") - 1  # few different scores: a table of them
    places = np.empty(len(truth), np.int64)
    places[order] = truth * len(begins) + level
    each = np.arange(len(begins))
    return rows.of_tables(places, (2, len(begins)), ONE_CLASS, lambda tables: _areas(tables[:, 1], tables[:, 0], each))


def _same_length(a: Sequence[Any], b: Sequence[Any]) -> None:
    if len(a) != len(b):
        raise DataError(f"agreement: expected two ratings of each thing, got {len(a)} and {len(b)}")


def _places(a: Sequence[float], b: Sequence[float]) -> tuple[Array, Array]:
    """The values that occur, ascending, and the cell of each pair in the table of them."""
    _same_length(a, b)
    both = np.concatenate([np.asarray(a, np.float64), np.asarray(b, np.float64)])
    levels, places = np.unique(both, return_inverse=True)
    return levels, places[:len(a)] * len(levels) + places[len(a):]


def _costs(levels: Sequence[float] | Array, weights: Weights | None, widest: float | None = None) -> Array:
    if weights not in {None, "linear", "quadratic"}:
        raise DataError(f"kappa: expected weights None, 'linear' or 'quadratic', got {weights!r}")
    values = np.asarray(levels, np.float64)
    distance = np.minimum(np.abs(values[:, None] - values[None, :]), np.inf if widest is None else widest)
    if weights is None:
        return (distance > 0).astype(np.float64)
    return distance if weights == "linear" else distance**2


def _kappas(tables: Array, cost: Array) -> Array:
    """Kappa of each table of counts; NaN where chance leaves no room for a disagreement."""
    chance = np.einsum("ri,ij,rj->r", tables.sum(axis=2), cost, tables.sum(axis=1))
    return 1 - _ratio(np.einsum("ij,rij->r", cost, tables) * tables.sum(axis=(1, 2)), chance)


def _equal(tables: Array) -> Array:
    return _ratio(np.trace(tables, axis1=1, axis2=2), tables.sum(axis=(1, 2)))


def _right(tables: Array, level: int) -> Array:
    """Of what the first rater put on this level: the share that the second put there, too."""
    return _ratio(tables[:, level, level], tables[:, level].sum(axis=1))


def _balanced(tables: Array) -> Array:
    balanced: Array = (_right(tables, 0) + _right(tables, 1)) / 2
    return balanced


def _cells(positive: Sequence[bool | float], decided: Sequence[bool | float]) -> Array:
    _same_length(positive, decided)
    cells: Array = 2 * np.asarray(positive, np.bool_).astype(np.int64) + np.asarray(decided, np.bool_)
    return cells


def _ranked(positive: Sequence[bool | float], scores: Sequence[float]) -> tuple[Array, Array]:
    """The labels in the order of their scores, and where each run of equal scores begins."""
    _same_length(positive, scores)
    values = np.asarray(scores, np.float64)
    if not np.all(np.isfinite(values)):
        raise DataError("agreement: expected finite scores")
    order = np.argsort(values, kind="stable")
    begins = np.flatnonzero(np.diff(values[order], prepend=np.nan) != 0)
    return np.asarray(positive, np.bool_)[order], begins


def _areas(positive: Array, negative: Array, begins: Array) -> Array:
    """AUROC of each line of weights, columns in the order of the scores."""
    high = np.add.reduceat(positive, begins, axis=1, dtype=np.float64)
    low = np.add.reduceat(negative, begins, axis=1, dtype=np.float64)
    below = np.cumsum(low, axis=1) - low
    return _ratio((high * (below + low / 2)).sum(axis=1), high.sum(axis=1) * low.sum(axis=1))


def _ratio(above: Array, beneath: Array) -> Array:
    result: Array = np.divide(above, beneath, out=np.full(np.shape(beneath), np.nan), where=beneath > 0)
    return result
