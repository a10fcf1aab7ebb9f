"""Reads what a judge wrote: JSON in fences, behind chatter or thinking, yes and no. Decides nothing about scores.

A value is only ever read, never guessed: two different answers in one reply, or a verdict that was not offered, are
unusable, and the judge is asked again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ragkit.judge.calls import UnusableReplyError

Schema = Mapping[str, Any]

VERDICT_NAMES = ("verdict", "attributed", "noncommittal")
"""Integer fields of ragas' schemas that offer 0 and 1 and nothing else."""
_FREE_TEXT = ("reason", "statement")  # may be left out beside a verdict; no number depends on them

_THINKING = re.compile(r"<(think|thinking|reasoning|thought)>.*?</\1>", re.S | re.I)
_THINKING_END = re.compile(r"^.*</(?:think|thinking|reasoning|thought)>", re.S | re.I)
_THINKING_OPEN = re.compile(r"<(?:think|thinking|reasoning|thought)>", re.I)
_FENCE = re.compile(r"```[a-zA-Z0-9_-]*[ \t]*\r?\n?(.*?)```", re.S)
_OBJECT = re.compile(r"[{\[]\s*[\"{\[]")  # where JSON seems to begin; "{date}" and "[1]" do not look like it
_YES_NO = re.compile(r"[^\w-]*(?:(?:the )?(?:verdict|answer)(?: is|:)?[^\w-]*)?"
                     r"(yes|true|no|false|-?\d++(?:\.\d++)?+)(?=[ \t]*(?:\Z|\n|[^\w\s/%]))", re.I)
_REFUSAL = re.compile(
    r"\b(i'?m|i am) (very |really |truly )?(sorry|unable|not able)\b|\bi (can'?t|cannot|can not|won'?t|will not|must "
    r"decline|decline)\b|\bas an ai\b|\b(can'?t|cannot|unable to) (help|assist|comply|fulfil)", re.I)
_MISSING = object()


def is_judge_refusal(text: str) -> bool:
    """Whether a reply without JSON declines the task.

    >>> is_judge_refusal("I'm sorry, but I can't help with that."), is_judge_refusal("Yes.")
    (True, False)
    """
    return _REFUSAL.search(text.replace("\u2019", "'")[:400]) is not None


def read_verdict(value: object) -> int:
    """0 or 1 from what a judge wrote for it; its first word counts, and UnusableReplyError is raised for anything else.

    >>> [read_verdict(v) for v in ("Yes, although no date is given.", " NO\\n\\nwhy", True, "1", 0, 1.0)]
    [1, 0, 1, 1, 0, 1]
    """
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float) and value in (0, 1):
        return int(value)
    if isinstance(value, str):
        found = _YES_NO.match(value)
        word = found.group(1).lower() if found else ""
        if word in ("yes", "true", "1", "1.0"):
            return 1
        if word in ("no", "false", "0", "0.0"):
            return 0
    raise UnusableReplyError(f"expected a verdict of 0 or 1, got {_short(value)}")


def read_reply(text: str, schema: Schema) -> Any:
    """The value in a reply that fits the schema. UnusableReplyError where there is none, or two different ones.

    >>> schema = {"type": "object", "properties": {"verdict": {"type": "integer"}}, "required": ["verdict"]}
    >>> read_reply('Sure! ```json\\n{"verdict": 1}\\n``` Hope {this} helps.', schema)
    {'verdict': 1}
    """
    clean = _without_thinking(text)
    if not clean.strip():
        raise UnusableReplyError("an empty reply")
    problem: UnusableReplyError | None = None
    for candidates in (_whole(clean), _fenced(clean), _anywhere(clean)):
        found: list[Any] = []
        for candidate in candidates:
            try:
                value = _fit(candidate, schema, schema)
            except UnusableReplyError as error:
                problem = problem or error
            else:
                if value not in found:
                    found.append(value)
        if len(found) > 1:
            raise UnusableReplyError(f"{len(found)} different JSON answers in one reply")
        if found:
            return found[0]
    bare = _bare_verdict(clean, schema)
    if bare is not None:
        return bare
    raise problem or UnusableReplyError(f"no JSON in the reply: {_short(clean.strip())}")


def _without_thinking(text: str) -> str:
    text = text.replace("\ufeff", "")
    if _OBJECT.match(text.lstrip()):
        return text  # a tag inside the answer's own strings is a quotation
    text = _THINKING.sub("", text)
    text = _THINKING_END.sub("", text)  # a template may swallow the opening tag
    opened = _THINKING_OPEN.search(text)
    return text[: opened.start()] if opened else text


def _whole(text: str) -> Iterator[Any]:
    try:
        yield json.loads(text.strip(), strict=False)
    except (ValueError, RecursionError):
        return


def _fenced(text: str) -> Iterator[Any]:
    blocks = list(_FENCE.finditer(text))
    if not blocks or _OBJECT.search(text, 0, blocks[0].start()):
        return  # a fence behind an opened object may be a quotation in it
    for block in blocks:
        yield from _whole(block.group(1))


def _anywhere(text: str) -> Iterator[Any]:
    """The outermost JSON objects and arrays between other words.

    Where one begins and cannot be read, nothing behind it is: what follows may be a quotation inside of it, such as a
    verdict that a passage planted.
    """
    decoder = json.JSONDecoder(strict=False)
    at = 0
    while (found := _OBJECT.search(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            return
        yield value


def _bare_verdict(text: str, schema: Schema) -> dict[str, Any] | None:
    """A reply of a bare yes, no, 1 or 0 where the schema asks for one verdict and else only for its reason."""
    properties = schema.get("properties", {})
    asked = [name for name in properties if name in VERDICT_NAMES]
    if len(asked) != 1 or any(n not in (*asked, *_FREE_TEXT) for n in properties) or "{" in text:
        return None
    if _YES_NO.match(text) is None:
        return None
    made: dict[str, Any] = {name: "" for name in properties if name in _FREE_TEXT}
    return {**made, asked[0]: read_verdict(text)}


def _fit(value: Any, schema: Schema, root: Schema) -> Any:
    """The value in the form of the schema, with harmless deviations mended (1 for true, a list without its object)."""
    if "$ref" in schema:
        schema = root.get("$defs", {})[str(schema["$ref"]).rsplit("/", 1)[-1]]
    kind = schema.get("type")
    if kind == "object":
        return _fit_object(value, schema, root)
    if kind == "array":
        if not isinstance(value, list):
            raise UnusableReplyError(f"expected a list, got {_short(value)}")
        return [_fit(item, schema.get("items", {}), root) for item in value]
    if kind == "integer":
        return _fit_integer(value)
    if kind == "string":
        return _fit_string(value)
    return value


def _fit_object(value: Any, schema: Schema, root: Schema) -> dict[str, Any]:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    if isinstance(value, list) and len(properties) == 1:
        (name, only), = properties.items()
        if only.get("type") == "array":
            value = {name: value}
    if not isinstance(value, dict):
        raise UnusableReplyError(f"expected an object with {', '.join(properties)}, got {_short(value)}")
    optional = _FREE_TEXT if any(name in VERDICT_NAMES for name in properties) else ()
    made: dict[str, Any] = {}
    for name, part in properties.items():
        item = value.get(name, _MISSING)
        if item is _MISSING or (item is None and name in optional):
            if name not in optional:
                raise UnusableReplyError(f"expected the field {name!r}, got {_short(value)}")
            item = ""
        if name in VERDICT_NAMES and part.get("type") == "integer":
            made[name] = read_verdict(item)
        else:
            made[name] = _fit(item, part, root)
    return made


def _fit_integer(value: Any) -> int:
    if isinstance(value, bool | int):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"\s*-?\d+\s*", value):
        return int(value)
    raise UnusableReplyError(f"expected a whole number, got {_short(value)}")


def _fit_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and len(value) == 1:
        (only,) = value.values()
        if isinstance(only, str):
            return only
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise UnusableReplyError(f"expected a text, got {_short(value)}")


def _short(value: object, limit: int = 80) -> str:
    text = " ".join((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)).split())
    return repr(text if len(text) <= limit else text[:limit] + "...")
