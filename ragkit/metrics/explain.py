"""One value of a rank metric taken apart: the list that was scored, and every term of every sum behind the value.

The terms are those of the computation itself: the metric is run on a batch that notes what it adds up, so a metric
needs no code of its own here. What is printed of it is in ragkit.report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ragkit.metrics.batch import RankedIds, build_batch
from ragkit.metrics.ranking import score_batch
from ragkit.metrics.registry import Metric
from ragkit.metrics.sums import Floats, Ints, RankBatch

EXAMPLE: Final[tuple[tuple[str, ...], Mapping[str, float]]] = (
    ("A", "x1", "B", "x2", "x3"), {"A": 1.0, "B": 1.0, "C": 1.0})
"""A list and its gold on which the dialects of a metric differ."""


@dataclass(frozen=True)
class Sum:
    """One sum of the computation.

    label: what was added. ideal: over the ideal order instead of the list. terms: (rank, term) of each item inside the
    cut (of the sum: where the first relevant document stands is a sum without one) that can have a term: judged
    documents and repeated copies, of a count of documents every place. total: the sum.
    """

    label: str
    ideal: bool
    terms: tuple[tuple[int, float], ...]
    total: float


@dataclass(frozen=True)
class Row:
    """One place of the list. grade: None where the document is unjudged. copy: a repeated id, which gains nothing."""

    rank: int
    id: str
    grade: float | None
    relevant: bool
    copy: bool


@dataclass(frozen=True)
class Explanation:
    """A value with all that it was made of.

    value: None where it is undefined, for `reason`; then there are no sums. rows: the list down to the cut. ideal: the
    judged documents in the ideal order, down to the cut: (rank, id, grade). n_relevant: R. n_returned: the length of
    the whole list.
    """

    metric: str
    value: float | None
    reason: str
    sums: tuple[Sum, ...]
    n_relevant: int
    n_returned: int
    level: float
    formula: str
    rows: tuple[Row, ...]
    ideal: tuple[tuple[int, str, float], ...]


@dataclass(frozen=True, eq=False)
class _Noting(RankBatch):
    """A batch of one ranking that notes every sum taken over it."""

    noted: list[Sum] = field(default_factory=list)

    def total(self, values: NDArray[np.generic], k: int | None = None, label: str = "") -> Floats:
        found = super().total(values, k, label)
        self._note(label, False, (self.ranks, values), (k, found))
        return found

    def ideal_total(self, values: NDArray[np.generic], k: int | None = None, label: str = "") -> Floats:
        found = super().ideal_total(values, k, label)
        self._note(label, True, (self.ideal_ranks, values), (k, found))
        return found

    def depth(self, k: int | None = None) -> Floats:
        found = super().depth(k)
        places = np.arange(1, int(found[0]) + 1)
        self._note("documents returned", False, (places, np.ones(len(places))), (k, found))
        return found

    def _note(self, label: str, ideal: bool, items: tuple[Ints, NDArray[np.generic]],
              sums: tuple[int | None, Floats]) -> None:
        (ranks, values), (k, found) = items, sums
        terms = zip(ranks.tolist(), np.asarray(values, dtype=np.float64).tolist(), strict=True)
        noted = Sum(label, ideal, tuple((rank, term) for rank, term in terms if k is None or rank <= k),
                    float(found[0]))
        if noted not in self.noted:
            self.noted.append(noted)


def explain(metric: Metric, ids: Sequence[str], gold: Mapping[str, float], *, level: float = 1.0,
            ranked: bool = True) -> Explanation:
    """The value of a rank metric for one list, with the terms of each sum that it was computed from.

    ids: best first. gold: document id -> grade. Raises DataError as build_batch does, and for a metric of another kind.

    >>> from ragkit.metrics.registry import parse
    >>> found = explain(parse("ndcg@5"), *EXAMPLE)
    >>> round(found.value, 6), [(one.ideal, round(one.total, 6)) for one in found.sums]
    (0.703918, [(True, 2.13093), (False, 1.5)])
    >>> found.sums[1].terms
    ((1, 1.0), (3, 0.5))
    """
    plain = build_batch([RankedIds("", ids, ranked)], {"": gold}, level=level)
    batch = _Noting(**{part.name: getattr(plain, part.name) for part in fields(plain) if part.init})
    ((score,),) = score_batch(batch, [metric])
    sums = tuple(batch.noted) if score.value is not None else ()
    ideal = sorted(gold.items(), key=lambda item: -item[1])
    return Explanation(
        metric=metric.name, value=score.value, reason=score.reason or "", sums=sums,
        n_relevant=int(plain.n_relevant[0]), n_returned=int(plain.lengths[0]), level=plain.level,
        formula=metric.definition.formula, rows=_rows(ids, gold, plain.level)[:metric.k],
        ideal=tuple((rank, name, float(grade)) for rank, (name, grade) in enumerate(ideal, 1))[:metric.k])


def _rows(ids: Sequence[str], gold: Mapping[str, float], level: float) -> tuple[Row, ...]:
    seen: set[str] = set()
    rows = []
    for rank, name in enumerate(ids, 1):
        grade = None if name not in gold else float(gold[name])
        copy = name in seen
        rows.append(Row(rank, name, grade, not copy and grade is not None and grade >= level, copy))
        seen.add(name)
    return tuple(rows)
