"""Verdicts of a judge -> the value of a judged metric. Pure arithmetic: who asked, and what it cost, is in judge/.

The numbers are those of ragas 0.4.3 on the same verdicts, without its epsilon and its rounding: a perfect list is 1,
not 0.9999999999, and factual correctness is not cut to two digits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from ragkit.metrics.registry import metric
from ragkit.records.judgements import Score, Verdict

_LAWS = frozenset({"in_range", "deterministic"})
NONCOMMITTAL = "noncommittal"
ZERO_VECTOR = "zero_vector"
FROM_ANSWER, FROM_REFERENCE = "claim of the answer", "claim of the reference"
_UP_TO_TWO, _UP_TO_FOUR = (0, 1, 2), (0, 2, 4)  # what the two prompts of a rating offer
_COSINE_SLACK = 1e-6  # float32 vectors leave the unit interval by a rounding error


def _two_ratings(offered: Sequence[int]) -> dict[str, Any]:
    """What is declared of a metric that is `_mean_rating` of these ratings."""
    *lower, highest = offered
    return {"kind": "judged", "calls": "2", "laws": _LAWS,
            "formula": f"mean of two ratings of {', '.join(map(str, lower))} or {highest}, divided by {highest}"}


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


@metric("context_precision_without_reference", kind="judged", undefined="there is no context or no answer", calls="k",
        laws=_LAWS, aliases=("context_utilization",), source="ragas ContextPrecisionWithoutReference",
        formula="(sum over i of useful_i * precision@i) / useful contexts")
def context_precision_without_reference(verdicts: Sequence[Verdict]) -> Score:
    """As context_precision, but "useful" means useful for the answer that the app gave: no reference answer is needed.

    A wrong answer makes the passages that misled it useful, so read it beside a metric that knows what is right.

    >>> context_precision_without_reference([Verdict(0), Verdict(1)]).value
    0.5
    """
    return context_precision(verdicts)


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


@metric("context_relevance", undefined="there is no context", source="ragas ContextRelevance",
        **_two_ratings(_UP_TO_TWO))
def context_relevance(verdicts: Sequence[Verdict]) -> Score:
    """Whether the contexts together hold what answers the question: the mean of two ratings, of two prompts.

    Asks for no reference answer, and is blind to the order. Contexts that say no more than the question are rated 0.

    >>> context_relevance([Verdict(2), Verdict(1)]).value
    0.75
    """
    return _mean_rating(verdicts, _UP_TO_TWO)


@metric("response_groundedness", undefined="there is no answer or no context", source="ragas ResponseGroundedness",
        **_two_ratings(_UP_TO_TWO))
def response_groundedness(verdicts: Sequence[Verdict]) -> Score:
    """Whether the contexts support the answer as a whole: the mean of two ratings, of two prompts.

    Cheaper than faithfulness where answers are long, and says nothing of which statement is unsupported.

    >>> response_groundedness([Verdict(2), Verdict(2)]).value
    1.0
    """
    return _mean_rating(verdicts, _UP_TO_TWO)


@metric("answer_accuracy", undefined="there is no answer or no reference answer", source="ragas AnswerAccuracy",
        **_two_ratings(_UP_TO_FOUR))
def answer_accuracy(verdicts: Sequence[Verdict]) -> Score:
    """Whether the answer agrees with the reference answer: the mean of two ratings, the second with the two swapped.

    Where it is scored it decides which answers count as right.

    >>> answer_accuracy([Verdict(4), Verdict(2)]).value
    0.75
    """
    return _mean_rating(verdicts, _UP_TO_FOUR)


@metric("factual_correctness", kind="judged", calls="4", laws=_LAWS, source="ragas FactualCorrectness (mode f1)",
        undefined="there is no answer, or the reference answer is missing or holds no claim",
        formula="2 * precision * recall / (precision + recall), where precision = supported claims of the answer / its "
                "claims, recall = supported claims of the answer / (those + claims of the reference that the answer "
                "misses)")
def factual_correctness(verdicts: Sequence[Verdict]) -> Score:
    """F1 of the answer's claims against the reference answer, both broken into claims that are checked both ways.

    The flags of the verdicts say whose claim it is. An answer without a claim is 0: it says nothing of what it should.

    >>> mine, other = ("claim of the answer",), ("claim of the reference",)
    >>> factual_correctness([Verdict(1, flags=mine), Verdict(0, flags=mine), Verdict(1, flags=other)]).value
    0.6666666666666666
    """
    own = [verdict.value for verdict in verdicts if FROM_ANSWER in verdict.flags]
    expected = [verdict.value for verdict in verdicts if FROM_REFERENCE in verdict.flags]
    if len(own) + len(expected) != len(verdicts):
        return Score.failed("a verdict does not say whose claim it is about")
    if not expected:
        return Score.undefined("no claim in the reference answer")
    wrong = _not_binary(verdicts, "claim")
    if wrong is not None:
        return wrong
    right = sum(own)
    if not right:
        return Score.scored(0.0)
    precision, recall = right / len(own), right / (right + expected.count(0))
    return Score.scored(2 * precision * recall / (precision + recall))


@metric("noise_sensitivity", kind="judged", calls="2k+3", direction="lower", laws=_LAWS,
        source="ragas NoiseSensitivity (mode relevant)",
        undefined="there is no context, or the answer or the reference answer is missing or has no statement",
        formula="wrong statements of the answer that a relevant context supports / statements of the answer")
def noise_sensitivity(verdicts: Sequence[Verdict]) -> Score:
    """Statements of the answer that are wrong although a relevant context supports them, divided by all of them.

    Wrong: the reference answer does not support it. Relevant: a context that supports a statement of the reference.
    It reads low where the answer is right, and also where it is wrong for other reasons: the flags tell them apart.

    >>> noise_sensitivity([Verdict(1), Verdict(0), Verdict(0), Verdict(0)]).value
    0.25
    """
    return _share(verdicts, "no statement in the answer")


def model_calls(formula: str, contexts: int) -> int:
    """Model calls for one sample with so many contexts, of a formula such as "4", "k" or "2k+3".

    >>> model_calls("k", 5), model_calls("2k+3", 5), model_calls("4", 5)
    (5, 13, 4)
    """
    found = re.fullmatch(r"(?:(\d*)k)?\+?(\d+)?", formula)
    if not formula or found is None:
        raise ValueError(f"calls: expected a formula such as 2k+3, got {formula!r}")
    a_context = int(found[1] or 1) if found[1] is not None else 0
    return a_context * contexts + int(found[2] or 0)


def _mean_rating(verdicts: Sequence[Verdict], offered: Sequence[int]) -> Score:
    """The mean of both ratings on the unit interval. One that is missing or was not offered leaves no mean."""
    if not verdicts:
        return Score.undefined("no rating")
    if len(verdicts) != 2:
        return Score.failed(f"expected two ratings, got {len(verdicts)}")
    for place, verdict in enumerate(verdicts, 1):
        if verdict.value not in offered:
            return Score.failed(f"rating {place}: expected {', '.join(map(str, offered))}, got {verdict.value!r}")
    return Score.scored(sum(verdict.value for verdict in verdicts) / (2 * offered[-1]))


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
