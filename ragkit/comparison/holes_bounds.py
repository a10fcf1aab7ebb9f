"""The lowest and the highest that a rank metric can be, and a difference of two, whatever the holes turn out to be.

Holes of different questions are independent, so the bound of a mean is the mean of the questions' bounds. Those of one
question are tried in the order of what they bring: exact for each metric here but map, whose difference of two lists is
the widest of the orders tried. A hole is not relevant, or relevant with the highest grade there is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ragkit.comparison.holes_pool import Pool
from ragkit.metrics.registry import Metric
from ragkit.metrics.sums import Bools, Floats, Ints

_MOST_STEPS, _CELLS = 64, 4_000_000  # fills of map that are tried; of many long lists fewer, for the time they take


class Extremes(NamedTuple):
    """Of each question: the value as scored, the lowest and highest it could be, and [question, hole] the change where
    this hole alone is relevant."""

    value: Floats
    low: Floats
    high: Floats
    effects: Floats


class _Linear(NamedTuple):
    """A metric that is a sum over the list (of one, or one minus the other), divided by what the question holds."""

    sums: Floats  # [question]
    weights: Floats  # [question, hole]: what is added where it is relevant
    divisors: Floats  # [question, m]: where m holes are relevant

    def minus(self, other: _Linear) -> _Linear:
        return _Linear(self.sums - other.sums, self.weights - other.weights, self.divisors)

    def extremes(self, active: Bools) -> Extremes:
        ends = [_scan(sign, self, active) for sign in (1, -1)]
        value = self.sums / self.divisors[:, 0]
        alone = (self.sums[:, None] + self.weights) / self.divisors[:, 1:2] - value[:, None]
        return Extremes(value, ends[0], ends[1], np.where(active, alone, 0.0))


def bounded(metric: Metric) -> bool:
    """Whether this metric has bounds here."""
    return metric.definition.name in _LINEAR or metric.definition.name in _ONE or metric.definition.name == _MAP


def extremes(pool: Pool, metric: Metric, variant: str, baseline: str | None = None) -> Extremes:
    """The bounds of a variant's metric, or of variant minus baseline, by question. `bounded` says for which metrics.

    >>> from ragkit.comparison.holes_pool import pool_of
    >>> from ragkit.metrics.registry import parse
    >>> pool = pool_of({"a": {"q": ["g", "x"]}, "b": {"q": ["x", "y"]}}, {"q": {"g": 1.0}}, 1.0, 10)
    >>> found = extremes(pool, parse("precision@2"), "a", "b")
    >>> found.value.tolist(), found.low.tolist(), found.high.tolist()
    ([0.5], [0.0], [0.5])
    """
    name, active = metric.definition.name, pool.within(metric.k)
    if name in _LINEAR:
        own = _LINEAR[name](pool, variant, metric.k)
        return (own if baseline is None else own.minus(_LINEAR[name](pool, baseline, metric.k))).extremes(active)
    if name == _MAP:
        return _map_extremes(pool, metric.k, variant, baseline, active)
    values = _ONE[name](pool, variant, metric.k)
    if baseline is not None:
        values = values - _ONE[name](pool, baseline, metric.k)
    among = np.concatenate([np.ones((len(values), 1), dtype=np.bool_), active], axis=1)
    alone = np.where(active, values[:, 1:] - values[:, :1], 0.0)
    return Extremes(values[:, 0], np.min(np.where(among, values, np.inf), axis=1),
                    np.max(np.where(among, values, -np.inf), axis=1), alone)


def _scan(sign: int, given: _Linear, active: Bools) -> Floats:
    """The lowest value (sign 1) or the highest (-1): of any number of relevant holes those are taken that bring the
    least, or the most."""
    order = np.sort(np.where(active, sign * given.weights, np.inf), axis=1)
    added = np.cumsum(np.where(np.isinf(order), 0.0, order), axis=1)
    sums = given.sums[:, None] + sign * np.concatenate([np.zeros((len(order), 1)), added], axis=1)
    values = sums / given.divisors[:, :sums.shape[1]]
    values[np.arange(values.shape[1])[None, :] > np.sum(active, axis=1)[:, None]] = np.nan
    found: Floats = np.nanmin(values, axis=1) if sign > 0 else np.nanmax(values, axis=1)
    return found


# --- sums over the list ----------------------------------------------------------------------------------------------


def _counted(pool: Pool, side: str, k: int | None) -> tuple[Floats, Floats]:
    """(relevant in the top k, [question, hole] 1 where the hole stands there)."""
    own = pool.sides[side]
    return np.sum(own.hits(pool.level, k), axis=1).astype(np.float64), (own.ranks <= _cut(pool, k)).astype(np.float64)


def _constant(pool: Pool, values: Floats | float = 1.0) -> Floats:
    width = len(next(iter(pool.sides.values())).ranks[0]) + 2 if len(pool.questions) else 2
    found: Floats = np.ones((len(pool.questions), width)) * np.reshape(values, (-1, 1))
    return found


def _more_relevant(pool: Pool) -> Floats:
    """[question, m]: R where m holes are relevant, too."""
    return np.maximum(_constant(pool, pool.n_relevant.astype(np.float64))
                      + np.arange(_constant(pool).shape[1])[None, :], 1.0)


def _precision(pool: Pool, side: str, k: int | None) -> _Linear:
    sums, weights = _counted(pool, side, k)
    return _Linear(sums / (k or 1), weights / (k or 1), _constant(pool))


def _precision_set(pool: Pool, side: str, k: int | None) -> _Linear:
    sums, weights = _counted(pool, side, k)
    lengths = np.maximum(pool.sides[side].lengths if k is None else np.minimum(pool.sides[side].lengths, k), 1)
    return _Linear(sums / lengths, weights / lengths[:, None], _constant(pool))


def _recall(pool: Pool, side: str, k: int | None) -> _Linear:
    return _Linear(*_counted(pool, side, k), _more_relevant(pool))


def _gain(exponential: bool, normalized: bool) -> Callable[[Pool, str, int | None], _Linear]:
    def worth(grades: Floats | float) -> Floats:
        return np.asarray(np.exp2(grades) - 1 if exponential else grades, dtype=np.float64)

    def found(pool: Pool, side: str, k: int | None) -> _Linear:
        own, cut = pool.sides[side], _cut(pool, k)
        discounts = 1 / np.log2(np.arange(own.grades.shape[1]) + 2.0)
        sums = np.sum((worth(own.grades) * discounts)[:, :cut], axis=1)
        weights = np.where(own.ranks <= cut, worth(pool.grade) / np.log2(own.ranks + 1.0), 0.0)
        return _Linear(sums, weights, _ideals(pool, worth, k) if normalized else _constant(pool))
    return found


def _ideals(pool: Pool, worth: Callable[[Floats | float], Floats], k: int | None) -> Floats:
    """[question, m]: the gain of the ideal order where m holes have the highest grade and so stand before the gold."""
    width, gold = _constant(pool).shape[1], worth(pool.gold)
    places = width + gold.shape[1]
    discounts = 1 / np.log2(np.arange(places) + 2.0)
    discounts[k if k is not None else places:] = 0.0
    before = np.concatenate([[0.0], np.cumsum(discounts)]) * worth(pool.grade)
    columns = [before[m] + gold @ discounts[m:m + gold.shape[1]] for m in range(width)]
    return np.stack(columns, axis=1)


# --- the one best hole decides ---------------------------------------------------------------------------------------


def _with_first(pool: Pool, side: str, k: int | None) -> Ints:
    """[question, 1 + hole]: the rank of the first relevant one, as it is and where this hole is relevant, too."""
    own = pool.sides[side]
    hits = own.hits(pool.level, k)
    first = np.where(hits.any(axis=1), np.argmax(hits, axis=1) + 1, 1 << 30)
    return np.concatenate([first[:, None], np.minimum(own.ranks, first[:, None])], axis=1)


def _hit(pool: Pool, side: str, k: int | None) -> Floats:
    return (_with_first(pool, side, k) <= _cut(pool, k)).astype(np.float64)


def _mrr(pool: Pool, side: str, k: int | None) -> Floats:
    first = _with_first(pool, side, k)
    return np.where(first <= _cut(pool, k), 1.0 / first, 0.0)


def _allhit(pool: Pool, side: str, k: int | None) -> Floats:
    """One more relevant passage can only be missed: complete stays complete where it stands in the list."""
    own = pool.sides[side]
    complete = np.sum(own.hits(pool.level, k), axis=1) == pool.n_relevant
    inside = own.ranks <= _cut(pool, k)
    return np.concatenate([complete[:, None], complete[:, None] & inside], axis=1).astype(np.float64)


# --- average precision -----------------------------------------------------------------------------------------------


def _map_extremes(pool: Pool, k: int | None, variant: str, baseline: str | None, active: Bools) -> Extremes:
    names = [variant] if baseline is None else [variant, baseline]
    alone = [_alone(pool, name, k) for name in names]
    relevant = pool.n_relevant.astype(np.float64)
    brings = alone[0][1] if baseline is None else alone[0][1] - alone[1][1]
    sums = alone[0][0] if baseline is None else alone[0][0] - alone[1][0]
    value = sums / np.maximum(relevant, 1)
    low, high = value.copy(), value.copy()
    for sign, best, ends in ((1, np.minimum, low), (-1, np.maximum, high)):
        order = np.argsort(np.argsort(np.where(active, sign * brings, np.inf), axis=1, kind="stable"), axis=1)
        for m in _steps(int(np.max(np.sum(active, axis=1), initial=0)), active.size):
            filled = active & (order < m)
            made = _average_precisions(pool, names, k, filled) / (relevant + np.sum(filled, axis=1))
            best(ends, made, out=ends)
    effects = np.where(active, (sums[:, None] + brings) / (relevant + 1)[:, None] - value[:, None], 0.0)
    return Extremes(value, low, high, effects)


def _steps(most: int, cells: int) -> list[int]:
    """How many holes are filled in each trial, none and all among them."""
    steps = min(most, _MOST_STEPS, max(4, _CELLS // max(cells, 1)))
    return sorted({round(m) for m in np.linspace(1, most, steps)}) if most else []


def _alone(pool: Pool, side: str, k: int | None) -> tuple[Floats, Floats]:
    """(sum of precisions, [question, hole] what it grows by where this hole alone is relevant)."""
    own, cut = pool.sides[side], _cut(pool, k)
    hits = own.hits(pool.level, cut).astype(np.float64)
    places = np.arange(1, hits.shape[1] + 1)
    so_far, shares = np.cumsum(hits, axis=1), hits / places
    after = np.sum(shares, axis=1, keepdims=True) - np.cumsum(shares, axis=1)
    gains = np.concatenate([(so_far + 1) / places + after, np.zeros((len(hits), 1))], axis=1)
    inside = np.where(own.ranks <= cut, own.ranks - 1, hits.shape[1])
    return np.sum(shares * so_far, axis=1), np.take_along_axis(gains, inside, axis=1)


def _average_precisions(pool: Pool, names: list[str], k: int | None, filled: Bools) -> Floats:
    """The sum of precisions of the first side (minus that of the second) where these holes are relevant."""
    sums = list[Floats]()
    for name in names:
        own, cut = pool.sides[name], _cut(pool, k)
        hits = own.hits(pool.level, cut).astype(np.float64)
        rows, columns = np.nonzero(filled & (own.ranks <= cut))
        hits[rows, own.ranks[rows, columns] - 1] = 1.0
        sums.append(np.sum(hits * np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1), axis=1))
    return sums[0] if len(sums) == 1 else sums[0] - sums[1]


def _cut(pool: Pool, k: int | None) -> int:
    return pool.width if k is None else min(k, pool.width)


_MAP = "map"
_LINEAR: dict[str, Callable[[Pool, str, int | None], _Linear]] = {
    "precision": _precision, "precision_set": _precision_set, "precision_returned": _precision_set, "recall": _recall,
    "id_context_recall": _recall, "dcg": _gain(False, False), "ndcg": _gain(False, True), "ndcg_exp": _gain(True, True)}
_ONE: dict[str, Callable[[Pool, str, int | None], Floats]] = {"hit": _hit, "mrr": _mrr, "allhit": _allhit}
