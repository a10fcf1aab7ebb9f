"""What several variants returned against the labels, as arrays: judged passages, and the holes that nobody judged.

A hole is a passage without a grade. What holes could be worth is computed in holes_bounds.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ragkit.metrics.sums import Bools, Floats, Ints

DEEPEST = 100  # places in which holes are looked for
FAR = 1 << 30  # the rank of what a list does not hold
_COPY, _JUDGED, _HOLE = 1, 2, 3


class Returned(NamedTuple):
    """The lists of one variant, a row a question: grades by place (0 for what gains nothing), what stands there, the
    rank of each hole of the pool, and how many passages came back."""

    grades: Floats
    kinds: Ints
    ranks: Ints
    lengths: Ints

    def hits(self, level: float, k: int | None) -> Bools:
        """Of each place down to k, whether a relevant passage stands there."""
        found: Bools = self.grades[:, :k] >= level
        return found

    def judged(self, k: int) -> Floats:
        """judged@k: judged passages of those returned down to k; NaN where nothing was."""
        top = self.kinds[:, :k]
        distinct = np.sum(top > _COPY, axis=1)
        return np.where(distinct > 0, np.sum(top == _JUDGED, axis=1) / np.maximum(distinct, 1), np.nan)

    def holes(self, k: int) -> int:
        """How many holes stand in the top k of all lists."""
        return int(np.sum(self.kinds[:, :k] == _HOLE))


@dataclass(frozen=True)
class Pool:
    """The lists of all variants on the same questions, down to `width`.

    holes: of each question the ids that stand in some list and have no grade; a column of `ranks` each. gold: of each
    question its grades above 0, descending, padded with 0. grade: what a hole is worth where it is taken as relevant,
    the highest grade there is.
    """

    questions: tuple[str, ...]
    holes: tuple[tuple[str, ...], ...]
    sides: Mapping[str, Returned]
    gold: Floats
    level: float
    grade: float
    width: int

    @property
    def n_relevant(self) -> Ints:
        """R of each question."""
        found: Ints = np.sum(self.gold >= self.level, axis=1)
        return found

    def within(self, k: int | None) -> Bools:
        """[question, hole]: whether it stands in the top k of some variant."""
        best = np.min([side.ranks for side in self.sides.values()], axis=0)
        found: Bools = best <= (self.width if k is None else k)
        return found


def pool_of(lists: Mapping[str, Mapping[str, Sequence[str]]], grades: Mapping[str, Mapping[str, float]],
            level: float = 1.0, depth: int | None = None) -> Pool:
    """The pool of variants: name -> question -> ids, best first, against question -> id -> grade.

    Only the first copy of an id can be anything; later copies keep their place. `depth` cuts the lists; holes are
    looked for in the first 100 places alone: a list of a thousand is nearly nothing else.

    >>> pool = pool_of({"a": {"q": ["g", "x"]}, "b": {"q": ["x", "y", "x"]}}, {"q": {"g": 1.0}})
    >>> pool.holes, pool.sides["b"].ranks.tolist(), pool.sides["b"].lengths.tolist()
    ((('x', 'y'),), [[1, 2]], [3])
    """
    questions = tuple(grades)
    known = {question: {name: place for place, name in enumerate(dict.fromkeys(
        one for found in lists.values() for one in list(found.get(question, ()))[:min(depth or DEEPEST, DEEPEST)]
        if one not in grades[question]))} for question in questions}
    gold = [sorted((grade for grade in grades[question].values() if grade > 0), reverse=True) for question in questions]
    width = max((len(row) for row in gold), default=0)
    padded = np.array([row + [0.0] * (width - len(row)) for row in gold], dtype=np.float64).reshape(len(questions),
                                                                                                    width)
    most = max((len(names) for names in known.values()), default=0)
    longest = max((len(ids) for found in lists.values() for ids in found.values()), default=1)
    width = max(1, longest if depth is None else min(longest, depth))
    sides = {name: _returned(found, grades, known, width, most) for name, found in lists.items()}
    return Pool(questions, tuple(tuple(names) for names in known.values()), sides, padded, level,
                float(padded.max(initial=0.0)), width)


def _returned(lists: Mapping[str, Sequence[str]], grades: Mapping[str, Mapping[str, float]],
              known: Mapping[str, Mapping[str, int]], width: int, most: int) -> Returned:
    found = Returned(np.zeros((len(grades), width)), np.zeros((len(grades), width), dtype=np.int64),
                     np.full((len(grades), most), FAR), np.zeros(len(grades), dtype=np.int64))
    for row, (question, own) in enumerate(grades.items()):
        ids, holes, seen = lists.get(question, ()), known[question], set[str]()
        found.lengths[row] = len(ids)
        for place, name in enumerate(ids[:width]):
            if place >= DEEPEST and name not in own:
                continue
            if name in seen:
                found.kinds[row, place] = _COPY
                continue
            seen.add(name)
            if name in own:
                found.kinds[row, place] = _JUDGED
                found.grades[row, place] = max(own[name], 0.0)
            else:
                found.kinds[row, place] = _HOLE
                found.ranks[row, holes[name]] = place + 1
    return found
