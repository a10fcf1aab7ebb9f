"""Conversations of ragas (messages of a person, a model and its tools) -> trajectories: each tool message is a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragkit.errors import DataError, shown
from ragkit.recording.passages import as_passage
from ragkit.records.questions import text_id
from ragkit.records.readers.written import written
from ragkit.records.trajectory import Passage, Retrieval, Step, Trajectory

_QUERY_KEYS = ("query", "question", "input", "q", "search_query", "text")


@dataclass
class _Heard:
    """What was said so far, and the tool calls that wait for their result."""

    questions: list[str] = field(default_factory=list)
    answer: str | None = None
    steps: list[Step] = field(default_factory=list)
    calls: list[Mapping[str, Any]] = field(default_factory=list)
    turn: int = -1


def is_conversation(value: Any) -> bool:
    """Whether this is a list of messages rather than a question.

    >>> is_conversation([{"type": "human", "content": "Who?"}]), is_conversation("Who?")
    (True, False)
    """
    return isinstance(value, list | tuple) and all(isinstance(one, Mapping) and "content" in one for one in value)


def conversation(messages: Sequence[Mapping[str, Any]], where: str, source: Mapping[str, Any]) -> Trajectory:
    """The trajectory of a conversation. Its question is the first thing that the person said; the rest of it is kept
    in `source["metadata"]["later_messages"]`. The answer is the model's last message that says something.

    The tool messages that follow one message of the model share a turn, and answer its tool calls in their order. The
    context is all of them together: a set, unless there is one alone.
    """
    heard = _Heard()
    for place, message in enumerate(messages):
        _hear(heard, message, f"{where}: user_input[{place}]")
    if not heard.questions:
        raise DataError(f"{where}: user_input: expected a message of a person, got none")
    question = heard.questions[0]
    passages = {passage.id: passage for step in heard.steps for passage in step.outermost.passages}
    context = Retrieval("context", question, tuple(passages.values()), source="manual",
                        ranked=len(heard.steps) == 1) if heard.steps else None
    told = dict(source)
    if heard.questions[1:]:
        told["metadata"] = {**told.get("metadata", {}), "later_messages": heard.questions[1:]}
    return Trajectory(text_id(question), question, tuple(heard.steps), context, heard.answer, meta={"source": told})


def _hear(heard: _Heard, message: Mapping[str, Any], where: str) -> None:
    kind, content = message.get("type") or message.get("role"), message.get("content")
    text = content if isinstance(content, str) else "" if content is None else str(content)
    if kind in ("human", "user"):
        if text.strip():
            heard.questions.append(text)
    elif kind in ("ai", "assistant"):
        calls = message.get("tool_calls")
        heard.calls = [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list | tuple) else []
        heard.turn += bool(heard.calls)
        heard.answer = text if text.strip() else heard.answer
    elif kind in ("tool", "function"):
        call = heard.calls.pop(0) if heard.calls else {}
        found = Retrieval("retrieve", _query(call.get("args")), tuple(passages_in(text)), str(call.get("name") or ""),
                          turn=max(heard.turn, 0), seq=len(heard.steps))
        heard.steps.append(Step(len(heard.steps), (found,), turn=max(heard.turn, 0)))
    elif kind != "system":
        raise DataError(f"{where}: expected a message of type human, ai or tool, got {shown(kind)}")


def _query(arguments: Any) -> str:
    """What a tool was asked: the argument that is called so, else its only text."""
    if not isinstance(arguments, Mapping):
        return ""
    named = next((arguments[key] for key in _QUERY_KEYS if isinstance(arguments.get(key), str)), None)
    texts = [value for value in arguments.values() if isinstance(value, str)]
    return named or (texts[0] if len(texts) == 1 else "")


def passages_in(text: str) -> Iterator[Passage]:
    """The passages of a tool's message: those of the list that it spells, else the whole text as one; none if empty.

    >>> [passage.id for passage in passages_in('[{"id": "d1", "text": "Rome"}, {"id": "d2", "text": "Oslo"}]')]
    ['d1', 'd2']
    >>> [passage.text for passage in passages_in("Rome is the capital.")]
    ['Rome is the capital.']
    """
    if not text.strip():
        return
    value = written(text)
    objects = value if isinstance(value, list | tuple) else [value]
    try:
        yield from [as_passage(one) for one in objects]
    except DataError:
        yield Passage(text_id(text), text)
