"""Many rankings laid flat in arrays, joined with their labels, and the sums that metrics take over them.

Only items that can move a number are held: judged documents that came back, and repeated copies. The join by id is
the only loop over rankings; what the numbers mean is in ranking.py and dialects.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ragkit.errors import DataError, shown
from ragkit.records.questions import Qrels, is_finite
from ragkit.records.runs import JudgedRun

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_T = TypeVar("_T")

UNLABELLED: Final = "unlabelled"

_LONG = 1024  # labels times ids, from which a table of a list's places costs less than a search for each label


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
    def relevant(self) -> Bools:
        """Of each item, whether its grade reaches the level."""
        return self.grades >= self.level

    @cached_property
    def hits_so_far(self) -> Ints:
        """Of each item, the relevant ones down to and including it."""
        total = np.concatenate(([0], np.cumsum(self.relevant, dtype=np.int64)))
        starts = np.searchsorted(self.rows, np.arange(len(self)))
        found: Ints = total[1:] - total[starts[self.rows]]
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
        reached = self.ideal_questions[self.ideal_grades >= self.level]
        counts = np.bincount(reached, minlength=len(self.ideal_offsets) - 1)
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
        places = np.arange(len(self) + 1, dtype=np.int64)
        offsets = np.searchsorted(self.rows, places).astype(np.int64)
        return replace(self, questions=places[:-1], ideal_offsets=offsets,
                       ideal_grades=_descending(self.grades, self.rows))

    def total(self, values: NDArray[np.generic], k: int | None = None, label: str = "") -> Floats:
        """The sum of a value of each item over each ranking, or over its top k. The label is what explain calls it."""
        rows, inside = self.rows, self._inside(self.ranks, k, False)
        if inside is not None:
            rows, values = self.once(("rows", k), lambda: self.rows[inside]), values[inside]
        return np.bincount(rows, weights=values, minlength=len(self)).astype(np.float64, copy=False)

    def ideal_total(self, values: NDArray[np.generic], k: int | None = None, label: str = "") -> Floats:
        """Of each ranking, the sum of a value of each grade over its question's ideal order, or over its top k."""
        questions, inside = self.ideal_questions, self._inside(self.ideal_ranks, k, True)
        if inside is not None:
            questions, values = questions[inside], values[inside]
        sums = np.bincount(questions, weights=values, minlength=len(self.ideal_offsets) - 1)
        return sums.astype(np.float64, copy=False)[self.questions]

    def _inside(self, ranks: Ints, k: int | None, ideal: bool) -> Ints | None:
        """Which items a cut leaves; None where it leaves all."""
        if k is None or k >= self.once(("last", ideal), lambda: int(ranks.max(initial=0))):
            return None
        return self.once(("inside", ideal, k), lambda: np.flatnonzero(ranks <= k))

    def depth(self, k: int | None = None) -> Floats:
        """How many documents stand in the top k of each ranking."""
        return (self.lengths if k is None else np.minimum(self.lengths, k)).astype(np.float64)

    def hits(self, k: int | None = None) -> Floats:
        """How many relevant documents stand in the top k of each ranking."""
        return self.once(("hits", k), lambda: self.total(self.relevant, k, "relevant documents"))

    def distinct(self, k: int | None = None) -> Floats:
        """How many documents stand in the top k of each ranking, repeated copies left out."""
        return self.depth(k) - self.total(self.copies, k, "repeated copies")

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
    >>> batch.ranks.tolist(), batch.grades.tolist(), batch.lengths.tolist(), batch.n_relevant.tolist()
    ([1, 3, 4], [2.0, 3.0, 0.0], [4], [3])
    """
    check_level(level)
    names, given, ranked, cuttable, withheld = tuple(zip(*rankings, strict=True)) or ((),) * 5
    lists = [ids if type(ids) is list else list(ids) for ids in given]
    _check_ids(names, lists)
    labels = {name: qrels.get(name) or {} for name in names}
    counts, ideal_grades = _ideal(labels)
    ends, places, grades = list[int](), list[int](), list[float]()  # a place counts from 0; a copy's grade is NaN
    for ids, row in zip(lists, map(labels.__getitem__, names), strict=True):
        distinct = set(ids)
        if len(row) * len(ids) < _LONG:
            for name in row:
                if name in distinct:
                    places.append(ids.index(name))
                    grades.append(row[name])
        else:
            first = dict(zip(reversed(ids), range(len(ids) - 1, -1, -1), strict=True))
            found = [name for name in row if name in distinct]
            places.extend(map(first.__getitem__, found))
            grades.extend(map(row.__getitem__, found))
        if len(distinct) < len(ids):
            copies = _later_copies(ids)
            places.extend(copies)
            grades.extend([np.nan] * len(copies))
        ends.append(len(places))
    number = dict(zip(labels, range(len(labels)), strict=True))
    questions = np.fromiter(map(number.__getitem__, names), np.int64, len(names))
    labelled = (counts > 0)[questions]
    return RankBatch(
        lengths=np.fromiter(map(len, lists), np.int64, len(lists)), **_items(ends, places, grades),
        questions=questions, ideal_offsets=_offsets(counts), ideal_grades=ideal_grades,
        ranked=np.array(ranked, dtype=np.bool_), cuttable=np.array(cuttable, dtype=np.bool_),
        labelled=labelled & np.array([reason is None for reason in withheld], dtype=np.bool_),
        reasons=tuple(reason or ("" if known else UNLABELLED)
                      for reason, known in zip(withheld, labelled.tolist(), strict=True)), level=float(level))


def batch_of_run(run: JudgedRun, qrels: Qrels, *, level: float = 1.0) -> RankBatch:
    """The rankings of a run that was read against these qrels: one a question of the qrels, empty where it is missing.

    Raises DataError for a level that check_level refuses, and for a grade that is no number.
    """
    check_level(level)
    counts, ideal_grades = _ideal({question: qrels.get(question) or {} for question in run.questions})
    labelled, everything = counts > 0, np.ones(len(counts), dtype=np.bool_)
    return RankBatch(
        lengths=run.lengths, rows=run.rows, ranks=run.ranks, grades=run.grades, copies=run.copies,
        questions=np.arange(len(counts), dtype=np.int64), ideal_offsets=_offsets(counts), ideal_grades=ideal_grades,
        ranked=everything, cuttable=everything, labelled=labelled,
        reasons=tuple("" if known else UNLABELLED for known in labelled.tolist()), level=float(level))


def _check_ids(names: Sequence[str], lists: Sequence[list[str]]) -> None:
    try:
        deque(map("".join, lists), maxlen=0)  # the cheapest look at the types of all ids
    except TypeError:
        name, other = next((name, i) for name, ids in zip(names, lists, strict=True) for i in ids
                           if not isinstance(cast("object", i), str))
        raise DataError(f"ranking of {name!r}: an id must be a string, got {other!r}") from None


def _later_copies(ids: Sequence[str]) -> list[int]:
    seen: set[str] = set()
    places = []
    for place, identifier in enumerate(ids):
        if identifier in seen:
            places.append(place)
        seen.add(identifier)
    return places


def _items(ends: Sequence[int], places: Sequence[int], grades: Sequence[float]) -> dict[str, Any]:
    """The arrays of items in the order of their ranks; those of ranking i stand in [ends[i - 1], ends[i])."""
    end, ranks, grade = np.array(ends, dtype=np.int64), np.array(places, dtype=np.int64) + 1, np.array(grades, float)
    rows = np.repeat(np.arange(len(end), dtype=np.int64), np.diff(end, prepend=0))
    order = np.lexsort((ranks, rows))
    copies = np.isnan(grade[order])
    return {"rows": rows, "ranks": ranks[order], "grades": np.where(copies, 0.0, grade[order]), "copies": copies}


def _offsets(counts: Ints) -> Ints:
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))


def _ideal(labels: Mapping[str, Mapping[str, float]]) -> tuple[Ints, Floats]:
    """How many grades each question has, and the grades of all of them, descending within each question."""
    counts = np.fromiter(map(len, labels.values()), np.int64, len(labels))
    grades = _floats(chain.from_iterable(row.values() for row in labels.values()))
    if grades is None:
        name, wrong = next((name, row) for name, row in labels.items() if _floats(row.values()) is None)
        raise DataError(f"qrels of {name!r}: expected finite grades, got {shown(list(wrong.values()))}")
    return counts, _descending(grades, np.repeat(np.arange(len(labels)), counts))


def _floats(grades: Iterable[float]) -> Floats | None:
    """The grades as an array; None where one of them is no finite number."""
    try:
        found = np.fromiter(grades, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if np.isfinite(found).all() else None


def _descending(grades: Floats, groups: Ints) -> Floats:
    """The grades, descending within each group; the groups stand one after the other."""
    in_order = (grades[1:] <= grades[:-1]) | (groups[1:] != groups[:-1])
    return grades if in_order.all() else grades[np.lexsort((-grades, groups))]
