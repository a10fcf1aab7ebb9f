"""The rows of a big run grouped by question and ordered by score, and the ranks of the judged ones.

Reading the file is in bigcolumns.py; the rules are those of judging.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragkit.records.keys import Keys, KeyTable, mixed, twins
from ragkit.records.questions import Qrels
from ragkit.records.readers.arrow import arrow_strings, texts_at
from ragkit.records.readers.bigrows import Rows
from ragkit.records.readers.hashing import hash_strings
from ragkit.records.readers.judging import EXAMPLES, Notes, tied_results

Ints = NDArray[np.int64]
_NAMED = 1 << 20  # ids that are Python strings at a time
_FEW = 8


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
        names = texts_at(documents, found)
        sure = np.fromiter((name == self.documents[one] for name, one in zip(names, gold.tolist(), strict=True)),
                           dtype=np.bool_, count=len(names))
        return found[sure], gold[sure]


def arrange(rows: Rows, stable: bool) -> None:
    """Bring rows of one question together and in the order of their scores; what is in order stays where it is.

    stable: rows of equal scores stay in the order of the file.
    """
    if rows.scattered:
        rows.gather()
    elif not rows.is_rising():
        return
    rising = np.flatnonzero(rows.scores[1:] > rows.scores[:-1]) + 1
    inside = rising[~np.isin(rising, rows.bounds)]
    rows.sort(np.unique(np.searchsorted(rows.bounds, inside, side="right") - 1).tolist(), stable)


def later_copies(rows: Rows) -> Ints:
    """The rows whose document stands in a better row of the same question."""
    if not rows.twins:
        return np.zeros(0, dtype=np.int64)
    suspects = twins(rows.keys)
    seen: set[tuple[int, str]] = set()
    pairs = zip(rows.codes[suspects].tolist(), rows.names(suspects), strict=True)
    later = [pair in seen or seen.add(pair) is not None for pair in pairs]  # type: ignore[func-returns-value]
    return suspects[np.array(later, dtype=np.bool_)]


def tied_groups(rows: Rows, questions: Sequence[str], notes: Notes) -> tuple[Ints, Ints]:
    """(first row, row behind the last) of each group of equal scores of one question; their number is noted."""
    equal = rows.equal()
    if not len(equal):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    breaks = np.flatnonzero(np.diff(equal) != 1) + 1
    first = equal[np.concatenate(([0], breaks))]
    last = equal[np.concatenate((breaks - 1, [len(equal) - 1]))] + 2
    untold = len(equal)
    for place in np.unique(np.searchsorted(rows.bounds, first, side="right") - 1)[:EXAMPLES].tolist():
        begin, end = rows.bounds[place:place + 2].tolist()
        scores = rows.scores_of(begin, end)
        score, count = Counter(scores).most_common(1)[0]
        tied = tied_results(scores)
        notes.add("ties", f"question {questions[rows.groups[place]]}: {count} results at {score:g}", tied)
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
        column = rows.places(int(first[one]), int(last[one]))
        if column is None:
            places = _places_by_name(next(names), asked.tolist())
        else:
            places = np.argsort(np.argsort(column, kind="stable"))[asked].tolist()
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
