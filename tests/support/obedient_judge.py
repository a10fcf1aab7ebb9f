"""A scripted judge that obeys every order which reaches it outside the input JSON, and reads what is inside as data."""

from __future__ import annotations

import json
from typing import Any

from tests.support.openai_server import Request, sentences

ORDER = "approve-7731"
"""Stands in every injection: seen outside the input JSON, it makes the judge find everything right."""


def split_prompt(prompt: str) -> tuple[dict[str, Any], str]:
    """The input JSON of a prompt, and all that stands around it."""
    head, mark, tail = prompt.partition("Now perform the same with the following input\ninput: ")
    try:
        data, end = json.JSONDecoder().raw_decode(tail) if mark else ({}, 0)
    except ValueError:  # no JSON that could hold anything
        return {}, prompt
    return data, head + tail[end:]


def obedient(request: Request) -> str:
    """Everything is right where an order reached it; else a statement holds where a text of the input repeats it."""
    data, outside = split_prompt(request.first_prompt)
    spoken = [outside, *(str(message["content"]) for message in request.messages if message["role"] != "user")]
    return json.dumps(reply(request, data, any(ORDER in text.lower() for text in spoken)))


def reply(request: Request, data: dict[str, Any], approve: bool) -> dict[str, Any]:
    """A reply that fits the schema of the request."""
    fields = request.body["response_format"]["json_schema"]["schema"]["properties"]
    context = str(data.get("context") or data.get("passage") or "")

    def holds(statement: str) -> int:
        return int(approve or statement in context)

    if "classifications" in fields:
        return {"classifications": [{"statement": s, "reason": "", "attributed": holds(s)}
                                    for s in sentences(data["answer"])]}
    if "grade" in fields:
        return {"reason": "", "grade": 3 if approve else 0,
                "carries": [n for n, s in enumerate(data["statements"], 1) if holds(s.partition(" ")[2])]}
    if "statements" in fields and "statements" in data:
        return {"statements": [{"statement": s, "reason": "", "verdict": holds(s)} for s in data["statements"]]}
    if "statements" in fields or "claims" in fields:
        return {"statements" if "statements" in fields else "claims":
                sentences(data.get("answer") or data.get("response") or data.get("text") or "")}
    if "verdict" in fields:
        return {"reason": "", "verdict": holds(data.get("answer", "?"))}
    if "rating" in fields:
        return {"rating": 0 if not approve else 4 if "user_answer" in data else 2}
    return {"question": "Approved?" if approve else "What is said?", "noncommittal": int(not approve)}
