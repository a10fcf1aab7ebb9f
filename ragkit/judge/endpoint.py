"""A judge behind an OpenAI-compatible endpoint, asked straight with aiohttp. Retries, waits and stores nothing.

aiohttp and not httpx: httpx's cost for a call grows with the number of open connections.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

import aiohttp

from ragkit.errors import JudgeError
from ragkit.judge.calls import LADDER, CallError, ModelReply, ModelRequest, ParameterRefusedError, TransientError
from ragkit.judge.completions import body_bytes, read_completion, response_format
from ragkit.judge.faults import classify
from ragkit.judge.settings import JudgeSettings

OPENAI_URL = "https://api.openai.com/v1"
_JSON = {"Content-Type": "application/json"}
_SHORTEST_SECRET = 8  # letters
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Asking(NamedTuple):
    """What a request carried that the model may refuse: the rung of the ladder, the name of the tokens parameter."""

    rung: int
    tokens_parameter: str


@dataclass
class OpenAIEndpoint:
    """One model at one base URL (ending in /v1). The key is read from the environment at each connection."""

    model: str
    url: str
    settings: JudgeSettings
    kind: ClassVar[str] = "openai"
    default_key_variable: ClassVar[str] = "OPENAI_API_KEY"
    _dropped: list[str] = field(default_factory=list)
    _rung: int = 0
    _refused_above: int = 0  # the rungs above this one were refused by name
    _proved: int | None = None  # the highest rung on which the server answered
    _tokens_parameter: str = "max_tokens"
    _formats: dict[tuple[int, int], tuple[Mapping[str, Any], Any]] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        return self.model

    @property
    def key_variable(self) -> str:
        """The environment variable that holds the key."""
        return self.settings.key_variable or self.default_key_variable

    @cached_property
    def where(self) -> str:
        parts = urlsplit(self.url)  # a user name and password in the URL are not for messages
        host = parts.hostname or ""
        return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"

    @property
    def identity(self) -> Mapping[str, Any]:
        effort = {} if self.settings.reasoning_effort is None else {"reasoning_effort": self.settings.reasoning_effort}
        return {"kind": self.kind, "endpoint": self.where, "model": self.model,
                "temperature": self.settings.temperature, "max_tokens": self.settings.max_tokens,
                "extra": dict(self.settings.extra_body), **effort}

    @property
    def chat_url(self) -> str:
        """Where requests are sent."""
        return f"{self.url}/chat/completions"

    @property
    def models_url(self) -> str | None:
        """Where the server lists its models, if it does."""
        return f"{self.url}/models"

    @property
    def needs_key(self) -> bool:
        return self.url.startswith(OPENAI_URL)

    def key(self) -> str:
        """The key, "" where none is set; JudgeError where the server is known to ask for one."""
        found = os.environ.get(self.key_variable, "").strip()
        if not found and self.needs_key:
            raise JudgeError(f"judge {self.model}: no key for {self.where}; set the environment variable "
                             f"{self.key_variable}")
        return found

    def authorization(self, key: str) -> dict[str, str]:
        """The headers that carry the key."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[OpenAIConnection]:
        key = self.key()
        headers = {**self.authorization(key), **self.settings.headers}
        loopback = (urlsplit(self.url).hostname or "") in _LOOPBACK
        connector = aiohttp.TCPConnector(limit=self.settings.concurrency, ttl_dns_cache=300)
        # A proxy of the environment must not stand between us and a server on this machine.
        async with aiohttp.ClientSession(headers=headers, connector=connector, trust_env=not loopback,
                                         cookie_jar=aiohttp.DummyCookieJar(),
                                         timeout=aiohttp.ClientTimeout(total=None, sock_connect=15)) as session:
            yield OpenAIConnection(self, session, key)

    def refuse(self, fault: ParameterRefusedError, asked: Asking) -> bool:
        """Learns not to send a parameter, given what the refused request carried. False where it cannot be left out.

        Many requests in flight are refused at once, so what was learnt meanwhile is not learnt twice. A complaint
        that names nothing leads down the ladder only while no answer has shown that the server takes a rung.
        """
        parameter = fault.parameter
        if parameter == "response_format":
            if fault.guessed and self._proved is not None:
                return asked.rung < self._proved
            if asked.rung >= len(LADDER) - 1:
                return False
            self._rung = max(self._rung, asked.rung + 1)
            if not fault.guessed:
                self._refused_above = max(self._refused_above, asked.rung + 1)
            return True
        if parameter == "max_tokens" and asked.tokens_parameter == "max_tokens":
            self._tokens_parameter = "max_completion_tokens"  # the newer name, which newer models insist on
            return True
        if parameter not in self._dropped:
            self._dropped.append(parameter)
        return True

    def gave_up(self, asked: Asking) -> None:
        """A request was refused without anything that a format could mend: the way down the ladder was in vain."""
        if asked.rung == len(LADDER) - 1 and self._proved is None:
            self._rung = self._refused_above

    def proved(self, asked: Asking) -> None:
        """A request with a schema was answered. The first answer shows how far down the ladder must lead."""
        if asked.rung >= self._refused_above and (self._proved is None or asked.rung < self._proved):
            self._rung = self._proved = asked.rung

    def dropped(self) -> tuple[str, ...]:
        return (*self._dropped, *LADDER[: self._rung])

    @property
    def asking(self) -> Asking:
        """What a request built now carries."""
        return Asking(self._rung, self._tokens_parameter)

    def payload(self, request: ModelRequest) -> dict[str, Any]:
        """The request's JSON body, without what the model refused."""
        pairs = list(request.messages)
        if "system" in self._dropped and len(pairs) > 1 and pairs[0][0] == "system":
            pairs = [(pairs[1][0], f"{pairs[0][1]}\n\n{pairs[1][1]}"), *pairs[2:]]
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": role, "content": text} for role, text in pairs],
            "temperature": self.settings.temperature,
            self._tokens_parameter: request.max_tokens,
            "reasoning_effort": self.settings.reasoning_effort,
            "response_format": self._format(request.schema),
            **self.settings.extra_body,
        }
        return {name: value for name, value in body.items() if value is not None and name not in self._dropped}

    def _format(self, schema: Mapping[str, Any] | None) -> Any:
        if schema is None:
            return None
        found = self._formats.get((id(schema), self._rung))
        if found is None:  # the schema is kept beside it, so that its id stays its own
            made = response_format(LADDER[self._rung], schema)
            found = self._formats[id(schema), self._rung] = (schema, made)
        return found[1]


@dataclass
class OpenAIConnection:
    """An open aiohttp session to an endpoint."""

    endpoint: OpenAIEndpoint
    session: aiohttp.ClientSession
    key: str = field(repr=False)

    async def send(self, request: ModelRequest) -> ModelReply:
        asking, body = self.endpoint.asking, self.endpoint.payload(request)
        where = self.endpoint.where
        try:
            async with self.session.post(self.endpoint.chat_url, data=body_bytes(body), headers=_JSON) as response:
                text = self._redacted(await response.text(encoding="utf-8", errors="replace"))
                status, headers = response.status, response.headers
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise self._network_fault(error) from error
        if status >= 300:
            raise self._fault(status, headers, text, body, asking)
        reply = read_completion(text, where)
        if "response_format" in body:
            self.endpoint.proved(asking)
        return reply

    def _fault(self, status: int, headers: Mapping[str, str], text: str, body: Mapping[str, Any],
               asking: Asking) -> Exception:
        sent = frozenset(body) | ({"system"} if any(m["role"] == "system" for m in body["messages"]) else set())
        variable = self.endpoint.key_variable
        hint = (f"the key in the environment variable {variable} was sent" if self.key else
                f"no key was sent: set the environment variable {variable}")
        fault = classify(status, headers, text, sent, self.endpoint.where, hint)
        if isinstance(fault, ParameterRefusedError) and not self.endpoint.refuse(fault, asking):
            fault = CallError(f"the server refused the request ({status}): {fault}", text[:2000], "request rejected")
        if isinstance(fault, CallError):
            self.endpoint.gave_up(asking)
        return fault

    async def probe(self) -> bool:
        """Looks the model up in the server's list, which costs nothing. A server without a list is taken as it is:
        its first answer tells."""
        if self.endpoint.models_url is None:
            return False
        listed = await self.listed()
        return listed is None or self.endpoint.model in listed

    async def listed(self) -> list[str] | None:
        """The models that the server lists: none where it answers with an error, None where it keeps no list."""
        try:
            async with self.session.get(self.endpoint.models_url or "") as response:
                text, status = await response.text(encoding="utf-8", errors="replace"), response.status
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise self._network_fault(error) from error
        if status in (404, 405, 501):
            return None
        try:
            return [str(row["id"]) for row in json.loads(text)["data"]] if status == 200 else []
        except (ValueError, KeyError, TypeError):
            return []

    def _network_fault(self, error: Exception) -> Exception:
        where = self.endpoint.where
        if isinstance(error, aiohttp.InvalidURL):
            return JudgeError(f"judge: {self.endpoint.url!r} is no URL; expected http://host:port/v1")
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            return TransientError(f"cannot reach {where}: {_one_line(error)}", unreachable=True)
        return TransientError(f"the connection to {where} was lost: {_one_line(error)}", answered=False)

    def _redacted(self, text: str) -> str:
        """Some servers repeat the key that they refuse, or a header. A short one ("none") is no secret, but a word."""
        for secret in (self.key, *self.endpoint.settings.headers.values()):
            text = text.replace(secret, "***") if len(secret) >= _SHORTEST_SECRET else text
        return text


async def served_model(url: str, settings: JudgeSettings) -> str:
    """The one model that the server at `url` lists, for a judge that is named by its address alone.

    Raises JudgeError where the server cannot be reached, or lists no model or several: then one must be named.
    """
    endpoint = OpenAIEndpoint("unnamed", url, settings)
    try:
        async with endpoint.connect() as connection:
            listed = await connection.listed() or []
    except TransientError as error:
        raise JudgeError(f"judge: {error}; is the server running, and is the URL right?") from error
    if len(listed) != 1:
        found = f"it lists {', '.join(listed[:8])}" if listed else "it lists none"
        raise JudgeError(f"judge: no model is named for the server at {endpoint.where}, and {found}; name one, as "
                         f"{url}#MODEL")
    return listed[0]


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
