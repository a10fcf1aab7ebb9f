"""The rows of a big run, in the parts in which they were read; put together in memory only where that is needed.

Most files are grouped by question and sorted by score: then what each part says of itself is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragkit.records.keys import Keys
from ragkit.records.readers.arrow import texts_at

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Scores = NDArray[np.floating[Any]]


@dataclass
class Part:
    """Some rows of the file, those of questions of the qrels.

    codes: the question's place in the qrels. keys: a hash of question and document. documents: an arrow array of ids.
    places: the rank column, where it decides ties. The rest is worked out: groups, sizes: the code and number of rows
    of each run of one question. equal: rows whose score the next one of the same question shares. rising: a score is
    higher than the one above it of the same question.
    """

    codes: Codes
    scores: Scores
    keys: Keys
    documents: Any
    places: NDArray[np.float64] | None = None
    groups: Codes = field(init=False)
    sizes: Ints = field(init=False)
    equal: Ints = field(init=False)
    rising: bool = field(init=False)

    def __post_init__(self) -> None:
        self.groups, self.sizes = runs(self.codes)
        same = self.codes[1:] == self.codes[:-1]
        self.equal = np.flatnonzero(same & (self.scores[1:] == self.scores[:-1]))
        self.rising = bool(np.any(same & (self.scores[1:] > self.scores[:-1])))


class Rows:
    """All rows: first in the order of the file, then in the one that they are given.

    groups: the code of each run of rows of one question; bounds: where each run begins, and the end of the last.
    scattered: the rows of a question do not stand together, and groups and bounds say nothing yet. order: of each row,
    its place in the file; None while they are the same.
    """

    def __init__(self, parts: Sequence[Part], twins: bool) -> None:
        self._parts = [part for part in parts if len(part.codes)]
        self.twins = twins  # some key stands twice
        self.order: Ints | None = None
        self._codes: Codes | None = None
        self._scores: Scores | None = None
        self._ends = np.cumsum([0, *(len(part.codes) for part in self._parts)])
        self.scattered = any(2 * len(part.groups) > len(part.codes) > 1 for part in self._parts)
        self.groups: Codes = np.zeros(0, dtype=np.int32)
        self.bounds: Ints = np.zeros(1, dtype=np.int64)
        if not self.scattered:
            groups = _joined([part.groups for part in self._parts], np.int32)
            sizes = _joined([part.sizes for part in self._parts], np.int64)
            first = np.flatnonzero(np.diff(groups, prepend=-1))  # a question that parts share is one run
            self.groups = groups[first]
            self.bounds = np.concatenate(([0], np.cumsum(np.add.reduceat(sizes, first) if len(first) else sizes)))
            self.scattered = len(self.groups) > len(set(self.groups.tolist()))

    def __len__(self) -> int:
        return int(self.bounds[-1])

    @property
    def codes(self) -> Codes:
        if self._codes is None:
            self._codes = _joined([part.codes for part in self._parts], np.int32)
        return self._codes

    @property
    def scores(self) -> Scores:
        if self._scores is None:
            self._scores = _joined([part.scores for part in self._parts], np.float64)
        return self._scores

    @property
    def keys(self) -> Keys:
        keys = _joined([part.keys for part in self._parts], np.uint64)
        return keys if self.order is None else keys[self.order]

    def places(self, begin: int, end: int) -> NDArray[np.float64] | None:
        """The rank column of some rows, where it decides ties."""
        found = [part.places for part in self._parts if part.places is not None]
        if not found:
            return None
        members = slice(begin, end) if self.order is None else self.order[begin:end]
        if not hasattr(self, "_places"):
            self._places: NDArray[np.float64] = np.concatenate(found)
        return self._places[members]

    def scores_of(self, begin: int, end: int) -> list[float]:
        """The scores of some rows."""
        if self._scores is not None:
            return list(map(float, self._scores[begin:end]))
        parts = zip(self._parts, self._ends.tolist(), strict=False)
        pieces = [part.scores[max(begin - start, 0):max(end - start, 0)] for part, start in parts]
        return list(map(float, np.concatenate(pieces)))

    def is_rising(self) -> bool:
        """Whether a score is higher than the one above it, in the order of the file."""
        return any(part.rising for part in self._parts) or any(
            above.codes[-1] == below.codes[0] and below.scores[0] > above.scores[-1]
            for above, below in pairwise(self._parts))

    def equal(self) -> Ints:
        """The rows whose score the next one of the same question shares."""
        if self.order is not None:
            codes, scores = self.codes, self.scores
            return np.flatnonzero((scores[1:] == scores[:-1]) & (codes[1:] == codes[:-1]))
        starts = self._ends.tolist()
        torn = [start - 1 for (above, below), start in zip(pairwise(self._parts), starts[1:], strict=False)
                if above.codes[-1] == below.codes[0] and above.scores[-1] == below.scores[0]]
        inside = [part.equal + start for part, start in zip(self._parts, starts, strict=False)]
        return np.sort(_joined([*inside, np.array(torn, dtype=np.int64)], np.int64))

    def gather(self) -> None:
        """Bring the rows of each question together; they stay in the order of the file among themselves."""
        codes = self.codes
        self.order = np.argsort(codes.astype(np.uint16) if codes.max() < 1 << 16 else codes, kind="stable")
        sizes = np.bincount(codes)
        self.groups = np.flatnonzero(sizes).astype(np.int32)
        self._codes = np.repeat(self.groups, sizes[self.groups])
        self._scores = self.scores[self.order]
        self.bounds = np.concatenate(([0], np.cumsum(sizes[self.groups])))
        self.scattered = False

    def sort(self, places: Sequence[int], stable: bool) -> None:
        """Order the rows of some groups by score, descending."""
        order = np.arange(len(self)) if self.order is None else self.order
        scores = self.scores
        for place in places:
            part = slice(*self.bounds[place:place + 2].tolist())
            falling = np.argsort(-scores[part], kind="stable" if stable else None)
            order[part], scores[part] = order[part][falling], scores[part][falling]
        self.order, self._scores = order, scores

    def keep(self, rows: Ints) -> None:
        """Drop all rows but these."""
        codes, scores = self.codes, self.scores
        self.order = rows if self.order is None else self.order[rows]
        self._codes, self._scores = codes[rows], scores[rows]
        self.groups, sizes = runs(self._codes)
        self.bounds = np.concatenate(([0], np.cumsum(sizes)))

    def now(self, places: Ints) -> tuple[Ints, Any]:
        """The rows that places of the file have become, ascending, and which of the places they are."""
        if self.order is None:
            return places, slice(None)
        rows = np.full(int(self._ends[-1]), -1, dtype=np.int32)
        rows[self.order] = np.arange(len(self.order), dtype=np.int32)
        which = np.argsort(rows[places])
        which = which[rows[places[which]] >= 0]  # what was dropped has become nothing
        return rows[places[which]].astype(np.int64), which

    def names(self, rows: Ints) -> list[str]:
        """The document ids of rows."""
        places = rows if self.order is None else self.order[rows]
        parts = (np.searchsorted(self._ends, places, side="right") - 1).astype(np.int32)
        by_part = np.argsort(parts, kind="stable")
        names = np.empty(len(places), dtype=object)
        begin = 0
        for part, count in enumerate(np.bincount(parts, minlength=len(self._parts)).tolist()):
            if count:
                which = by_part[begin:begin + count]
                names[which] = texts_at(self._parts[part].documents, places[which] - self._ends[part])
                begin += count
        found: list[str] = names.tolist()
        return found


def runs(codes: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """(code, length) of each run of equal codes.

    >>> [found.tolist() for found in runs(np.array([4, 4, 1, 4], dtype=np.int32))]
    [[4, 1, 4], [2, 1, 1]]
    """
    begins = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    begins = np.concatenate((np.zeros(min(len(codes), 1), dtype=np.int64), begins))
    return codes[begins], np.diff(begins, append=len(codes))


def _joined(arrays: list[NDArray[Any]], kind: Any) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=kind)
