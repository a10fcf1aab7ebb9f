"""The JSON of chat completions: what a request asks for, and what came back. Sends nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from ragkit.judge.calls import ModelReply, RateLimitError, Rung, TransientError
from ragkit.judge.faults import REFUSED, TRUNCATED, classify, server_message


def body_bytes(body: Mapping[str, Any]) -> bytes:
    """A request's body as JSON; the fast writer knows fewer types, and takes no lone surrogate.

    >>> body_bytes({"model": "m", "temperature": 0.0})
    b'{"model":"m","temperature":0.0}'
    """
    try:
        return to_json(body, inf_nan_mode="constants")
    except ValueError:
        return json.dumps(body).encode()


def read_completion(text: str, where: str) -> ModelReply:
    """The reply in a chat.completion body; a body that is none is a fault worth another try."""
    try:
        value = json.loads(text)
        choice = value["choices"][0]
        message = choice["message"]
        content = message.get("content")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise _no_completion(text, where) from error
    if choice.get("error"):  # a router whose provider broke off in the middle
        raise TransientError(f"{where} answered with an error: {server_message(json.dumps(choice), 120)}")
    if isinstance(content, list):  # parts, as some servers send them
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    usage = value.get("usage") or {}
    finish = str(choice.get("finish_reason") or "").lower()
    refusal = message.get("refusal") or (finish if finish in REFUSED else None)
    return ModelReply(text=str(content or ""), truncated=finish in TRUNCATED, refusal=refusal,
                      tokens_in=_count(usage.get("prompt_tokens")), tokens_out=_count(usage.get("completion_tokens")))


def _no_completion(text: str, where: str) -> Exception:
    """Routers answer 200 with the provider's error inside, and its status as the code."""
    try:
        code = json.loads(text)["error"]["code"]
    except (ValueError, KeyError, TypeError):
        code = None
    if isinstance(code, int) and 400 <= code < 600:
        found = classify(code, {}, text, frozenset(), where)
        if isinstance(found, RateLimitError | TransientError):
            return found
    what = server_message(text, 120) or "an empty body"
    return TransientError(f"{where} answered 200 with what is no chat completion: {what}")


def response_format(rung: Rung, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The request's response_format on a rung of the ladder; None where the prompt alone asks.

    >>> response_format("json_object", {})
    {'type': 'json_object'}
    """
    if rung == "prompt":
        return None
    if rung == "json_schema":
        wanted = {"name": str(schema.get("title", "reply")), "strict": True, "schema": strict_schema(schema)}
        return {"type": "json_schema", "json_schema": wanted}
    return {"type": "json_object", **({"schema": strict_schema(schema)} if rung == "json_object_schema" else {})}


def strict_schema(schema: Any) -> Any:
    """The schema as OpenAI's strict mode wants it: no further properties, all of them required, no defaults."""
    if isinstance(schema, list):
        return [strict_schema(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {name: strict_schema(value) for name, value in schema.items() if name != "default"}
    if made.get("type") == "object" and "properties" in made:
        made["additionalProperties"] = False
        made["required"] = list(made["properties"])
    return made


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
