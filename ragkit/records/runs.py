"""What is left of a run once its questions' gold is known: where the judged documents stand. Reading files is not here.

Rank metrics need the places of the judged documents and the length of each list, never the ids of the rest; so a run
of millions of rows becomes a few arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Ties = Literal["id", "rank"]
Duplicates = Literal["error", "first"]


@dataclass(frozen=True)
class RunRules:
    """How a scored run becomes lists.

    ties: equal scores are ordered by document id descending in bytes ("id", as trec_eval) or as the run's own order
    says ("rank": the rank column of a file, the order of a dict). float32: scores are compared as trec_eval 9 and
    pytrec_eval do. duplicates: what a (question, document) that stands twice is. judged_only: documents without a
    judgement are dropped and the ranks close up. normalize_ids: ids are compared in Unicode form NFC, without
    invisible characters. drop_self: a document whose id is the question's is dropped. document_of: chunk id ->
    document id, where the gold names documents; later chunks of a document keep their place and gain nothing.
    """

    ties: Ties = "id"
    float32: bool = False
    duplicates: Duplicates = "error"
    judged_only: bool = False
    normalize_ids: bool = False
    drop_self: bool = False
    document_of: Callable[[str], str] | None = None


PLAIN_RULES = RunRules()
"""trec_eval's order, with float64 scores."""


@dataclass(frozen=True)
class Note:
    """Something met on the way that a reader of the numbers must know: its kind, how often, and some examples.

    kinds: "ties" (results that share the score of one that stands above them: results minus distinct scores, summed
    over the questions), "duplicates" (copies dropped), "missing" (questions of the qrels without a result),
    "unknown_questions" (questions of the run without a row in the qrels), "similar_ids" (a gold id that was not found,
    and an id of the run that differs only in Unicode form or invisible characters), "self" (documents dropped that
    are the question), and those that scoring adds.
    """

    kind: str
    count: int
    examples: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, eq=False)
class JudgedRun:
    """One system's results on the questions of some qrels.

    questions: all questions of the qrels, in their order. answered: of each, whether the run holds it. lengths: how
    many documents the run returned for it, copies counted; 0 where it is missing. Items are the judged documents that
    were returned, and the later chunks of a document: `rows` is the question's place in `questions`, `ranks` counts
    from 1, `grades` is 0 for copies; they are ordered by (row, rank).
    """

    name: str
    questions: tuple[str, ...]
    answered: NDArray[np.bool_]
    lengths: NDArray[np.int64]
    rows: NDArray[np.int64]
    ranks: NDArray[np.int64]
    grades: NDArray[np.float64]
    copies: NDArray[np.bool_]
    notes: tuple[Note, ...] = field(default=())
