"""The statements of a reference answer, made by the judge: one call a question. What passages carry is relevance.py's.

For a question that needs several passages each link on the way to the answer is a statement of its own, so that the
passage which holds it counts.
"""

from __future__ import annotations

import json
from typing import Any

from ragkit.judge.calls import UnusableReplyError
from ragkit.judge.gateway import Gateway
from ragkit.judge.once import ask_once
from ragkit.judge.replies import read_reply
from ragkit.judge.samples import judge_text

MOST_STATEMENTS = 30  # more is a judge that counts words
_SCHEMA: dict[str, Any] = {
    "title": "StatementsOutput",
    "type": "object",
    "properties": {"statements": {"type": "array", "items": {"type": "string"}}},
    "required": ["statements"],
}
_INSTRUCTION = """\
List the statements that the reference answer to a question rests on: each a short sentence with one fact, \
understandable without the others, without pronouns, in the language of the reference answer.
Where the answer is short, say it as a full sentence with the words of the question. Where the question reaches its \
answer through something that it does not name, each link is a statement of its own: name the unknown thing by what \
it is, not by a name that you know.
Leave out what is no fact: greetings, opinions, repetitions. A reference answer that says that nothing is known has \
no statement: give an empty list.
Reply with JSON that fits this JSON Schema:
"""
_EXAMPLE = """

--------EXAMPLE-----------
Input: {"question": "In which year was the director of The Silent Harbour born?", "answer": "1951"}
Output: {"statements": ["The Silent Harbour was directed by a certain person.", "The director of The Silent Harbour \
was born in 1951."]}
-----------------------------

Now perform the same with the following input
input: """
PREFIX = _INSTRUCTION + json.dumps(_SCHEMA) + _EXAMPLE
"""What stands before the input of every call, the same each time."""


def statements_prompt(question: str, answer: str) -> str:
    """What the judge is asked: the prefix, and the question with its reference answer as JSON."""
    data = {"question": judge_text(question), "answer": judge_text(answer)}
    return f"{PREFIX}{json.dumps(data, ensure_ascii=False)}\nOutput: "


async def statements_of(gateway: Gateway, question: str, answer: str) -> tuple[str, ...]:
    """The statements of a reference answer, each once, in the judge's order; empty where it has none.

    The same question and answer are asked once for all runs that share the store.
    Raises CallError where the judge does not deliver, JudgeError where the run has to stop.
    """
    reply = await ask_once(gateway, statements_prompt(question, answer), _SCHEMA, metric="statements", check=_check)
    return _each_once(reply.data)


def known_statements(gateway: Gateway, question: str, answer: str) -> tuple[str, ...] | None:
    """The statements where the store holds them, else None. No call is made or counted."""
    found = gateway.store.reply(gateway.call_key(statements_prompt(question, answer), _SCHEMA, 0))
    if found is None:
        return None
    try:
        data = read_reply(found.text, _SCHEMA)
        _check(data)
    except UnusableReplyError:
        return None
    return _each_once(data)


def _each_once(data: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.strip() for text in data["statements"]))


def _check(data: Any) -> None:
    found = data["statements"]
    if len(found) > MOST_STATEMENTS:
        raise UnusableReplyError(f"expected at most {MOST_STATEMENTS} statements, got {len(found)}")
    if any(not text.strip() for text in found):
        raise UnusableReplyError("expected statements, got an empty one")
