"""What an error answer of a model server means."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from ragkit.errors import JudgeError
from ragkit.judge.calls import CallError, ParameterRefusedError, RateLimitError, TransientError
from ragkit.judge.faults import TOO_LONG, classify, retry_after

SENT = frozenset({"model", "messages", "temperature", "max_tokens", "response_format", "system"})


def openai(message: str, code: str | None = None, param: str | None = None) -> str:
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "code": code, "param": param}})


@pytest.mark.parametrize(("status", "body", "kind", "part"), [
    (429, '{"error": {"code": "rate_limit_exceeded"}}', RateLimitError, "rate limited"),
    (429, openai("You exceeded your current quota", "insufficient_quota"), JudgeError, "exceeded your current quota"),
    (402, openai("Insufficient credits"), JudgeError, "Insufficient credits"),
    (400, openai("Your credit balance is too low to access the API"), JudgeError, "credit balance"),
    (401, openai("Incorrect API key provided"), JudgeError, "the key was refused"),
    (404, openai("The model `x` does not exist", "model_not_found"), JudgeError, "no such model"),
    (400, openai("invalid model name"), JudgeError, "no such model"),
    (400, openai("This model's maximum context length is 4096", "context_length_exceeded"), CallError, TOO_LONG),
    (400, '{"error":{"message":"the request exceeds the available context size"}}', CallError, TOO_LONG),
    (413, "payload", CallError, TOO_LONG),
    (500, "boom", TransientError, "server error 500: boom"),
    (503, '{"detail": "overloaded"}', TransientError, "503"),
    (529, "{}", TransientError, "529"),
    (408, "", TransientError, "408"),
])
def test_meaning_by_status_and_message(status: int, body: str, kind: type[Exception], part: str) -> None:
    found = classify(status, {}, body, SENT, "http://host/v1")
    assert type(found) is kind
    assert part in str(found)
    assert "\n" not in str(found)


@pytest.mark.parametrize(("status", "body", "parameter"), [
    (400, openai("Unsupported value: 'temperature' does not support 0 with this model.", param="temperature"),
     "temperature"),
    (400, openai("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
                 "instead.", param="max_tokens"), "max_tokens"),
    (400, openai("`temperature` is deprecated for this model"), "temperature"),
    (400, openai("Invalid parameter: 'response_format' of type 'json_schema' is not supported"), "response_format"),
    (422, '{"detail": "json_schema is not available"}', "response_format"),
    (500, "grammar", None),
    (501, '{"error": "structured output is not implemented"}', "response_format"),
    (400, openai("System role not supported"), "system"),
    (400, openai("Bad Request"), "response_format"),  # unnamed: ask with less
])
def test_a_refused_parameter_is_named(status: int, body: str, parameter: str | None) -> None:
    found = classify(status, {}, body, SENT, "http://host/v1")
    assert (found.parameter if isinstance(found, ParameterRefusedError) else None) == parameter


def test_what_was_not_sent_cannot_be_refused() -> None:
    body = openai("unknown parameter temperature", param="temperature")
    found = classify(400, {}, body, frozenset({"messages"}), "h")
    assert type(found) is CallError


def test_retry_after_in_all_its_forms() -> None:
    now = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
    assert retry_after({"Retry-After": "Mon, 30 Nov 2026 12:00:07 GMT"}, now) == 7.0
    assert retry_after({"Retry-After": "Mon, 30 Nov 2026 11:00:00 GMT"}, now) == 0.0
    assert retry_after({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert retry_after({"Retry-After": "soon"}) is None
