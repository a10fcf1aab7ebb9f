"""What each RAGAS metric asks a judge, in which order, and the verdicts that its replies are. Imports no ragas.

The prompts are ragas' own (ragas_scores.py). What does not depend on another reply is asked together: the same prompts
as ragas sends one after the other. A reply that ragas would take and misread is refused here, and asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ragkit.judge.calls import UnusableReplyError
from ragkit.judge.gateway import Check, Gateway, Reply
from ragkit.judge.once import ask_once
from ragkit.judge.samples import JudgeSample
from ragkit.judge.store import StoredVerdicts
from ragkit.judge.verdicts import STRICTNESS, no_statement
from ragkit.metrics.judged import FROM_ANSWER, FROM_REFERENCE
from ragkit.records.judgements import Verdict

if TYPE_CHECKING:
    from ragkit.judge.judging import Vectors
    from ragkit.judge.ragas_scores import Prompt

Ask = Callable[["Asking", JudgeSample], Awaitable[StoredVerdicts]]


class Asking:
    """Asks for one judgement: knows its prompts, and counts the calls that it took.

    `asked` were made for it, `shared` were in the store or are another judgement's too; `last` is the last reply.
    """

    def __init__(self, gateway: Gateway, metric: str, prompts: Mapping[str, Prompt], vectors: Vectors) -> None:
        self._gateway, self._metric, self.prompts = gateway, metric, prompts
        self.vectors = vectors
        self.asked = self.shared = 0
        self.last: str | None = None

    async def one(self, prompt: str, check: Check | None = None, replicate: int = 0, **inputs: Any) -> Any:
        """The reply to a prompt with these inputs. The same one with another replicate number is asked anew."""
        chosen = self.prompts[prompt]
        reply: Reply = await ask_once(
            self._gateway, chosen.text(**inputs), chosen.schema, metric=self._metric, replicate=replicate, check=check)
        self.asked += reply.source == "asked"
        self.shared += reply.source != "asked"
        self.last = reply.text
        return reply.data


async def together(calls: Iterable[Awaitable[Any]]) -> list[Any]:
    """The replies to calls that are made at the same time. All are waited for before the first error is raised.

    What was paid for is in the store, so that a later try does not ask for it again.
    """
    done = await asyncio.gather(*calls, return_exceptions=True)
    for reply in done:
        if isinstance(reply, BaseException):
            raise reply
    return done


def _one_for_each(statements: Sequence[str]) -> Check:
    """ragas divides by the verdicts that came: one that the judge dropped would go unnoticed."""
    def check(data: Any) -> None:
        if len(data["statements"]) != len(statements):
            raise UnusableReplyError(f"expected {len(statements)} verdicts, one for each statement, got "
                                     f"{len(data['statements'])}")
    return check


def _offered(*ratings: int) -> Check:
    """ragas drops a rating that was not offered, and takes the other one alone for the mean of two."""
    def check(data: Any) -> None:
        if data["rating"] not in ratings:
            raise UnusableReplyError(f"expected a rating of {', '.join(map(str, ratings))}, got {data['rating']}")
    return check


def _a_question(data: Any) -> None:
    if not data["question"].strip():
        raise UnusableReplyError("expected a question, got an empty one")


def _verdicts(statements: Sequence[str], rows: Sequence[Mapping[str, Any]], *flags: str) -> list[Verdict]:
    return [Verdict(row["verdict"], row["statement"] or statement, row["reason"], flags)
            for statement, row in zip(statements, rows, strict=True)]


async def _supported(ask: Asking, context: str, statements: Sequence[str]) -> list[dict[str, Any]]:
    """A verdict for each statement: does it follow from the context?"""
    reply = await ask.one("supported", _one_for_each(statements), context=context, statements=list(statements))
    rows: list[dict[str, Any]] = reply["statements"]
    return rows


async def _useful(ask: Asking, sample: JudgeSample, answer: str | None) -> StoredVerdicts:
    replies = await together(ask.one("useful", question=sample.question, context=text, answer=answer)
                             for text in sample.contexts)
    return _kept(Verdict(reply["verdict"], f"passage {rank}", reply["reason"]) for rank, reply in enumerate(replies, 1))


async def _context_precision(ask: Asking, sample: JudgeSample) -> StoredVerdicts:
    return await _useful(ask, sample, sample.reference)


async def _context_precision_without_reference(ask: Asking, sample: JudgeSample) -> StoredVerdicts:
    return await _useful(ask, sample, sample.answer)


async def _context_recall(ask: Asking, sample: JudgeSample) -> StoredVerdicts:
    reply = await ask.one("attributed", question=sample.question, context="\n".join(sample.contexts),
                          answer=sample.reference)
    return _kept(Verdict(row["attributed"], row["statement"], row["reason"]) for row in reply["classifications"])


async def _faithfulness(ask: Asking, sample: JudgeSample) -> StoredVerdicts:
    statements = (await ask.one("statements", question=sample.question, answer=sample.answer))["statements"]
    if not statements:
        return StoredVerdicts((), no_statement(sample.answer), 0)
    return _kept(_verdicts(statements, await _supported(ask, "\n".join(sample.contexts), statements)))


async def _answer_relevancy(ask: Asking, sample: JudgeSample) -> StoredVerdicts:
    replies = await together(ask.one("question", _a_question, replicate, response=sample.answer)
                             for replicate in range(STRICTNESS))
    asked = np.asarray(await ask.vectors.of(sample.question))
    verdicts = []
    for reply in replies:
        made = np.asarray(await ask.vectors.of(reply["question"]))
        length = float(np.linalg.norm(asked) * np.linalg.norm(made))
        if length == 0.0:
            return StoredVerdicts((), "zero vector", 0)
        flags = ("noncommittal",) if reply["noncommittal"] else ()
        verdicts.append(Verdict(float(np.dot(made, asked)) / length, reply["question"], "", flags))
    return _kept(verdicts)


async def _two_ratings(ask: Asking, offered: Sequence[int], first: Mapping[str, Any],
                       second: Mapping[str, Any]) -> StoredVerdicts:
    check = _offered(*offered)
    replies = await together((ask.one("first", check, **first), ask.one("second", check, **second)))
    return _kept(Verdict(reply["rating"], f"rating {place}") for place, reply in enumerate(replies, 1))


async def _context_relevance(ask: Asking, sample: JudgeSample) -> StoredVerdicts:
    context = "\n".join(sample.contexts)
    if context.strip() in sample.question.strip():  # ragas' own rule, which asks nobody
        return _kept(Verdict(0, f"rating {place}", "the contexts say no more than the question") for place in (1, 2))
    inputs = {"user_input": sample.question, "context": context}
    return await _two_ratings(ask, (0, 1, 2), inputs, inputs)


async def _response_groundedness(ask: Asking, sample: JudgeSample) -> StoredVerdicts:
    inputs = {"response": sample.answer, "context": "\n".join(sample.contexts)}
    return await _two_ratings(ask, (0, 1, 2), inputs, inputs)


async def _answer_accuracy(ask: Asking, sample: JudgeSample) -> StoredVerdicts:
    inputs = {"query": sample.question, "user_answer": sample.answer, "reference_answer": sample.reference}
    swapped = {**inputs, "user_answer": sample.reference, "reference_answer": sample.answer}
    return await _two_ratings(ask, (0, 2, 4), inputs, swapped)


async def _factual_correctness(ask: Asking, sample: JudgeSample) -> StoredVerdicts:
    answer, reference = str(sample.answer), str(sample.reference)
    own, expected = await together(ask.one("claims", response=text, atomicity="low", coverage="low")
                                   for text in (answer, reference))
    sides = [(own["claims"], reference, FROM_ANSWER), (expected["claims"], answer, FROM_REFERENCE)]
    sides = [side for side in sides if side[0]]
    rows = await together(_supported(ask, against, claims) for claims, against, _ in sides)
    return _kept(verdict for (claims, _, flag), found in zip(sides, rows, strict=True)
                 for verdict in _verdicts(claims, found, flag))


async def _noise_sensitivity(ask: Asking, sample: JudgeSample) -> StoredVerdicts:
    """A verdict a statement of the answer: 1 where the reference does not support it and a relevant context does."""
    found = await together(ask.one("statements", question=sample.question, text=text)
                           for text in (sample.reference, sample.answer))
    expected, own = (reply["statements"] for reply in found)
    if not own:
        return StoredVerdicts((), no_statement(sample.answer), 0)
    if not expected:
        return StoredVerdicts((), "no statement in the reference answer", 0)
    pairs = [(text, statements) for text in sample.contexts for statements in (expected, own)]
    pairs.append((str(sample.reference), own))
    *checked, right = await together(_supported(ask, *pair) for pair in pairs)
    relevant = [any(row["verdict"] for row in rows) for rows in checked[::2]]
    verdicts = []
    for place, (statement, row) in enumerate(zip(own, right, strict=True)):
        carriers = [number for number, rows in enumerate(checked[1::2]) if rows[place]["verdict"]]
        kinds = {relevant[number] for number in carriers}
        flags = ("right" if row["verdict"] else "wrong", *(["in a relevant context"] if True in kinds else []),
                 *(["in an irrelevant context"] if False in kinds else []))
        where = ", ".join(str(number + 1) for number in carriers)
        found_in = f"Supported by passage {where}" if where else ""
        reason = ". ".join(filter(None, (row["reason"].strip().rstrip("."), found_in)))
        verdicts.append(Verdict(int(not row["verdict"] and True in kinds), statement, reason, flags))
    return _kept(verdicts)


def _kept(verdicts: Iterable[Verdict]) -> StoredVerdicts:
    return StoredVerdicts(tuple(verdicts), None, 0)


ASK: Mapping[str, Ask] = {
    "context_precision": _context_precision,
    "context_precision_without_reference": _context_precision_without_reference,
    "context_recall": _context_recall,
    "faithfulness": _faithfulness,
    "answer_relevancy": _answer_relevancy,
    "context_relevance": _context_relevance,
    "response_groundedness": _response_groundedness,
    "answer_accuracy": _answer_accuracy,
    "factual_correctness": _factual_correctness,
    "noise_sensitivity": _noise_sensitivity,
}
CHAINS = ("faithfulness", "factual_correctness", "noise_sensitivity")
"""Those whose later calls build on the replies to their first."""
