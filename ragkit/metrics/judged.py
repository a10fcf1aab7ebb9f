"""Verdicts of a judge -> the value of a judged metric. Pure arithmetic: who asked, and what it cost, is in judge/.

The numbers are those of ragas 0.4.3 on the same verdicts, without its epsilon: a perfect list is 1, not 0.9999999999.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ragkit.metrics.registry import metric
from ragkit.records.judgements import Score, Verdict

_LAWS = frozenset({"in_range", "deterministic"})
NONCOMMITTAL = "noncommittal"
ZERO_VECTOR = "zero_vector"
_COSINE_SLACK = 1e-6  # float32 vectors leave the unit interval by a rounding error


@metric("context_precision", kind="judged", undefined="there is no context", calls="k", laws=_LAWS,
        source="ragas ContextPrecision",
        formula="(sum over i of useful_i * precision@i) / useful contexts")
def context_precision(verdicts: Sequence[Verdict]) -> Score:
    """Average precision of the useful contexts: the precision at each useful one, divided by the useful ones.

    Divided by the *retrieved* useful contexts, so blind to what was missed. One verdict a context, in rank order.

    >>> context_precision([Verdict(1), Verdict(0), Verdict(1)]).value
    0.8333333333333333
    """
    if not verdicts:
        return Score.undefined("no context")
    wrong = _not_binary(verdicts, "context")
    if wrong is not None:
        return wrong
    useful, total = 0, 0.0
    for rank, verdict in enumerate(verdicts, 1):
        if verdict.value == 1:
            useful += 1
            total += useful / rank
    return Score.scored(total / useful if useful else 0.0)


@metric("context_recall", kind="judged", undefined="the reference answer is missing or has no statement", calls="1",
        laws=_LAWS, source="ragas ContextRecall",
        formula="statements carried by the contexts / statements of the reference answer")
def context_recall(verdicts: Sequence[Verdict]) -> Score:
    """Statements of the reference answer that the contexts carry, divided by all of them.

    >>> context_recall([Verdict(1), Verdict(0)]).value
    0.5
    """
    return _share(verdicts, "no statement in the reference answer")


@metric("faithfulness", kind="judged", undefined="the answer has no statement, as a refusal has none", calls="2",
        laws=_LAWS, source="ragas Faithfulness",
        formula="statements that the contexts support / statements of the answer")
def faithfulness(verdicts: Sequence[Verdict]) -> Score:
    """Statements of the answer that the contexts support, divided by all of them.

    One verdict for each statement must have come: a dropped one is to be asked again before it comes here.

    >>> faithfulness([Verdict(1), Verdict(1), Verdict(0), Verdict(1)]).value
    0.75
    """
    return _share(verdicts, "answer refused")


@metric("answer_relevancy", kind="judged", undefined="no question could be generated, or a vector is zero", calls="3",
        range=(-1.0, 1.0), laws=_LAWS, source="ragas AnswerRelevancy (ResponseRelevancy)",
        formula="mean over the generated questions of cosine(question, generated question), 0 if all are noncommittal")
def answer_relevancy(verdicts: Sequence[Verdict]) -> Score:
    """Mean cosine between the question and the questions that a judge makes up from the answer; -1 to 1.

    0 where all of them are marked "noncommittal". The value depends on the embeddings. A vector of length zero
    (the flag "zero_vector", or a cosine that is NaN) leaves it undefined.

    >>> answer_relevancy([Verdict(0.9), Verdict(0.7, flags=("noncommittal",))]).value
    0.8
    """
    if not verdicts:
        return Score.undefined("no question generated")
    if any(ZERO_VECTOR in verdict.flags or math.isnan(verdict.value) for verdict in verdicts):
        return Score.undefined("zero vector")
    for place, verdict in enumerate(verdicts, 1):
        if abs(verdict.value) > 1 + _COSINE_SLACK:
            return Score.failed(f"generated question {place}: expected a cosine, got {verdict.value!r}")
    if all(NONCOMMITTAL in verdict.flags for verdict in verdicts):
        return Score.scored(0.0)
    mean = math.fsum(verdict.value for verdict in verdicts) / len(verdicts)
    return Score.scored(max(-1.0, min(1.0, mean)))


def _share(verdicts: Sequence[Verdict], reason: str) -> Score:
    if not verdicts:
        return Score.undefined(reason)
    wrong = _not_binary(verdicts, "statement")
    return wrong or Score.scored(sum(verdict.value for verdict in verdicts) / len(verdicts))


def _not_binary(verdicts: Sequence[Verdict], what: str) -> Score | None:
    for place, verdict in enumerate(verdicts, 1):
        if verdict.value not in (0, 1):
            return Score.failed(f"verdict of {what} {place}: expected 0 or 1, got {verdict.value!r}")
    return None
