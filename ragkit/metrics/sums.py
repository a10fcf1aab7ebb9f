"""Many rankings laid flat in arrays, and the sums that metrics take over them. What the numbers mean is in ranking.py.

Only items that can move a number are held: judged documents that came back, and repeated copies. The join of ids with
their labels is in batch.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class RankBatch:
    """Many rankings, flat. An item is a judged document that came back, or a repeated copy; the rest is `lengths`.

    lengths: how many documents each ranking returned, copies counted. rows: of each item, its ranking; items stand in
    the order of (row, rank). ranks: its place from 1. grades: 0 for copies. copies: a later copy of an id of the same
    ranking, judged or not; it keeps its place, gains nothing, and is no hole. questions: of each ranking, its
    question's place in the ideal: all grades of question q, descending, are ideal_grades[ideal_offsets[q]:
    ideal_offsets[q + 1]]. reasons: where not labelled, why. level: a document is relevant at grade >= level.
    """

    lengths: Ints
    rows: Ints
    ranks: Ints
    grades: Floats
    copies: Bools
    questions: Ints
    ideal_offsets: Ints
    ideal_grades: Floats
    ranked: Bools
    cuttable: Bools
    labelled: Bools
    reasons: tuple[str, ...]
    level: float = 1.0
    _known: dict[object, Any] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.lengths)

    def once(self, key: object, compute: Callable[[], _T]) -> _T:
        """What `compute` gives, computed at the first call with this key: metrics of one call share their sums."""
        if key not in self._known:
            self._known[key] = compute()
        return cast("_T", self._known[key])

    @cached_property
    def offsets(self) -> Ints:
        """The items of ranking i stand in [offsets[i], offsets[i + 1])."""
        return offsets_of(np.bincount(self.rows, minlength=len(self)))

    @cached_property
    def relevant(self) -> Bools:
        """Of each item, whether its grade reaches the level."""
        return self.grades >= self.level

    @cached_property
    def hits_so_far(self) -> Ints:
        """Of each item, the relevant ones down to and including it."""
        total = offsets_of(self.relevant)
        found: Ints = total[1:] - total[self.offsets[self.rows]]
        return found

    @cached_property
    def first_hit(self) -> Floats:
        """The rank of each ranking's first relevant item; infinite where there is none."""
        first = self.total(np.where(self.relevant & (self.hits_so_far == 1), self.ranks, 0),
                           label="rank of the first relevant document")
        return np.where(first > 0, first, np.inf)

    @cached_property
    def ideal_questions(self) -> Ints:
        """Of each grade of the ideal, its question's place."""
        return np.repeat(np.arange(len(self.ideal_offsets) - 1, dtype=np.int64), np.diff(self.ideal_offsets))

    @cached_property
    def ideal_ranks(self) -> Ints:
        """Of each grade of the ideal, its place from 1."""
        return np.arange(1, len(self.ideal_grades) + 1, dtype=np.int64) - self.ideal_offsets[self.ideal_questions]

    @cached_property
    def n_relevant(self) -> Ints:
        """R of each ranking: the relevant documents in the qrels, returned or not."""
        reached = self.ideal_grades >= self.level
        counts = np.bincount(self.ideal_questions, weights=reached, minlength=len(self.ideal_offsets) - 1)
        return counts.astype(np.int64)[self.questions]

    @cached_property
    def ideal_peak(self) -> Floats:
        """Of each question, the highest of its grades, at least 0."""
        highest = np.zeros(len(self.ideal_offsets) - 1)
        filled = np.diff(self.ideal_offsets) > 0
        highest[filled] = np.maximum(self.ideal_grades[self.ideal_offsets[:-1][filled]], 0.0)
        return highest

    @property
    def peak(self) -> Floats:
        """The highest grade known to each ranking's question, at least 0."""
        return self.ideal_peak[self.questions]

    @cached_property
    def returned(self) -> RankBatch:
        """The same rankings with an ideal made of what each of them returned, for the dialects that do so."""
        return replace(self, questions=np.arange(len(self), dtype=np.int64), ideal_offsets=self.offsets,
                       ideal_grades=descending(self.grades, self.rows))

    def cut(self, k: int | None, ideal: bool = False) -> int | None:
        """The cut, or None where it leaves every item in (of the ideal)."""
        ranks = self.ideal_ranks if ideal else self.ranks
        last = self.once(("last", ideal), lambda: int(ranks.max(initial=0)))
        return None if k is None or k >= last else k

    def total(self, values: NDArray[np.generic], k: int | None = None, label: str = "") -> Floats:
        """The sum of a value of each item over each ranking, or over its top k. The label is what explain calls it."""
        rows, k = self.rows, self.cut(k)
        if k is not None:
            inside = self.once(("inside", k), lambda: np.flatnonzero(self.ranks <= k))
            rows, values = self.once(("rows", k), lambda: self.rows[inside]), values[inside]
        return np.bincount(rows, weights=values, minlength=len(self)).astype(np.float64, copy=False)

    def ideal_total(self, values: NDArray[np.generic], k: int | None = None, label: str = "") -> Floats:
        """Of each ranking, the sum of a value of each grade over its question's ideal order, or over its top k."""
        questions, k = self.ideal_questions, self.cut(k, ideal=True)
        if k is not None:
            inside = self.once(("ideal inside", k), lambda: np.flatnonzero(self.ideal_ranks <= k))
            questions, values = questions[inside], values[inside]
        sums = np.bincount(questions, weights=values, minlength=len(self.ideal_offsets) - 1)
        return sums.astype(np.float64, copy=False)[self.questions]

    def depth(self, k: int | None = None) -> Floats:
        """How many documents stand in the top k of each ranking."""
        return (self.lengths if k is None else np.minimum(self.lengths, k)).astype(np.float64)

    def hits(self, k: int | None = None) -> Floats:
        """How many relevant documents stand in the top k of each ranking."""
        return self.once(("hits", self.cut(k)), lambda: self.total(self.relevant, k, "relevant documents"))

    def distinct(self, k: int | None = None) -> Floats:
        """How many documents stand in the top k of each ranking, repeated copies left out."""
        return self.depth(k) - self.total(self.copies, k, "repeated copies")

    def where_relevant(self, values: NDArray[np.generic]) -> Floats:
        """The values, NaN for questions to which nothing is relevant."""
        found = np.array(values, dtype=np.float64)
        found[self.once("nothing relevant", lambda: np.flatnonzero(self.n_relevant == 0))] = np.nan
        return found


def offsets_of(counts: NDArray[np.generic]) -> Ints:
    """Where each of several groups of these sizes begins, and the last one ends.

    >>> offsets_of(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def descending(grades: Floats, groups: Ints) -> Floats:
    """The grades, descending within each group; the groups stand one after the other."""
    in_order = (grades[1:] <= grades[:-1]) | (groups[1:] != groups[:-1])
    return grades if in_order.all() else grades[np.lexsort((-grades, groups))]
