"""Relevance labels by a judge, where nobody labelled: a grade for each (question, passage), and the statements carried.

Each pair is asked once for all steps, variants and runs that share a store. What is scored with the labels is in
evaluation/relevance.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

from ragkit.errors import JudgeError
from ragkit.judge.calls import CallError, UnusableReplyError
from ragkit.judge.gateway import Gateway
from ragkit.judge.keys import digest
from ragkit.judge.limits import Slots
from ragkit.judge.once import ask_once
from ragkit.judge.samples import judge_text
from ragkit.judge.statements import known_statements, statements_of
from ragkit.judge.store import JudgementStore, StoredGrade
from ragkit.records.questions import text_id

RELEVANT = 2
"""The grade from which a passage counts as relevant for binary metrics; 1 is related, and no answer."""
BEST = 3
STOPPED = "not judged: "
"""How the reason begins of a pair that nobody was asked about, since the judge was stopped."""

_SCHEMA: dict[str, Any] = {
    "title": "RelevanceOutput",
    "type": "object",
    "properties": {"reason": {"type": "string"}, "grade": {"type": "integer", "enum": [0, 1, 2, 3]},
                   "carries": {"type": "array", "items": {"type": "integer"}}},
    "required": ["reason", "grade", "carries"],
}
_INSTRUCTION = """\
Say how relevant one passage is to a question, and which of the numbered statements it carries. The statements are \
what a right answer rests on; the list may be empty.
The grade is one of:
3: the passage is dedicated to the question and holds the exact answer.
2: the passage answers the question in part, or the answer stands hidden among other things.
1: the passage is related to the question but does not answer it, as one that holds only a link on the way to the \
answer.
0: the passage has nothing to do with the question.
A passage carries a statement where it says the same in whatever words, or where the statement follows from the \
passage alone; what you know from elsewhere does not count. Where a statement speaks of a certain thing without \
naming it, a passage that says which one it is carries the statement.
Give the reason first, in one sentence, then the grade, then the numbers of the statements carried, an empty list \
where there are none.
Reply with JSON that fits this JSON Schema:
"""
_EXAMPLE = """

--------EXAMPLE-----------
Input: {"question": "In which year was the director of The Silent Harbour born?", "statements": ["1. The Silent \
Harbour was directed by a certain person.", "2. The director of The Silent Harbour was born in 1951."], "passage": \
"The Silent Harbour is a drama film of 1988, written and directed by Ines Moreau."}
Output: {"reason": "It names the director, which is a link to the answer, and gives no year of birth.", "grade": 1, \
"carries": [1]}
-----------------------------

Now perform the same with the following input
input: """
PREFIX = _INSTRUCTION + json.dumps(_SCHEMA) + _EXAMPLE
"""What stands before the input of every call, the same each time."""


def relevance_prompt(question: str, statements: Sequence[str], passage: str) -> str:
    """What the judge is asked: the prefix, then question, numbered statements and passage as JSON."""
    data = {"question": judge_text(question),
            "statements": [f"{number}. {judge_text(text)}" for number, text in enumerate(statements, 1)],
            "passage": judge_text(passage)}
    return f"{PREFIX}{json.dumps(data, ensure_ascii=False)}\nOutput: "


@dataclass(frozen=True)
class Asked:
    """What passages are judged against, and which: a question with its reference answer, or the query of a step.

    `passages` maps each text to the ids that it was met under. `metric` is the ledger's name for these calls.
    """

    id: str
    text: str
    passages: Mapping[str, Sequence[str]]
    reference: str | None = None
    metric: Literal["relevance", "query_relevance"] = "relevance"


@dataclass
class Pool:
    """All that one judge said about the passages of one question, in this run and in earlier ones of its stores.

    `grades` and `failed` (why a pair of this run was not judged) are by the text's hash. `error` says why the
    statements of the reference answer are not known; then nothing was judged.
    """

    asked: Asked
    key: str = ""
    statements: tuple[str, ...] = ()
    grades: dict[str, StoredGrade] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    error: str | None = None

    def reason(self, text: str) -> str | None:
        """Why the passage with this text hash has no grade; None where it has one."""
        return None if text in self.grades else self.error or self.failed.get(text, "not judged")


async def judge_relevance(gateway: Gateway, wanted: Iterable[Asked], on_done: Callable[[], None] | None = None,
                          others: Sequence[JudgementStore] = ()) -> list[Pool]:
    """Judges each pair that no store holds; a pool each, in order, with what the stores hold of it besides.

    `others` are stores to read from as well. A pair that the judge did not deliver is failed in its pool, also where
    the run had to stop (a budget, a lost server), and is asked again by the next run.
    Raises JudgeError only where the judge cannot be reached before any work.
    """
    pools = [Pool(asked) for asked in wanted]
    asking = not gateway.settings.frozen and any(_unknown(gateway, pool.asked, others) for pool in pools)
    if asking:
        await gateway.check()
    async with gateway.running() if asking else nullcontext() as run:
        slots = Slots(gateway.settings.concurrency) if run is None else run.slots
        await slots.in_turn(_state(gateway, pool) for pool in pools)
        for pool in pools:
            if pool.error is None:
                pool.key = pool_key(gateway.fingerprint, pool.asked.text, pool.statements)
                _read(gateway, pool, others)
        await slots.in_turn(_grade(gateway, pool, text, on_done) for pool in pools if pool.error is None
                            for text in _missing(pool))
    return pools


def missing_calls(gateway: Gateway, wanted: Iterable[Asked]) -> dict[str, int]:
    """Calls that `judge_relevance` would make, by the ledger's names, without making one.

    Where a question's statements are not known yet, all of its pairs count: their keys hold the statements.
    """
    counts = {"statements": 0, "relevance": 0, "query_relevance": 0}
    for asked in wanted:
        unknown = _unknown(gateway, asked, ())
        counts["statements"] += unknown[:1] == ["statements"]
        counts[asked.metric] += len(unknown) - (unknown[:1] == ["statements"])
    return counts


def pool_key(fingerprint: str, question: str, statements: Sequence[str]) -> str:
    """What the grades of one question by one judge have in common; other prompts or statements are another pool."""
    return digest(["relevance/1", PREFIX, fingerprint, question, list(statements)])


def pools_fingerprint(pools: Iterable[Pool]) -> str:
    """Tells one set of judged labels from another: its pairs, their grades, what they carry, and who judged."""
    rows = sorted([pool.key, text, grade.grade, list(grade.carries)]
                  for pool in pools for text, grade in pool.grades.items())
    return digest(rows)[:16]


async def _state(gateway: Gateway, pool: Pool) -> None:
    asked = pool.asked
    if not asked.reference:
        return
    if not asked.passages:  # nothing to judge, but what other runs found belongs to the pool all the same
        pool.statements = known_statements(gateway, asked.text, asked.reference) or ()
        return
    try:
        pool.statements = await statements_of(gateway, asked.text, asked.reference)
    except (CallError, JudgeError) as error:
        pool.error = f"the statements of the reference answer: {_said(error)}"


async def _grade(gateway: Gateway, pool: Pool, text: str, on_done: Callable[[], None] | None) -> None:
    asked, name = pool.asked, text_id(text)
    key = digest([pool.key, text])
    try:
        prompt = relevance_prompt(asked.text, pool.statements, text)
        reply = await ask_once(gateway, prompt, _SCHEMA, metric=asked.metric,
                               check=_checker(len(pool.statements)))
    except JudgeError as error:
        pool.failed[name] = _said(error)
        return
    except CallError as error:
        known = gateway.store.failure(key) if gateway.settings.frozen else None
        pool.failed[name] = known[0] if known is not None else error.reason
        if not gateway.settings.frozen:
            gateway.store.keep_failure(key, gateway.name, asked.metric, error.reason, error.raw)
        return
    data = reply.data
    grade = StoredGrade(key, gateway.name, asked.id, "", data["grade"], tuple(sorted(set(data["carries"]))), pool.key,
                        name, data["reason"])
    pool.grades[name] = _named(gateway, grade, asked.passages[text])
    if on_done is not None:
        on_done()


def _read(gateway: Gateway, pool: Pool, others: Sequence[JudgementStore]) -> None:
    """Takes the pool's grades out of the stores, and notes new ids under which a text was met."""
    asked, rows = pool.asked, [grade for store in (gateway.store, *others) for grade in store.grades(pool.key)]
    for grade in rows:
        pool.grades.setdefault(grade.text, grade)
    for text in asked.passages:
        if not text.strip():  # nothing to ask about
            pool.grades[text_id(text)] = StoredGrade("", gateway.name, asked.id, "", 0, (), pool.key, text_id(text))
    known, fresh = {(grade.text, grade.question, grade.passage) for grade in rows}, list[StoredGrade]()
    for text, passages in asked.passages.items():
        name = text_id(text)
        if name in pool.grades and text.strip():
            gateway.account.count("stored", asked.metric)
            fresh += [pool.grades[name]._replace(question=asked.id, passage=passage) for passage in passages
                      if (name, asked.id, passage) not in known]
    if fresh and not gateway.settings.frozen:
        gateway.store.keep_grades(fresh)


def _named(gateway: Gateway, grade: StoredGrade, passages: Sequence[str]) -> StoredGrade:
    rows = [grade._replace(passage=passage) for passage in passages]
    if not gateway.settings.frozen:
        gateway.store.keep_grades(rows)
    return rows[0]


def _unknown(gateway: Gateway, asked: Asked, others: Sequence[JudgementStore]) -> list[str]:
    """The texts whose grades no store holds, after "statements" where these are not known either."""
    texts = [text for text in asked.passages if text.strip()]
    statements = known_statements(gateway, asked.text, asked.reference) if texts and asked.reference else ()
    if statements is None:
        return ["statements", *texts]
    key = pool_key(gateway.fingerprint, asked.text, statements)
    known = {grade.text for store in (gateway.store, *others) for grade in store.grades(key)} if texts else set()
    return [text for text in texts if text_id(text) not in known]


def _missing(pool: Pool) -> list[str]:
    return [text for text in pool.asked.passages if text_id(text) not in pool.grades]


def _checker(count: int) -> Callable[[Any], None]:
    def check(data: Any) -> None:
        if not 0 <= data["grade"] <= BEST:
            raise UnusableReplyError(f"expected a grade of 0, 1, 2 or 3, got {data['grade']}")
        wrong = [number for number in data["carries"] if not 1 <= number <= count]
        if wrong:
            offered = f"1 to {count}" if count else "none (the list of statements is empty)"
            raise UnusableReplyError(f"carries: expected numbers of the statements, {offered}, got {wrong[0]}")

    return check


def _said(error: Exception) -> str:
    return error.reason if isinstance(error, CallError) else f"{STOPPED}{error}"
