"""Lists -> TREC run files and qrels. Whose lists, and in which unit, the caller says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from ragkit.errors import DataError
from ragkit.records.questions import Qrels

_BLANKS = " \t\n\r\v\f"  # what separates the columns of a TREC file
ScoreSource = Literal["own", "rank"]


@dataclass(frozen=True)
class RunList:
    """One list of a run: unique ids, best first; `scores` are similarities, or None. A set is not `ranked`."""

    question_id: str
    ids: tuple[str, ...]
    scores: tuple[float, ...] | None = None
    ranked: bool = True


def run_lines(lists: Sequence[RunList], name: str) -> tuple[list[str], ScoreSource]:
    """(lines, where their scores come from). The order of a ranked list is kept by every tool that sorts by score.

    Its own scores are written where those of all lists of the file fall strictly; otherwise an item's score is how
    many of the list stand at its rank or below. All items of a set have the score 0: only what knows no order (recall,
    say) means anything there. An id with a blank is a DataError, for TREC's columns are separated by blanks.

    >>> run_lines([RunList("q", ("a", "b"), (0.5, 0.5))], "base")
    (['q Q0 a 1 2 base', 'q Q0 b 2 1 base'], 'rank')
    """
    own = all(one.ranked and one.scores is not None and _falls(one.scores) for one in lists)
    lines = []
    for one in lists:
        for place, item in enumerate(one.ids):
            score = one.scores[place] if own and one.scores is not None else len(one.ids) - place if one.ranked else 0
            lines.append(f"{checked(one.question_id, one)} Q0 {checked(item, one)} {place + 1} {score!r} "
                         f"{run_name(name)}")
    return lines, "own" if own and lists else "rank"


def qrels_lines(qrels: Qrels) -> list[str]:
    """Labels in TREC's four columns.

    >>> qrels_lines({"q": {"a": 1.0, "b": 0.5}})
    ['q 0 a 1', 'q 0 b 0.5']
    """
    lines = []
    for question_id, grades in qrels.items():
        one = RunList(question_id, tuple(grades))
        lines += [f"{checked(question_id, one)} 0 {checked(item, one)} {grade:g}" for item, grade in grades.items()]
    return lines


def checked(identifier: str, where: RunList) -> str:
    """The id, if TREC's columns can hold it."""
    if any(blank in identifier for blank in _BLANKS):
        raise DataError(f"question {where.question_id!r}: the id {identifier!r} holds a blank, and blanks separate the "
                        "columns of a TREC file; export openinference or ragas, or give the documents other ids")
    return identifier


def run_name(name: str) -> str:
    """The name of a run as one word."""
    return "_".join(name.split()) or "run"


def names(titles: Sequence[str], identifiers: Sequence[str], labelled: Mapping[str, float]) -> tuple[str, ...]:
    """Ids of a list, unique: `titles` are what its items are called in the labels. A later copy keeps its place under
    its own identifier, or with #2 and so on behind it, so that it gains nothing.

    >>> names(["d1", "d1", "x", "x"], ["d1-a", "d1-b", "x", "x"], {"d1": 1.0})
    ('d1', 'd1-b', 'x', 'x#2')
    >>> names(["u", "u", "b"], ["a", "b", "b"], {"u": 1.0, "b": 1.0})
    ('u', 'b#2', 'b')
    """
    found: dict[str, None] = {}
    for title, identifier in zip(titles, identifiers, strict=True):
        name, copy = title, 1
        if name in found and identifier not in labelled:
            name = identifier
        while name in found:
            copy += 1
            name = f"{identifier}#{copy}"
        found[name] = None
    return tuple(found)


def _falls(scores: Sequence[float]) -> bool:
    return all(math.isfinite(score) for score in scores) and all(one > other for one, other in pairwise(scores))
