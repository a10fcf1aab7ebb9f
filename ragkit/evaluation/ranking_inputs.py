"""The forms in which people hold rankings and labels in memory, turned into lists of ids and a nested mapping.

Scoring is in rankings.py; files are read in ragkit.records.readers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AnySet
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragkit.errors import DataError, shown
from ragkit.records.readers.judging import in_order, tied_results
from ragkit.records.runs import RunRules, Ties

QUESTION = ("question_id", "query_id", "qid", "query-id", "topic_id", "topic", "q_id", "question", "query")
DOCUMENT = ("doc_id", "document_id", "docno", "docid", "corpus-id", "corpus_id", "passage_id", "chunk_id", "pid",
            "document", "doc", "passage", "id")
SCORE = ("score", "sim", "similarity", "relevance_score")
RANK = ("rank", "position")
GRADE = ("relevance", "grade", "label", "rel", "qrel", "score", "judgment", "judgement")

_Scored = tuple[str, list[str], list[Any]]
_PAIRS = (list, tuple)
_NUMBERS = (int, float, np.floating, np.integer)


@dataclass
class Lists:
    """Rankings as questions and their lists of ids, best first.

    unordered: places of those without an order. ties: how many entries share their score with one above them, and
    tied: of which questions.
    """

    questions: list[str]
    ids: list[Sequence[str]]
    unordered: list[int] = field(default_factory=list)
    ties: int = 0
    tied: list[str] = field(default_factory=list)


def read_rankings(rankings: Any, ties: Ties = "id", float32: bool = False) -> Lists:
    """Rankings in any of the forms of `score_rankings`, in the order given."""
    if ties not in ("id", "rank"):
        raise DataError(f"ties: expected 'id' or 'rank', got {shown(ties)}")
    if hasattr(rankings, "columns"):
        return _sorted(*_of_frame(rankings), ties, float32)
    if isinstance(rankings, Mapping):
        questions, given = list(rankings), list(rankings.values())
    elif isinstance(rankings, str | bytes) or not isinstance(rankings, Iterable):
        raise DataError("rankings: expected a mapping of question to list, (question, list) pairs or a DataFrame, got "
                        f"{shown(rankings)}")
    else:
        pairs = list(_pairs(rankings))
        questions, given = [question for question, _ in pairs], [one for _, one in pairs]
    _require_text(questions, "a question's id")
    if set(map(type, given)) == {list} and {type(one[0]) for one in given if one}.isdisjoint(_PAIRS):
        return Lists(questions, given)  # most calls; an id of another type is told by the kernel
    return _of_any(questions, given, ties, float32)


def _of_any(questions: list[str], given: list[Any], ties: Ties, float32: bool) -> Lists:
    """Rankings of several forms, each in its place."""
    found = Lists(questions, [])
    scored: list[tuple[int, _Scored]] = []
    for place, (question, one) in enumerate(zip(questions, given, strict=True)):
        ids, scores = _form(question, one)
        found.ids.append(ids)
        if scores is not None:
            scored.append((place, (question, ids, scores)))
        elif isinstance(one, AnySet) and not isinstance(one, type({}.keys())):
            found.unordered.append(place)
    if not scored:
        return found
    lists = _sorted([form for _, form in scored], True, ties, float32)
    for (place, _), best_first in zip(scored, lists.ids, strict=True):
        found.ids[place] = best_first
    return replace(found, ties=lists.ties, tied=lists.tied)


def read_labels(qrels: Any) -> Mapping[str, Mapping[str, float]]:
    """Labels as question -> document -> grade, from such a mapping, one of sets or lists of ids, a frame or a path."""
    if isinstance(qrels, str | Path):
        from ragkit.records.readers.trec import read_qrels

        return read_qrels(qrels)
    if hasattr(qrels, "columns"):
        return _labels_of_frame(qrels)
    if not isinstance(qrels, Mapping):
        raise DataError(f"qrels: expected a mapping of question to grades, a DataFrame or a path, got {shown(qrels)}")
    labels: Mapping[str, Mapping[str, float]] = qrels
    if not all(issubclass(kind, Mapping) for kind in set(map(type, qrels.values()))):
        labels = {question: _grades(question, row) for question, row in qrels.items()}
    _require_text(labels, "a question's id in the qrels")
    return labels


def _pairs(rankings: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for place, pair in enumerate(rankings):
        if isinstance(pair, str | bytes) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise DataError(f"rankings[{place}]: expected a pair of question and list, got {shown(pair)}")
        yield pair[0], pair[1]


def _form(question: str, given: Any) -> tuple[list[Any], list[Any] | None]:
    """The ids and, where there are any, the scores of a ranking that is not plainly a list of strings."""
    if isinstance(given, Mapping):
        return list(given), list(given.values())
    if isinstance(given, AnySet) and not isinstance(given, type({}.keys())):
        return sorted(given), None
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise DataError(f"ranking of {question!r}: expected a list of ids, a dict of scores or (id, score) pairs, got "
                        f"{shown(given)}")
    entries = list(given)
    if not entries or not isinstance(entries[0], list | tuple):
        return entries, None
    wrong = next((entry for entry in entries if not isinstance(entry, list | tuple) or len(entry) != 2), None)
    if wrong is not None:
        raise DataError(f"ranking of {question!r}: expected (id, score) pairs, got {shown(wrong)}")
    return [entry[0] for entry in entries], [entry[1] for entry in entries]


def _sorted(lists: list[_Scored], scores_given: bool, ties: Ties, float32: bool) -> Lists:
    """The lists in the order that a run file's would have."""
    found = Lists([question for question, _, _ in lists], [])
    if not scores_given:
        return replace(found, ids=[ids for _, ids, _ in lists])
    _require_text(chain.from_iterable(ids for _, ids, _ in lists), "a document's id")
    scores, rules = iter(_numbers(lists).tolist()), RunRules(ties=ties, float32=float32)
    for question, ids, _ in lists:
        results = in_order([(name, next(scores), place) for place, name in enumerate(ids)], rules)
        found.ids.append([name for name, _, _ in results])
        tied = tied_results([score for _, score, _ in results])
        if tied:
            found.ties += tied
            found.tied.append(question)
    return found


def _of_frame(frame: Any) -> tuple[list[_Scored], bool]:
    """The rows of a frame by question, in the order of their rank column or, without one, of the rows."""
    question, document = _column(frame, QUESTION, "rankings"), _column(frame, DOCUMENT, "rankings")
    score, rank = _find(frame, SCORE), _find(frame, RANK)
    columns = [_values(frame, question, "text"), _values(frame, document, "text")]
    columns.append(_values(frame, score, "numbers") if score else [0.0] * len(columns[0]))
    rows = range(len(columns[0]))
    if rank:
        ranks = _values(frame, rank, "numbers")
        rows = sorted(rows, key=ranks.__getitem__)  # type: ignore[assignment]
    lists: dict[str, _Scored] = {name: (name, [], []) for name in columns[0]}
    for row in rows:
        _, ids, scores = lists[columns[0][row]]
        ids.append(columns[1][row])
        scores.append(columns[2][row])
    return list(lists.values()), score is not None


def _labels_of_frame(frame: Any) -> dict[str, dict[str, float]]:
    question, document = _column(frame, QUESTION, "qrels"), _column(frame, DOCUMENT, "qrels")
    grade = _find(frame, GRADE)
    questions, documents = _values(frame, question, "text"), _values(frame, document, "text")
    grades = _values(frame, grade, "numbers") if grade else [1.0] * len(questions)
    labels: dict[str, dict[str, float]] = {}
    for name, identifier, value in zip(questions, documents, grades, strict=True):
        if labels.setdefault(name, {}).setdefault(identifier, value) != value:
            raise DataError(f"qrels: question {name!r}, document {identifier!r} has two grades, "
                            f"{labels[name][identifier]:g} and {value:g}; expected one a pair")
    return labels


def _find(frame: Any, names: Sequence[str]) -> Any:
    """The frame's column that comes first in `names`, whatever its case; None where there is none."""
    known = {str(column).lower(): column for column in reversed(list(frame.columns))}
    return next((known[name] for name in names if name in known), None)


def _column(frame: Any, names: Sequence[str], what: str) -> Any:
    found = _find(frame, names)
    if found is None:
        raise DataError(f"{what}: expected a column named {', '.join(names[:4])} or the like, got "
                        f"{', '.join(map(str, frame.columns)) or 'no column'}")
    return found


def _values(frame: Any, column: Any, kind: str) -> list[Any]:
    series = frame[column]
    values: list[Any] = series.tolist() if hasattr(series, "tolist") else series.to_list()
    if kind == "text":
        _require_text(values, f"column {column!r}: an id")
    else:
        _numbers([(f"column {column!r}", [], values)])
    return values


def _require_text(values: Iterable[Any], what: str) -> None:
    """Ids are strings: an int that a reader made of "007" must not pass."""
    given = values if isinstance(values, list) else list(values)
    if not _all_text(given):
        wrong = next(value for value in given if not isinstance(value, str))
        raise DataError(f"{what} must be a string, got {shown(wrong)} ({type(wrong).__name__}): make ids text when "
                        "they are read (dtype=str), so that 007 stays 007")


def _all_text(values: Iterable[Any]) -> bool:
    kinds = set(map(type, values))
    return kinds == {str} or all(issubclass(kind, str) for kind in kinds)


def _numbers(lists: list[_Scored]) -> NDArray[np.float64]:
    """All scores, one list after the other; what is no number or NaN is told with its place."""
    given = list(chain.from_iterable(scores for _, _, scores in lists))
    if all(issubclass(kind, _NUMBERS) and kind is not bool for kind in set(map(type, given))):
        values = np.array(given, dtype=np.float64)
        if not np.isnan(values).any():
            return values
    for question, ids, scores in lists:
        for place, score in enumerate(scores):
            if not isinstance(score, _NUMBERS) or isinstance(score, bool) or math.isnan(score):
                where = f"ranking of {question!r}, {ids[place]!r}" if ids else f"{question}, row {place}"
                raise DataError(f"{where}: expected a number, got {shown(score)}")
    raise DataError("scores: expected numbers")


def _grades(question: str, row: Any) -> Mapping[str, float]:
    if isinstance(row, Mapping):
        return row
    if isinstance(row, str | bytes) or not isinstance(row, Iterable):
        raise DataError(f"qrels of {question!r}: expected a mapping of document to grade or a list of relevant ids, "
                        f"got {shown(row)}")
    return dict.fromkeys(row, 1.0)
