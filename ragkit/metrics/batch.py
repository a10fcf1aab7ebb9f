"""Many rankings laid flat in arrays, joined with their labels, and the sums that metrics take over them.

The join by id is the only loop over rankings; what the numbers mean is in ranking.py and dialects.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ragkit.errors import DataError, shown
from ragkit.records.questions import Qrels, is_finite

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class RankedIds(NamedTuple):
    """One list to be scored against the gold of `question_id`.

    ranked: False where the list has no trustworthy order. cuttable: False for a first-appearance union, which has no
    place k. unlabelled_reason: why no label metric may be given ("declared unanswerable"); None means look in the
    qrels.
    """

    question_id: str
    ids: Sequence[str]
    ranked: bool = True
    cuttable: bool = True
    unlabelled_reason: str | None = None


@dataclass(frozen=True, eq=False)
class RankBatch:
    """Many rankings, flat: ranking i occupies [offsets[i], offsets[i + 1]) of the arrays of items.

    grades: the grade of each returned item, 0 where it is unjudged or a repeated copy. judged: it stands in the
    qrels. copies: a later copy of an id of the same ranking; it keeps its place, gains nothing, and is no hole.
    ideal_grades: all grades of the question, descending, in [ideal_offsets[i], ideal_offsets[i + 1]).
    reasons: where not labelled, why. level: a document is relevant at grade >= level.
    """

    offsets: Ints
    grades: Floats
    judged: Bools
    copies: Bools
    ideal_offsets: Ints
    ideal_grades: Floats
    ranked: Bools
    cuttable: Bools
    labelled: Bools
    reasons: tuple[str, ...]
    level: float = 1.0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> Ints:
        """How many items each ranking returned, copies counted."""
        return np.diff(self.offsets)

    @cached_property
    def rows(self) -> Ints:
        """Of each item, the ranking that it stands in."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.lengths)

    @cached_property
    def ranks(self) -> Ints:
        """Of each item, its place from 1."""
        return np.arange(1, len(self.grades) + 1, dtype=np.int64) - self.offsets[self.rows]

    @cached_property
    def relevant(self) -> Bools:
        """Of each item, whether its grade reaches the level."""
        return self.grades >= self.level

    @cached_property
    def hits_so_far(self) -> Ints:
        """Of each item, the relevant ones down to and including it."""
        total = np.concatenate(([0], np.cumsum(self.relevant, dtype=np.int64)))
        found: Ints = total[1:] - total[self.offsets[self.rows]]
        return found

    @cached_property
    def first_hit(self) -> Floats:
        """The rank of each ranking's first relevant item; infinite where there is none."""
        first = np.full(len(self), np.inf)
        np.minimum.at(first, self.rows[self.relevant], self.ranks[self.relevant].astype(np.float64))
        return first

    @cached_property
    def ideal_rows(self) -> Ints:
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.ideal_offsets))

    @cached_property
    def ideal_ranks(self) -> Ints:
        return np.arange(1, len(self.ideal_grades) + 1, dtype=np.int64) - self.ideal_offsets[self.ideal_rows]

    @cached_property
    def n_relevant(self) -> Ints:
        """R of each ranking: the relevant documents in the qrels, returned or not."""
        return np.bincount(self.ideal_rows[self.ideal_grades >= self.level], minlength=len(self)).astype(np.int64)

    @cached_property
    def peak(self) -> Floats:
        """The highest grade known to each ranking's question, at least 0."""
        highest = np.zeros(len(self))
        np.maximum.at(highest, self.ideal_rows, self.ideal_grades)
        return highest

    @cached_property
    def returned(self) -> RankBatch:
        """The same rankings with an ideal made of what each of them returned, for the dialects that do so."""
        order = np.lexsort((-self.grades, self.rows))
        return RankBatch(self.offsets, self.grades, self.judged, self.copies, self.offsets, self.grades[order],
                         self.ranked, self.cuttable, self.labelled, self.reasons, self.level)

    def total(self, values: NDArray[np.generic], k: int | None = None) -> Floats:
        """The sum of a value of each item over each ranking, or over its top k."""
        weights = np.asarray(values, dtype=np.float64)
        if k is not None:
            weights = np.where(self.ranks <= k, weights, 0.0)
        return np.bincount(self.rows, weights=weights, minlength=len(self)).astype(np.float64)

    def depth(self, k: int | None) -> Floats:
        """How many items stand in the top k of each ranking."""
        return (self.lengths if k is None else np.minimum(self.lengths, k)).astype(np.float64)

    def hits(self, k: int | None = None) -> Floats:
        """How many relevant items stand in the top k of each ranking."""
        return self.total(self.relevant, k)

    def where_relevant(self, values: NDArray[np.generic]) -> Floats:
        """The values, NaN for questions to which nothing is relevant."""
        return np.where(self.n_relevant > 0, np.asarray(values, dtype=np.float64), np.nan)


def check_level(level: object) -> None:
    """Raise DataError unless `level` can be the least grade of a relevant document: a finite number above 0.

    >>> check_level(0.5)
    """
    if not is_finite(level) or not cast("float", level) > 0:
        raise DataError(f"level: expected a grade above 0 (a finite number), got {shown(level)}")


def build_batch(rankings: Iterable[RankedIds], qrels: Qrels, *, level: float = 1.0) -> RankBatch:
    """Join rankings with the grades of their questions.

    The order of the ids is the rank: sort a scored run before. A question without a row in the qrels is "unlabelled".
    Raises DataError for a level that check_level refuses, a grade that is no number, an id that is no string.

    >>> batch = build_batch([RankedIds("q", ["b", "x", "a", "a"])], {"q": {"a": 3, "b": 2, "c": 1}})
    >>> batch.grades.tolist(), batch.n_relevant.tolist()
    ([2.0, 0.0, 3.0, 0.0], [3])
    """
    check_level(level)
    rankings = list(rankings)
    found: list[float] = []
    ends, ideal_ends, ideal = [0], [0], list[float]()
    copies: list[int] = []
    labelled: list[bool] = []
    reasons: list[str] = []
    sorted_grades: dict[str, list[float]] = {}
    for question_id, ids, _, _, reason in rankings:
        row = qrels.get(question_id) or {}
        if len(set(ids)) < len(ids):
            copies.extend(_later_copies(ids, len(found)))
        found.extend(map(row.get, ids, repeat(np.nan)))
        ends.append(len(found))
        if not _all_strings(ids):
            raise DataError(f"ranking of {question_id!r}: an id must be a string, got {_first_other(ids)!r}")
        grades = sorted_grades.get(question_id)
        if grades is None:
            grades = sorted_grades[question_id] = _descending(row.values(), question_id)
        ideal.extend(grades)
        ideal_ends.append(len(ideal))
        labelled.append(reason is None and bool(row))
        reasons.append(reason or ("" if row else "unlabelled"))
    grade = np.array(found, dtype=np.float64)
    is_copy = np.zeros(len(found), dtype=np.bool_)
    is_copy[copies] = True
    judged = ~np.isnan(grade) & ~is_copy
    return RankBatch(
        offsets=np.array(ends, dtype=np.int64), grades=np.where(judged, grade, 0.0), judged=judged, copies=is_copy,
        ideal_offsets=np.array(ideal_ends, dtype=np.int64), ideal_grades=np.array(ideal, dtype=np.float64),
        ranked=np.array([r.ranked for r in rankings], dtype=np.bool_),
        cuttable=np.array([r.cuttable for r in rankings], dtype=np.bool_),
        labelled=np.array(labelled, dtype=np.bool_), reasons=tuple(reasons), level=float(level))


def _all_strings(ids: Sequence[str]) -> bool:
    return all(issubclass(kind, str) for kind in set(map(type, ids)))


def _first_other(ids: Sequence[object]) -> object:
    return next(i for i in ids if not isinstance(i, str))


def _later_copies(ids: Sequence[str], start: int) -> list[int]:
    seen: set[str] = set()
    places = []
    for place, identifier in enumerate(ids, start):
        if identifier in seen:
            places.append(place)
        seen.add(identifier)
    return places


def _descending(grades: Iterable[float], question_id: str) -> list[float]:
    given = list(grades)
    try:
        ordered = sorted(map(float, given), reverse=True)
    except (TypeError, ValueError, OverflowError):
        ordered = [np.nan]
    if not all(np.isfinite(ordered)):
        raise DataError(f"qrels of {question_id!r}: expected finite grades, got {shown(given)}")
    return ordered
