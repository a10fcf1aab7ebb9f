"""What an HTTP error of a model server means: pure reading of status, headers and message. Waits and retries nothing.

Servers agree on little beyond the status, so the message is read too; patterns are of OpenAI, Azure, llama.cpp, vLLM,
Ollama, Gemini and the other providers behind LangChain.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from ragkit.errors import JudgeError
from ragkit.judge.calls import CallError, ParameterRefusedError, RateLimitError, TransientError

TOO_LONG = "too long for the judge"
TRUNCATED = ("length", "max_tokens", "max_output_tokens")
"""Finish reasons of a reply that ran out of room; every other one is taken as finished."""
REFUSED = ("content_filter", "content_filtered", "guardrail_intervened", "safety", "recitation", "blocklist",
           "prohibited_content", "spii", "refusal")
"""Finish reasons of a reply that was withheld."""

_QUOTA = re.compile(r"insufficient[_ ](quota|balance|funds)|exceeded your current quota|credit balance is too low|"
                    r"quota (is|has been) (used up|exhausted|exceeded)|billing[_ ](hard[_ ])?limit|out of credits",
                    re.I)
_PASSES = re.compile(r"PerMinute|per minute|retryDelay", re.I)  # Gemini calls a limit a minute a quota too
_LASTS = re.compile(r"PerDay|per day", re.I)
_LONG = re.compile(r"context[_ ]length|context (window|size)|maximum context|too many (input )?tokens|"
                   r"(prompt|input|request)( is)? too (long|large)|exceeds? the (available|maximum|model)", re.I)
_TOO_LARGE = re.compile(r"request too large", re.I)  # larger than a whole minute's limit: it would wait for ever
_WITHHELD = re.compile(r"content_filter|content[_ ](management )?policy|ResponsibleAI|content_policy_violation|"
                       r"safety system", re.I)
_FORMAT = re.compile(r"response_format|json_schema|json_object|structured output|json mode|guided|grammar", re.I)
_SYSTEM = re.compile(r"system (role|message|prompt|instruction)s?\b.{0,40}(not|n't|un)[ -]?support|"
                     r"(not|n't) support.{0,30}system (role|message|prompt)", re.I)
_REFUSED = re.compile(r"not[ _]support|unsupported|does ?n.t support|unknown|unrecogni[sz]ed|unexpected|not permitted|"
                      r"not allowed|invalid|extra|deprecated|only the default|cannot be", re.I)
_PARAMETERS = ("temperature", "max_completion_tokens", "max_tokens", "top_p", "seed", "presence_penalty",
               "reasoning_effort")
_NEEDED = ("model", "messages", "system", "response_format")  # not parameters that can simply be left out
_UNFIT_STATUS = (400, 404, 422, 501)
_WAIT = re.compile(r"(?:try again in|retry (?:after|in)|retryDelay\W{1,5})\s*"
                   r"((?:\d+(?:\.\d+)?\s*(?:ms|milliseconds?|h(?:ours?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)\b\s*)+|"
                   r"(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?s)", re.I)
_UNITS = {"ms": 0.001, "mi": 60.0, "m": 60.0, "h": 3600.0, "s": 1.0}


def server_message(body: str, limit: int = 300) -> str:
    """The message of an error body, whichever form it has, in one line.

    >>> server_message('{"error": {"code": "x", "message": "Your quota\\\\nis used up"}}')
    'Your quota is used up'
    """
    inner = _error(body)
    text: Any = (inner.get("message") or inner.get("code") or inner) if isinstance(inner, dict) else inner
    line = " ".join((text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)).split())
    return line if len(line) <= limit else line[:limit] + " ..."


def _error(body: str) -> Any:
    """What a body says of its error, without the wrapping; the body itself where it is no JSON."""
    try:
        value = json.loads(body)
    except ValueError:
        return body
    if isinstance(value, list) and len(value) == 1:  # Gemini
        (value,) = value
    return value.get("error", value) if isinstance(value, dict) else body


def _error_field(body: str, name: str) -> str:
    inner = _error(body)
    return str(inner.get(name) or "") if isinstance(inner, dict) else ""


def retry_after(headers: Mapping[str, str], now: datetime | None = None, message: str = "") -> float | None:
    """Seconds to wait, from Retry-After (seconds or a date), retry-after-ms or the message; None where none says it.

    >>> retry_after({"retry-after": "2"}), retry_after({"Retry-After-Ms": "1500"}), retry_after({})
    (2.0, 1.5, None)
    >>> retry_after({}, message="Limit 200, used 200. Please try again in 1m2.5s.")
    62.5
    """
    lower = {name.lower(): value for name, value in headers.items()}
    try:
        if "retry-after-ms" in lower:
            return max(0.0, float(lower["retry-after-ms"]) / 1000)
        value = lower["retry-after"].strip()
        if re.fullmatch(r"\d+(\.\d+)?", value):
            return float(value)
        then = parsedate_to_datetime(value)
        then = then if then.tzinfo else then.replace(tzinfo=UTC)
        return max(0.0, (then - (now or datetime.now(UTC))).total_seconds())
    except (KeyError, ValueError):
        return _told(message)


def _told(message: str) -> float | None:
    found = _WAIT.search(message)
    if found is None:
        return None
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*(ms|mi|[hms])", found.group(1), re.I)
    return sum(float(number) * _UNITS[unit.lower()] for number, unit in parts)


def classify(status: int, headers: Mapping[str, str], body: str, sent: frozenset[str], where: str,
             key_hint: str = "check the environment variable of its key") -> Exception:
    """The exception that an error answer stands for. `sent` are the parameter names that the request carried.

    JudgeError stops the run (wrong key, unknown model, quota used up); the others concern one call.
    """
    message = server_message(body)
    code = f"{_error_field(body, 'code')} {_error_field(body, 'type')}"
    text = f"{code} {body[:4000]}"
    passing = status == 429 and _PASSES.search(text) is not None and _LASTS.search(text) is None
    if status == 402 or (status in (400, 403, 429) and _QUOTA.search(text) and not passing):
        return JudgeError(f"judge at {where}: the quota is used up, the server says: {message}; "
                          "raise the limit or name another judge, then run the same command again")
    if status == 413 or (status in _UNFIT_STATUS and (_LONG.search(code) or _LONG.search(message))) or (
            status == 429 and _TOO_LARGE.search(message)):
        return CallError(f"{TOO_LONG}: {message}", body[:2000], "too long for the judge")
    if status == 429:
        return RateLimitError(f"rate limited: {message}", retry_after(headers, message=body[:4000]))
    if status in (400, 403) and _WITHHELD.search(text):
        return CallError(f"the judge refused: {message}", body[:2000], "refused by the judge")
    if status in (401, 403):
        return JudgeError(f"judge at {where}: the key was refused ({status}): {message}; {key_hint}")
    if status in (408, 409, 425) or status >= 500:
        refused = _refused_parameter(message, body, sent) if status == 501 else None
        return refused or TransientError(f"server error {status}: {message}")
    if status in _UNFIT_STATUS:
        refused = _refused_parameter(message, body, sent)
        if refused is not None:
            return refused
        if status == 404 or re.search(r"model.{0,60}(not found|does not exist|unknown)|model_not_found|unknown model|"
                                      r"invalid model", f"{code} {message}", re.I):
            return JudgeError(f"judge at {where}: no such model or address ({status}): {message}; "
                              "check the name after --judge and the URL, which usually ends in /v1")
        if "response_format" in sent:
            return ParameterRefusedError("response_format", message, guessed=True)
    return CallError(f"the server refused the request ({status}): {message}", body[:2000], "request rejected")


def _refused_parameter(message: str, body: str, sent: frozenset[str]) -> ParameterRefusedError | None:
    named = _error_field(body, "param").split(".")[0]
    if named in sent and named not in ("messages", "model"):
        return ParameterRefusedError(named, message)
    if "response_format" in sent and _FORMAT.search(message):
        return ParameterRefusedError("response_format", message)
    if "system" in sent and _SYSTEM.search(message):
        return ParameterRefusedError("system", message)
    if _REFUSED.search(message):
        for name in _PARAMETERS:
            if name in sent and re.search(rf"\b{name}\b", message):
                return ParameterRefusedError(name, message)
        for name in sorted(sent - {*_PARAMETERS, *_NEEDED}):  # the user's own; quoted, since "user" is a word too
            if re.search(rf"""["'`]{re.escape(name)}["'`]""", message):
                return ParameterRefusedError(name, message)
    return None
