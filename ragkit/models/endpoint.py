"""One JSON request over HTTP with retries, for the model endpoints of our own pipelines. The judge has its gateway."""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt

from ragkit.errors import DataError, RagkitError
from ragkit.models.vendors import without_user

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SHORTEST_SECRET = 8  # letters: a shorter one ("none") is no secret, but a word
_PASSING = (408, 409, 425, 429, 500, 502, 503, 504)  # what another try may mend


class _TryAgainError(Exception):
    def __init__(self, text: str, after: float | None = None) -> None:
        super().__init__(text)
        self.after = after


def _wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    after = error.after if isinstance(error, _TryAgainError) else None
    return min(60.0, after if after is not None else 0.5 * 2.0 ** (state.attempt_number - 1))


def bearer(key_variable: str | None) -> dict[str, str]:
    """The Authorization header from the environment variable of this name; empty where it is not set.

    >>> bearer(None)
    {}
    """
    key = os.environ.get(key_variable, "") if key_variable else ""
    return {"Authorization": f"Bearer {key}"} if key else {}


def post_json(url: str, payload: Mapping[str, Any], headers: Mapping[str, str] | None = None, *,
              timeout: float = 60.0, attempts: int = 4) -> Any:
    """POST `payload` as JSON and return the reply as plain data.

    Time-outs, broken connections and the statuses 408, 409, 425, 429, 500, 502, 503 and 504 are tried again (`attempts`
    in all; Retry-After is kept, 60 s at most). Whatever stays wrong is a RagkitError of one line that never holds what
    `headers` say, also where the server repeats it; a URL that is not http(s) or holds a user name is a DataError.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DataError(f"endpoint: expected an http(s) URL, got {without_user(url)!r}")
    if parts.username is not None:
        raise DataError(f"endpoint {without_user(url)}: expected a URL without a user name and a password; the key "
                        "belongs into an environment variable")
    given = dict(headers or {})
    body = json.dumps(payload, allow_nan=False).encode("ascii")
    # A proxy meant for the outer world must not be asked for a server on this very machine.
    handlers = [urllib.request.ProxyHandler({})] if parts.hostname in _LOOPBACK else []
    opener = urllib.request.build_opener(*handlers)
    retrying = Retrying(stop=stop_after_attempt(attempts), wait=_wait, retry=retry_if_exception_type(_TryAgainError),
                        reraise=True)

    def once() -> Any:
        request = urllib.request.Request(url, data=body, method="POST")  # noqa: S310  (the scheme is checked above)
        for name, value in {"Content-Type": "application/json", **given}.items():
            request.add_header(name, value)
        try:
            with opener.open(request, timeout=timeout) as reply:
                return json.loads(reply.read().decode("utf-8"))
        except urllib.error.HTTPError as error:
            text = f"{url}: HTTP {error.code} {_without_secrets(_one_line(error.read(2000)), given)}"
            if error.code in _PASSING:
                raise _TryAgainError(text, _seconds(error.headers.get("Retry-After"))) from error
            raise RagkitError(text) from error
        except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
            raise _TryAgainError(f"{url}: {error or type(error).__name__}") from error
        except ValueError as error:
            raise RagkitError(f"{url}: expected a JSON reply, got something else ({error})") from error

    try:
        return retrying(once)
    except _TryAgainError as error:
        raise RagkitError(f"{error} (tried {attempts} times)") from error


def _seconds(value: str | None) -> float | None:
    try:
        return max(0.0, float(value)) if value else None
    except ValueError:
        return None  # a date: the usual back-off will do


def _without_secrets(text: str, headers: Mapping[str, str]) -> str:
    """Some servers repeat the key that they refuse, or a header."""
    for value in headers.values():
        secret = value.removeprefix("Bearer ")
        text = text.replace(secret, "***") if len(secret) >= _SHORTEST_SECRET else text
    return text


def _one_line(data: bytes) -> str:
    return " ".join(data.decode("utf-8", "replace").split())[:300]
