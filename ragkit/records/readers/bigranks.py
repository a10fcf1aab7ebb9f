"""The rows of a big run as arrays: grouped by question, ordered by score, and the ranks of the judged ones.

Reading the file is in bigruns.py; the rules are those of judging.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragkit.records.keys import Keys, KeyTable, mixed, twins
from ragkit.records.questions import Qrels
from ragkit.records.readers.arrow import arrow_ints, arrow_strings
from ragkit.records.readers.hashing import hash_strings
from ragkit.records.readers.judging import EXAMPLES, Notes

Ints = NDArray[np.int64]
_NAMED = 1 << 20  # ids that are Python strings at a time
_FEW = 8


@dataclass
class Rows:
    """The rows of a run that belong to questions of the qrels.

    codes: the question's place in the qrels. keys, documents: a hash of question and document, and the ids, in the
    order of the file, a piece after the other; `order` leads from a row to its place in them, None while they are the
    same. places: the rank column, where it decides ties. twins: whether some key stands twice. starts: where each
    question's rows begin, and the end of the last.
    """

    codes: NDArray[np.int32]
    scores: NDArray[np.floating[Any]]
    keys: Sequence[Keys]
    documents: Sequence[Any]
    places: NDArray[np.float64] | None = None
    twins: bool = False
    order: Ints | None = None
    starts: Ints | None = None

    def take(self, rows: Any) -> None:
        """Keep only these rows, in this order."""
        self.order = np.arange(len(self.codes))[rows] if self.order is None else self.order[rows]
        self.codes, self.scores = self.codes[rows], self.scores[rows]

    def now(self, places: Ints) -> tuple[Ints, Any]:
        """The rows that places of the file have become, ascending, and which of the places they are."""
        if self.order is None:
            return places, slice(None)
        rows = np.full(sum(map(len, self.documents)), -1, dtype=np.int64)
        rows[self.order] = np.arange(len(self.order))
        which = np.argsort(rows[places])
        which = which[rows[places[which]] >= 0]  # what was dropped has become nothing
        return rows[places[which]], which

    def names(self, rows: Any) -> list[str]:
        """The document ids of rows."""
        places = rows if self.order is None else self.order[rows]
        ends = np.cumsum([len(part) for part in self.documents])
        parts = np.searchsorted(ends, places, side="right").astype(np.int32)
        by_part = np.argsort(parts, kind="stable")
        names = np.empty(len(places), dtype=object)
        begin = 0
        for part, count in enumerate(np.bincount(parts, minlength=len(ends)).tolist()):
            if count:
                which = by_part[begin:begin + count]
                inside = places[which] - (ends[part] - len(self.documents[part]))
                names[which] = self.documents[part].take(arrow_ints(inside)).to_pylist()
                begin += count
        found: list[str] = names.tolist()
        return found

    @property
    def bounds(self) -> Ints:
        assert self.starts is not None
        return self.starts


class Gold:
    """The judged pairs of the qrels as hashes, with their grades; `more` pairs are looked for, with the grade NaN."""

    def __init__(self, qrels: Qrels, more: Sequence[tuple[int, str]] = ()) -> None:
        self.documents = [document for row in qrels.values() for document in row]
        self.documents += [document for _, document in more]
        lengths = np.fromiter((len(row) for row in qrels.values()), dtype=np.int64, count=len(qrels))
        self.codes = np.concatenate([np.repeat(np.arange(len(qrels), dtype=np.int32), lengths),
                                     np.array([code for code, _ in more], dtype=np.int32)])
        grades = [grade for row in qrels.values() for grade in row.values()]
        self.grades = np.array([*grades, *[np.nan] * len(more)], dtype=np.float64)
        self._table = KeyTable(mixed(hash_strings(arrow_strings(self.documents)), self.codes))
        self.ambiguous = self._table.ambiguous

    def find(self, keys: Keys, documents: Any) -> tuple[Ints, Ints]:
        """(rows, places in this gold) of the judged documents of some rows, in their order."""
        found, gold = self._table.find(keys)
        names = documents.take(arrow_ints(found)).to_pylist()
        sure = np.fromiter((name == self.documents[one] for name, one in zip(names, gold.tolist(), strict=True)),
                           dtype=np.bool_, count=len(names))
        return found[sure], gold[sure]


def arrange(rows: Rows) -> None:
    """Bring rows of one question together and in the order of their scores; what is in order stays where it is."""
    find_starts(rows)
    codes = rows.codes
    if len(rows.bounds) - 1 > len(np.unique(codes[rows.bounds[:-1]])):
        rows.take(np.argsort(codes.astype(np.uint16) if codes.max() < 1 << 16 else codes, kind="stable"))
    find_starts(rows)
    rising = np.flatnonzero(rows.scores[1:] > rows.scores[:-1]) + 1
    questions = np.unique(np.searchsorted(rows.bounds, rising[~np.isin(rising, rows.bounds)], side="right") - 1)
    if not len(questions):
        return
    order = np.arange(len(rows.codes))
    for begin, end in zip(rows.bounds[questions].tolist(), rows.bounds[questions + 1].tolist(), strict=True):
        order[begin:end] = begin + np.argsort(-rows.scores[begin:end], kind="stable")
    rows.take(order)


def find_starts(rows: Rows) -> None:
    changes = np.flatnonzero(rows.codes[1:] != rows.codes[:-1]) + 1
    rows.starts = np.concatenate(([0], changes, [len(rows.codes)])) if len(rows.codes) else np.zeros(1, dtype=np.int64)


def later_copies(rows: Rows) -> Ints:
    """The rows whose document stands in a better row of the same question."""
    if not rows.twins:
        return np.zeros(0, dtype=np.int64)
    keys = np.concatenate(rows.keys)
    keys = keys if rows.order is None else keys[rows.order]
    suspects = twins(keys)
    seen: set[tuple[int, str]] = set()
    pairs = zip(rows.codes[suspects].tolist(), rows.names(suspects), strict=True)
    later = [pair in seen or seen.add(pair) is not None for pair in pairs]  # type: ignore[func-returns-value]
    return suspects[np.array(later, dtype=np.bool_)]


def tied_groups(rows: Rows, questions: Sequence[str], notes: Notes) -> tuple[Ints, Ints]:
    """(first row, row behind the last) of each group of equal scores of one question; their number is noted."""
    equal = np.flatnonzero(rows.scores[1:] == rows.scores[:-1])
    equal = equal[rows.codes[equal] == rows.codes[equal + 1]]
    if not len(equal):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    breaks = np.flatnonzero(np.diff(equal) != 1) + 1
    first = equal[np.concatenate(([0], breaks))]
    last = equal[np.concatenate((breaks - 1, [len(equal) - 1]))] + 2
    untold = len(equal)
    for place in np.unique(np.searchsorted(rows.bounds, first, side="right") - 1)[:EXAMPLES].tolist():
        begin, end = rows.bounds[place:place + 2].tolist()
        scores = rows.scores[begin:end].tolist()
        score, count = Counter(scores).most_common(1)[0]
        tied = len(scores) - len(set(scores))
        notes.add("ties", f"question {questions[rows.codes[begin]]}: {count} results at {score:g}", tied)
        untold -= tied
    notes.add("ties", "", untold)
    return first, last


def ranks_of(rows: Rows, found: Ints, first: Ints, last: Ints) -> Ints:
    """The rank, from 1, of some rows within their questions; `first` and `last` are the groups of equal scores."""
    ranks: Ints = found - rows.bounds[np.searchsorted(rows.bounds, found, side="right") - 1] + 1
    if not len(first):
        return ranks
    group = np.searchsorted(first, found, side="right") - 1
    tied = np.flatnonzero((group >= 0) & (found < last[group]))
    if not len(tied):
        return ranks
    groups, begins = np.unique(group[tied], return_index=True)
    ends = np.append(begins[1:], len(tied))
    names = _names_of_groups(rows, first[groups], last[groups])
    for one, begin, end in zip(groups.tolist(), begins.tolist(), ends.tolist(), strict=True):
        asked = found[tied[begin:end]] - first[one]
        if rows.places is None:
            places = _places_by_name(next(names), asked.tolist())
        else:
            members = np.arange(first[one], last[one])
            by_place = np.argsort(rows.places[members if rows.order is None else rows.order[members]], kind="stable")
            places = np.argsort(by_place)[asked].tolist()
        ranks[tied[begin:end]] += np.array(places) - asked
    return ranks


def _names_of_groups(rows: Rows, first: Ints, last: Ints) -> Iterator[list[str]]:
    """The ids of each group of rows, made Python strings many groups at a time."""
    sizes = last - first
    begin = 0
    while begin < len(first):
        end = max(begin + 1, int(np.searchsorted(np.cumsum(sizes[begin:]), _NAMED)) + begin)
        starts = np.cumsum(sizes[begin:end]) - sizes[begin:end]
        members = np.arange(int(sizes[begin:end].sum())) + np.repeat(first[begin:end] - starts, sizes[begin:end])
        names = rows.names(members)
        for start, size in zip(starts.tolist(), sizes[begin:end].tolist(), strict=True):
            yield names[start:start + size]
        begin = end


def _places_by_name(names: list[str], asked: list[int]) -> list[int]:
    """Of some ids of a group, how many of the group stand above them: ids descend."""
    if len(asked) <= _FEW:
        return [sum(name > own for name in names) for own in map(names.__getitem__, asked)]
    order = sorted(range(len(names)), key=names.__getitem__, reverse=True)
    place = dict(zip(order, range(len(order)), strict=True))
    return [place[one] for one in asked]
