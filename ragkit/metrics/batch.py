"""From rankings and labels to a RankBatch: the join by id, and the checks of what comes in.

The only loop over rankings is here; the sums over a batch are in sums.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast

import numpy as np

from ragkit.errors import DataError, shown
from ragkit.metrics.sums import Bools, Floats, Ints, RankBatch, descending, offsets_of
from ragkit.records.questions import Qrels, is_finite
from ragkit.records.runs import JudgedRun

__all__ = ["Bools", "Floats", "Ints", "RankBatch", "RankedIds", "batch_of_lists", "batch_of_run", "build_batch",
           "check_level"]

MOST_GRADE: Final = 1e300  # sums of grades beyond it may overflow
UNLABELLED: Final = "unlabelled"
_LONG: Final = 1024  # labels times ids, from which a table of a list's places costs less than a search for each label
_NO_ROW: Final[Mapping[str, float]] = {}


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
    rankings = list(rankings)
    names = [ranking.question_id for ranking in rankings]
    batch = batch_of_lists(names, [ranking.ids for ranking in rankings], qrels, level=level)
    withheld = [ranking.unlabelled_reason for ranking in rankings]
    if withheld.count(None) < len(withheld):
        batch = replace(batch, labelled=batch.labelled & np.array([reason is None for reason in withheld]),
                        reasons=tuple(reason or own for reason, own in zip(withheld, batch.reasons, strict=True)))
    return replace(batch, ranked=np.array([ranking.ranked for ranking in rankings], dtype=np.bool_),
                   cuttable=np.array([ranking.cuttable for ranking in rankings], dtype=np.bool_))


def batch_of_lists(names: Iterable[str], lists: Iterable[Sequence[str]], qrels: Qrels, *,
                   level: float = 1.0) -> RankBatch:
    """As build_batch, of the lists of these questions, best first; the names may repeat.

    >>> batch_of_lists(["q", "q"], [["b", "x", "a"], []], {"q": {"a": 3}}).ranks.tolist()
    [3]
    """
    check_level(level)
    names, lists = list(names), list(lists)
    if set(map(type, lists)) != {list}:
        lists = [list(ids) for ids in lists]
    labels = {name: qrels.get(name) or _NO_ROW for name in names}
    rows = [*labels.values()] if len(labels) == len(names) else [labels[name] for name in names]
    try:
        places, copied = _places(lists, rows)
    except TypeError:
        raise _not_a_string(names, lists, rows) from None
    counts, grades = _grades(labels)
    questions, lengths = _numbers(names, labels), np.fromiter(map(len, lists), np.int64, len(names))
    items = _items(questions, np.array(places, dtype=np.int64), counts, grades)
    if copied:
        items = _with_copies(items, [(ranking, _later_copies(lists[ranking])) for ranking in copied])
    return _plain_batch({"lengths": lengths, **items}, questions, counts, grades, level)


def _places(lists: Sequence[Sequence[str]], rows: Sequence[Mapping[str, float]]) -> tuple[list[int], list[int]]:
    """(of each label of each list's question, the place from 0 where it stands first in the list, -1 where it does not;
    the lists that hold an id twice). Raises TypeError where an id is no string."""
    places, copied = list[int](), list[int]()
    add, join = places.append, "".join
    for number, (ids, row) in enumerate(zip(lists, rows, strict=True)):
        join(ids)  # the cheapest look at the types of all ids
        known, length = set(ids), len(ids)
        if len(known) < length:
            copied.append(number)
        if len(row) * length < _LONG:
            for document in row:
                if document in known:
                    add(ids.index(document))
                elif isinstance(document, str):
                    add(-1)
                else:
                    raise TypeError
        else:
            first = dict(zip(reversed(ids), range(length - 1, -1, -1), strict=True))
            join(row)
            places.extend([first.get(document, -1) for document in row])
    return places, copied


def batch_of_run(run: JudgedRun, qrels: Qrels, *, level: float = 1.0) -> RankBatch:
    """The rankings of a run that was read against these qrels: one a question of the qrels, empty where it is missing.

    Raises DataError for a level that check_level refuses, and for a grade that is no number.
    """
    check_level(level)
    counts, grades = _grades({question: qrels.get(question) or _NO_ROW for question in run.questions})
    items = {"lengths": run.lengths, "rows": run.rows, "ranks": run.ranks, "grades": run.grades, "copies": run.copies}
    return _plain_batch(items, np.arange(len(counts), dtype=np.int64), counts, grades, level)


def _plain_batch(items: Mapping[str, Any], questions: Ints, counts: Ints, grades: Floats, level: float) -> RankBatch:
    """A batch of lists that have an order; unlabelled are those whose question has no label."""
    ideal_grades = descending(grades, np.repeat(np.arange(len(counts)), counts))
    everything, labelled = np.ones(len(questions), dtype=np.bool_), (counts > 0)[questions]
    reasons = ("",) * len(labelled) if labelled.all() else tuple(
        "" if known else UNLABELLED for known in labelled.tolist())
    return RankBatch(**items, questions=questions, ideal_offsets=offsets_of(counts), ideal_grades=ideal_grades,
                     ranked=everything, cuttable=everything, labelled=labelled, reasons=reasons, level=float(level))


def _not_a_string(names: Sequence[str], *given: Sequence[Iterable[object]]) -> DataError:
    what, name, wrong = next((what, name, one) for what, some in zip(("ranking", "qrels"), given, strict=True)
                             for name, ids in zip(names, some, strict=True) for one in ids if not isinstance(one, str))
    return DataError(f"{what} of {name!r}: an id must be a string, got {shown(wrong)} ({type(wrong).__name__}): make "
                     "ids text when they are read (dtype=str), so that 007 stays 007")


def _later_copies(ids: Sequence[str]) -> list[int]:
    seen: set[str] = set()
    places = []
    for place, identifier in enumerate(ids):
        if identifier in seen:
            places.append(place)
        seen.add(identifier)
    return places


def _items(questions: Ints, places: Ints, counts: Ints, grades: Floats) -> dict[str, Any]:
    """The judged documents that came back. counts, grades: of the labels of all questions; places: as from _places."""
    sizes = counts[questions]
    owners = np.repeat(np.arange(len(questions), dtype=np.int64), sizes)
    if len(grades) != len(places):  # questions that stand several times
        begin = offsets_of(counts)[questions] - offsets_of(sizes)[:-1]
        grades = grades[np.arange(len(places)) + np.repeat(begin, sizes)]
    found = np.flatnonzero(places >= 0)
    return _in_order(owners[found], places[found] + 1, grades[found], np.zeros(len(found), dtype=np.bool_))


def _with_copies(items: Mapping[str, Any], copies: Iterable[tuple[int, list[int]]]) -> dict[str, Any]:
    pairs = [(ranking, place + 1) for ranking, places in copies for place in places]
    rows, ranks = np.array(pairs, dtype=np.int64).T
    return _in_order(np.concatenate([items["rows"], rows]), np.concatenate([items["ranks"], ranks]),
                     np.concatenate([items["grades"], np.zeros(len(pairs))]),
                     np.concatenate([items["copies"], np.ones(len(pairs), dtype=np.bool_)]))


def _in_order(rows: Ints, ranks: Ints, grades: Floats, copies: Bools) -> dict[str, Any]:
    order = np.argsort(rows * (ranks.max(initial=0) + 1) + ranks)
    return {"rows": rows[order], "ranks": ranks[order], "grades": grades[order], "copies": copies[order]}


def _numbers(names: Sequence[str], labels: Mapping[str, object]) -> Ints:
    """Of each name, its place among the labels."""
    if len(labels) == len(names):
        return np.arange(len(names), dtype=np.int64)
    number = dict(zip(labels, range(len(labels)), strict=True))
    return np.fromiter(map(number.__getitem__, names), np.int64, len(names))


def _grades(labels: Mapping[str, Mapping[str, float]]) -> tuple[Ints, Floats]:
    """How many grades each question has, and the grades of all of them."""
    counts = np.fromiter(map(len, labels.values()), np.int64, len(labels))
    grades = _floats([grade for row in labels.values() for grade in row.values()], int(counts.sum()))
    if grades is None:
        name, wrong = next((name, row) for name, row in labels.items() if _floats(row.values(), len(row)) is None)
        raise DataError(f"qrels of {name!r}: expected finite grades (of at most {MOST_GRADE:g}), got "
                        f"{shown(list(wrong.values()))}")
    return counts, grades


def _floats(grades: Iterable[float], count: int) -> Floats | None:
    """The grades as an array; None where one of them is no finite number."""
    try:
        found = np.fromiter(grades, np.float64, count)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if (np.abs(found) <= MOST_GRADE).all() else None
