"""JSON of a trace -> what the live recorder sees: documents, messages, commands, told by shape. Nothing is run."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ragkit.recording.answers import content_text

_ROLES = {"human": "human", "user": "human", "ai": "ai", "assistant": "ai", "AIMessageChunk": "ai", "tool": "tool",
          "function": "tool", "system": "system", "developer": "system", "model": "ai", "chat": "human"}
_PRINTED = "page_content='"
_MOST_SPLITS = 50  # places in a printed document where its metadata may begin


@dataclass(frozen=True)
class Document:
    """A document as a retriever returned it; the same shape as LangChain's."""

    page_content: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    score: float | None = None


@dataclass(frozen=True)
class Message:
    """A chat message; `type` is human, ai, tool or system, `tool_calls` are (call id, tool name)."""

    type: str
    content: Any = ""
    tool_calls: tuple[tuple[str, str], ...] = ()
    tool_call_id: str | None = None
    artifact: Any = None
    usage: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Command:
    """A LangGraph command: the state update of a node that also says where to go."""

    update: Any


def decode(value: Any) -> Any:
    """The value with every document, message and command in it as such; all else stays as it is.

    >>> decode({"documents": [{"page_content": "seven", "metadata": {"id": 7}, "type": "Document"}]})
    {'documents': [Document(page_content='seven', metadata={'id': 7}, id=None, score=None)]}
    >>> decode("page_content='It's seven' metadata={'id': 'd7'}").metadata
    {'id': 'd7'}
    """
    try:
        return _decode(value)
    except RecursionError:  # nested too deep to be a document of anybody
        return value


def from_json(text: Any) -> Any:
    """A text that holds JSON, decoded; one that does not stays a text."""
    if not isinstance(text, str):
        return decode(text)
    try:
        return decode(json.loads(text))
    except (ValueError, RecursionError):
        return text


def _decode(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_decode(item) for item in value]
    if isinstance(value, str):
        return _printed_document(value) if value.startswith(_PRINTED) else value
    if not isinstance(value, Mapping):
        return value
    if value.get("lc") == 1 and isinstance(value.get("kwargs"), Mapping):
        kind = value.get("id")
        name = str(kind[-1]) if isinstance(kind, list) and kind else ""
        kwargs = value["kwargs"]
        if isinstance(kwargs.get("page_content"), str):
            return _document(kwargs)
        role = kwargs.get("type") or re.sub(r"Message(Chunk)?$", "", name).lower()
        return _message(str(role), kwargs) if "content" in kwargs and role in _ROLES else _each(kwargs)
    if isinstance(value.get("page_content"), str):
        return _document(value)
    role, inner = value.get("type"), value.get("data")
    if isinstance(role, str) and role in _ROLES:
        if isinstance(inner, Mapping) and "content" in inner:
            return _message(role, inner)
        if "content" in value:
            return _message(role, value)
    role = value.get("role")
    if isinstance(role, str) and role in _ROLES and ("content" in value or "tool_calls" in value):
        return _message(role, value)
    if "update" in value and "goto" in value:
        return Command(_decode(value["update"]))
    return _each(value)


def _each(value: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key): _decode(item) for key, item in value.items()}


def _document(value: Mapping[str, Any]) -> Document:
    metadata = value.get("metadata")
    given = value.get("id")
    return Document(value["page_content"], dict(metadata) if isinstance(metadata, Mapping) else {},
                    str(given) if isinstance(given, str | int) and given != "" else None, value.get("score"))


def _printed_document(text: str) -> Any:
    """A document as Python prints it, which is how some tracers write what they cannot serialise. The last place
    that leaves a literal dict behind it is where the metadata begins: the text before it may hold anything."""
    body = text.removeprefix(_PRINTED)
    if body.endswith("'") and "' metadata={" not in body:
        return Document(body[:-1])
    end = len(body)
    for _ in range(_MOST_SPLITS):
        end = body.rfind("' metadata={", 0, end)
        if end < 0:
            break
        try:
            metadata = ast.literal_eval(body[end + len("' metadata=") :])  # literals only: nothing is evaluated
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(metadata, dict):
            return Document(body[:end], {str(key): item for key, item in metadata.items()})
    return text


def _message(role: str, value: Mapping[str, Any]) -> Message:
    calls = value.get("tool_calls")
    usage = value.get("usage_metadata")
    call_id = value.get("tool_call_id")
    return Message(
        _ROLES[role],
        value.get("content") or "",
        tuple(_call(call) for call in calls if isinstance(call, Mapping)) if isinstance(calls, list) else (),
        call_id if isinstance(call_id, str) else None,
        _decode(value.get("artifact")),
        counts(usage, "input_tokens", "output_tokens") if isinstance(usage, Mapping) else {},
    )


def _call(call: Mapping[str, Any]) -> tuple[str, str]:
    function = call.get("function")
    name = function.get("name") if isinstance(function, Mapping) else call.get("name")
    return str(call.get("id") or ""), str(name or "")


def counts(told: Mapping[str, Any], input_name: str, output_name: str) -> dict[str, float]:
    """input_tokens and output_tokens under the names that a tool has for them; what is no number is left out.

    >>> counts({"prompt": 12, "completion": None}, "prompt", "completion")
    {'input_tokens': 12}
    """
    pairs = (("input_tokens", told.get(input_name)), ("output_tokens", told.get(output_name)))
    return {name: value for name, value in pairs if isinstance(value, int | float) and not isinstance(value, bool)}


def messages_in(value: Any) -> list[Message]:
    """All messages of a decoded value, in their order, whatever they are wrapped in ({"messages": [[…]]}, pairs)."""
    if isinstance(value, Message):
        return [value]
    if isinstance(value, Mapping):
        return messages_in(value.get("messages"))
    if isinstance(value, list):
        if len(value) == 2 and all(isinstance(part, str) for part in value) and value[0] in _ROLES:
            return [Message(_ROLES[value[0]], value[1])]
        return [message for item in value for message in messages_in(item)]
    return []


def question_in(value: Any) -> str | None:
    """The question in an app's input: a text, the last message of a person, a usual key, the only text; else None.

    >>> question_in({"chat_history": [], "question": "Who?"}), question_in({"k": 3})
    ('Who?', None)
    >>> question_in(decode({"messages": [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "I"}]}))
    'Who?'
    """
    if isinstance(value, str):
        return value if value.strip() else None
    asked = [content_text(message.content) for message in messages_in(value) if message.type == "human"]
    if asked and asked[-1].strip():
        return asked[-1]
    if not isinstance(value, Mapping):
        return None
    for key in ("question", "query", "input", "user_input", "user_query", "prompt"):
        if (text := question_in(value.get(key))) is not None:
            return text
    texts = [item for item in value.values() if isinstance(item, str) and item.strip()]
    return texts[0] if len(texts) == 1 else None


def seconds(value: Any) -> float | None:
    """A time as seconds since the epoch: ISO 8601 (without a zone it is UTC), a datetime, or a number, whose size says
    whether it counts seconds, milli-, micro- or nanoseconds. None where it is nothing of that kind.

    >>> seconds("2026-11-30T13:20:32.5Z") == seconds(1796044832500) == seconds("1796044832500000000")
    True
    """
    if isinstance(value, str):
        if value.isdigit():
            return seconds(int(value[:25]))
        try:
            value = datetime.fromisoformat(value.strip().removesuffix(" UTC"))
        except ValueError:
            return None
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return None
    for most, unit in ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3)):
        if value >= most:
            return value / unit
    return float(value)


def first_line(text: Any) -> str:
    """An error in one line, as tools store it: the exception, then perhaps its traceback.

    >>> first_line("ValueError('boom')Traceback (most recent call last):\\n  File …")
    'ValueError: boom'
    """
    told = str(text).split("Traceback (most recent call last)")[0].strip()
    told = next((line for line in told.splitlines() if line.strip()), "")
    match = re.fullmatch(r"([A-Za-z_][\w.]*)\((['\"])(.*)\2,?\)", told)
    return f"{match[1]}: {match[3]}" if match else told

