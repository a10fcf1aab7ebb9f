"""What an HTTP error of a model server means: pure reading of status, headers and message. Waits and retries nothing.

Servers agree on little beyond the status, so the message is read too; patterns are of OpenAI, Azure, llama.cpp, vLLM,
Ollama and the providers behind LangChain.
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
_QUOTA = re.compile(r"insufficient[_ ](quota|balance|funds)|exceeded your current quota|credit balance is too low|"
                    r"quota (is|has been) (used up|exhausted|exceeded)|billing[_ ](hard[_ ])?limit|out of credits",
                    re.I)
_LONG = re.compile(r"context[_ ]length|context (window|size)|maximum context|too many (input )?tokens|"
                   r"(prompt|input|request)( is)? too (long|large)|exceeds? the (available|maximum|model)", re.I)
_FORMAT = re.compile(r"response_format|json_schema|json_object|structured output|json mode|guided|grammar", re.I)
_SYSTEM = re.compile(r"system (role|message|prompt|instruction)s?\b.{0,40}(not|n't|un)[ -]?support|"
                     r"(not|n't) support.{0,30}system (role|message|prompt)", re.I)
_REFUSED = re.compile(r"not[ _]support|unsupported|does ?n.t support|unknown|unrecogni[sz]ed|unexpected|not permitted|"
                      r"not allowed|invalid|extra|deprecated|only the default|cannot be", re.I)
_PARAMETERS = ("temperature", "max_completion_tokens", "max_tokens", "top_p", "seed", "presence_penalty")
_UNFIT_STATUS = (400, 404, 422, 501)


def server_message(body: str, limit: int = 300) -> str:
    """The message of an error body, whichever form it has, in one line.

    >>> server_message('{"error": {"code": "x", "message": "Your quota\\\\nis used up"}}')
    'Your quota is used up'
    """
    text: Any = body
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    if isinstance(value, dict):
        inner = value.get("error", value)
        text = inner if not isinstance(inner, dict) else (inner.get("message") or inner.get("code") or inner)
        text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    line = " ".join(str(text).split())
    return line if len(line) <= limit else line[:limit] + " ..."


def _error_field(body: str, name: str) -> str:
    try:
        value = json.loads(body)
    except ValueError:
        return ""
    inner = value.get("error", value) if isinstance(value, dict) else {}
    return str(inner.get(name) or "") if isinstance(inner, dict) else ""


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds to wait, from Retry-After (seconds or a date) or retry-after-ms; None where neither can be read.

    >>> retry_after({"retry-after": "2"}), retry_after({"Retry-After-Ms": "1500"}), retry_after({})
    (2.0, 1.5, None)
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
        return None


def classify(status: int, headers: Mapping[str, str], body: str, sent: frozenset[str], where: str,
             key_hint: str = "check the environment variable of its key") -> Exception:
    """The exception that an error answer stands for. `sent` are the parameter names that the request carried.

    JudgeError stops the run (wrong key, unknown model, quota used up); the others concern one call.
    """
    message = server_message(body)
    code = f"{_error_field(body, 'code')} {_error_field(body, 'type')}"
    if status == 402 or (status in (400, 403, 429) and _QUOTA.search(f"{code} {body[:4000]}")):
        return JudgeError(f"judge at {where}: the quota is used up, the server says: {message}; "
                          "raise the limit or name another judge, then run the same command again")
    if status == 429:
        return RateLimitError(f"rate limited: {message}", retry_after(headers))
    if status == 413 or (status in _UNFIT_STATUS and (_LONG.search(code) or _LONG.search(message))):
        return CallError(f"{TOO_LONG}: {message}", raw=body[:2000])
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
        if "response_format" in sent:  # an unnamed complaint: asking with less may be what the server wants
            return ParameterRefusedError("response_format", message)
    return CallError(f"the server refused the request ({status}): {message}", raw=body[:2000])


def _refused_parameter(message: str, body: str, sent: frozenset[str]) -> ParameterRefusedError | None:
    named = _error_field(body, "param").split(".")[0]
    if named in sent and named != "messages":
        return ParameterRefusedError(named, message)
    if "response_format" in sent and _FORMAT.search(message):
        return ParameterRefusedError("response_format", message)
    if "system" in sent and _SYSTEM.search(message):
        return ParameterRefusedError("system", message)
    if _REFUSED.search(message):
        for name in _PARAMETERS:
            if name in sent and re.search(rf"\b{name}\b", message):
                return ParameterRefusedError(name, message)
    return None
