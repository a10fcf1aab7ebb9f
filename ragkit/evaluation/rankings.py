"""Rank metrics of lists in memory as a frame: the door to the kernel in ragkit.metrics for notebooks and scripts.

Files are scored in rank_files.py; what a form of input means is in ranking_inputs.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ragkit.errors import DataError
from ragkit.evaluation.rank_files import trec_values
from ragkit.evaluation.ranking_inputs import Lists, read_labels, read_rankings
from ragkit.metrics.ranking import RankBatch, batch_of_lists, score_arrays
from ragkit.metrics.registry import Metric, parse_all
from ragkit.records.runs import Ties

if TYPE_CHECKING:
    import pandas as pd

EXAMPLES = 5


def score_rankings(
    rankings: Any,
    qrels: Any,
    metrics: str | Iterable[str | Metric],
    *,
    level: float = 1.0,
    ties: Ties = "id",
    float32: bool = False,
    trec: bool = False,
) -> pd.DataFrame:
    """Rank metrics of rankings held in memory: a row a ranking (index `question_id`), a column a metric.

    rankings: a mapping of question id to a list of document ids, best first (it keeps its order, and only the first
    copy of an id can gain), to a dict of id to score, to (id, score) pairs, or to a set (no order: set metrics only);
    or (question id, list) pairs, where a question may stand several times (the steps of an agent); or a DataFrame with
    columns such as qid / question_id, docno / doc_id, and score or rank. Scores are sorted as trec_eval does, best
    first as float64 (`float32`: as trec_eval 9 and pytrec_eval), equal ones by id descending (`ties="rank"`: in the
    order given).

    qrels: question id -> document id -> grade, question id -> set or list of relevant ids, a DataFrame, or the path of
    a TREC or BEIR file. A document is relevant at grade >= `level`; ndcg's gains are the grades, whatever the level.

    NaN is undefined (nothing relevant, no labels for the question, no order), never 0; `frame.mean()` leaves it out.
    `trec=True` is the convention of `trec_eval -c`: rows for the questions of the qrels that have no ranking, none for
    unknown questions, and 0 for what is undefined. `frame.attrs["notes"]` lists what was met: ties, duplicates, missing
    and unknown questions, questions to which nothing is relevant.

    Raises DataError for an unknown metric, one that is no rank metric, an id that is no string, a score that is none.

    >>> frame = score_rankings({"q1": ["b", "x", "a"], "q2": {"c": 0.2, "y": 0.9}},
    ...                        {"q1": {"a": 3, "b": 2, "c": 1}, "q2": {"c": 1}}, "ndcg@3,mrr")
    >>> frame.round(4)
                 ndcg@3  mrr
    question_id
    q1           0.7350  1.0
    q2           0.6309  0.5
    """
    import pandas as pd

    asked = parse_all(metrics if isinstance(metrics, str) else [str(metric) for metric in metrics])
    labels, lists = read_labels(qrels), read_rankings(rankings, ties, float32)
    rows = trec_rows(lists, labels) if trec else lists
    batch = batch_of_lists(rows.questions, rows.ids, labels, level=level)
    if rows.unordered:
        ranked = np.ones(len(batch), dtype=np.bool_)
        ranked[rows.unordered] = False
        batch = replace(batch, ranked=ranked)
    values = score_arrays(batch, asked)
    if trec:
        values = np.column_stack([trec_values(column, metric) for column, metric in zip(values.T, asked, strict=True)])
    frame = pd.DataFrame(values, columns=pd.Index([metric.name for metric in asked], dtype=object), copy=False,
                         index=pd.Index(rows.questions, name="question_id", dtype=object))
    frame.attrs["notes"] = _notes(lists, labels, batch, rows.questions)
    return frame


def trec_rows(given: Lists, labels: Mapping[str, Any]) -> Lists:
    """The rankings of known questions, and an empty one for each question that has none."""
    if not labels:
        raise DataError("qrels: expected at least one question")
    known = [place for place, question in enumerate(given.questions) if question in labels]
    answered, unordered = set(given.questions), set(given.unordered)
    missing = [question for question in labels if question not in answered]
    return Lists([given.questions[place] for place in known] + missing,
                 [*(given.ids[place] for place in known), *(() for _ in missing)],
                 [new for new, place in enumerate(known) if place in unordered])


def _notes(given: Lists, labels: Mapping[str, Any], batch: RankBatch, questions: list[str]) -> list[dict[str, Any]]:
    empty = [questions[place] for place in np.flatnonzero(batch.lengths == 0)]
    missing, unknown = [question for question in _distinct(empty) if question in labels], list[str]()
    if given.questions != list(labels):
        answered = {*given.questions, *missing}
        missing += [question for question in labels if question not in answered]
        unknown = sorted(answered - labels.keys())
    without = (questions[place] for place in np.flatnonzero(batch.n_relevant == 0))
    nothing = _distinct(question for question in without if question in labels)
    copied = batch.rows[batch.copies].tolist()
    notes = [
        ("ties", given.ties, _distinct(given.tied)),
        ("duplicates", len(copied), _distinct(questions[place] for place in copied)),
        ("missing", len(missing), missing),
        ("unknown_questions", len(unknown), unknown),
        ("nothing_relevant", len(nothing), nothing),
    ]
    return [{"kind": kind, "count": count, "examples": examples[:EXAMPLES]} for kind, count, examples in notes if count]


def _distinct(questions: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(questions))
