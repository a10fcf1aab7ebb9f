"""A judge behind an OpenAI-compatible endpoint, asked straight with aiohttp. Retries, waits and stores nothing.

aiohttp and not httpx: httpx's cost for a call grows with the number of open connections.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from ragkit.errors import JudgeError
from ragkit.judge.calls import LADDER, CallError, ModelReply, ModelRequest, ParameterRefusedError, Rung, TransientError
from ragkit.judge.faults import classify, server_message
from ragkit.judge.settings import JudgeSettings

OPENAI_URL = "https://api.openai.com/v1"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_TRUNCATED = ("length", "max_tokens", "max_output_tokens")  # any other finish reason is taken as finished


@dataclass
class OpenAIEndpoint:
    """One model at one base URL (ending in /v1). The key is read from the environment at each connection."""

    model: str
    url: str
    settings: JudgeSettings
    _dropped: list[str] = field(default_factory=list)
    _rung: int = 0
    _tokens_parameter: str = "max_tokens"

    @property
    def name(self) -> str:
        return self.model

    @property
    def key_variable(self) -> str:
        """The environment variable that holds the key."""
        return self.settings.key_variable or "OPENAI_API_KEY"

    @property
    def where(self) -> str:
        parts = urlsplit(self.url)  # a user name and password in the URL are not for messages
        host = parts.hostname or ""
        return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"kind": "openai", "endpoint": self.where, "model": self.model,
                "temperature": self.settings.temperature, "max_tokens": self.settings.max_tokens,
                "extra": dict(self.settings.extra_body)}

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[OpenAIConnection]:
        key = os.environ.get(self.key_variable, "").strip()
        if not key and self.url.startswith(OPENAI_URL):
            raise JudgeError(f"judge {self.model}: no key for {self.where}; set the environment variable "
                             f"{self.key_variable}")
        headers = {**self.settings.headers, **({"Authorization": f"Bearer {key}"} if key else {})}
        loopback = (urlsplit(self.url).hostname or "") in _LOOPBACK
        connector = aiohttp.TCPConnector(limit=self.settings.concurrency, ttl_dns_cache=300)
        # A proxy of the environment must not stand between us and a server on this machine.
        async with aiohttp.ClientSession(headers=headers, connector=connector, trust_env=not loopback,
                                         timeout=aiohttp.ClientTimeout(total=None, sock_connect=15)) as session:
            yield OpenAIConnection(self, session, key)

    def refuse(self, parameter: str, rung: int, tokens_parameter: str) -> bool:
        """Learns not to send a parameter, given what the refused request carried. False where it cannot be left out.

        Many requests in flight are refused at once, so what was learnt meanwhile is not learnt twice.
        """
        if parameter == "response_format":
            if rung >= len(LADDER) - 1:
                return False
            self._rung = max(self._rung, rung + 1)
            return True
        if parameter == "max_tokens" and tokens_parameter == "max_tokens":
            self._tokens_parameter = "max_completion_tokens"  # the newer name, which newer models insist on
            return True
        if parameter not in self._dropped:
            self._dropped.append(parameter)
        return True

    def dropped(self) -> tuple[str, ...]:
        return (*self._dropped, *LADDER[: self._rung])

    @property
    def asking(self) -> tuple[int, str]:
        """What a request built now carries: the rung of the ladder and the name of the tokens parameter."""
        return self._rung, self._tokens_parameter

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
            **_response_format(LADDER[self._rung], request.schema),
            **self.settings.extra_body,
        }
        return {name: value for name, value in body.items() if value is not None and name not in self._dropped}


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
            async with self.session.post(f"{self.endpoint.url}/chat/completions", json=body) as response:
                text = self._redacted(await response.text(encoding="utf-8", errors="replace"))
                status, headers = response.status, response.headers
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise self._network_fault(error) from error
        if status >= 300:
            sent = frozenset(body) | ({"system"} if any(m["role"] == "system" for m in body["messages"]) else set())
            variable = self.endpoint.key_variable
            hint = (f"the key in the environment variable {variable} was sent" if self.key else
                    f"no key was sent: set the environment variable {variable}")
            fault = classify(status, headers, text, sent, where, hint)
            if isinstance(fault, ParameterRefusedError) and not self.endpoint.refuse(fault.parameter, *asking):
                raise CallError(f"the server refused the request ({status}): {fault}", raw=text[:2000])
            raise fault
        return read_completion(text, where)

    async def probe(self) -> bool:
        """Looks the model up in the server's list, which costs nothing. A server without a list is taken as it is:
        its first answer tells."""
        listed = await self.listed()
        return listed is None or self.endpoint.model in listed

    async def listed(self) -> list[str] | None:
        """The models that the server lists: none where it answers with an error, None where it keeps no list."""
        try:
            async with self.session.get(f"{self.endpoint.url}/models") as response:
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
        return TransientError(f"the connection to {where} was lost: {_one_line(error)}")

    def _redacted(self, text: str) -> str:
        return text.replace(self.key, "***") if self.key else text  # some servers repeat the key that they refuse


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


def read_completion(text: str, where: str) -> ModelReply:
    """The reply in a chat.completion body; a body that is none is a fault worth another try."""
    try:
        value = json.loads(text)
        choice = value["choices"][0]
        message = choice["message"]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        what = server_message(text, 120) or "an empty body"
        raise TransientError(f"{where} answered 200 with what is no chat completion: {what}") from error
    content = message.get("content")
    if isinstance(content, list):  # parts, as some servers send them
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    usage = value.get("usage") or {}
    finish = str(choice.get("finish_reason") or "")
    refusal = message.get("refusal") or ("content_filter" if finish == "content_filter" else None)
    return ModelReply(text=str(content or ""), truncated=finish.lower() in _TRUNCATED, refusal=refusal,
                      tokens_in=_count(usage.get("prompt_tokens")), tokens_out=_count(usage.get("completion_tokens")))


def strict_schema(schema: Any) -> Any:
    """The schema as OpenAI's strict mode wants it: no further properties, all of them required, no titles."""
    if isinstance(schema, list):
        return [strict_schema(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {name: strict_schema(value) for name, value in schema.items() if name not in ("default",)}
    if made.get("type") == "object" and "properties" in made:
        made["additionalProperties"] = False
        made["required"] = list(made["properties"])
    return made


def _response_format(rung: Rung, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    if schema is None or rung == "prompt":
        return {}
    if rung == "json_schema":
        wanted = {"name": str(schema.get("title", "reply")), "strict": True, "schema": strict_schema(schema)}
        return {"response_format": {"type": "json_schema", "json_schema": wanted}}
    extra = {"schema": strict_schema(schema)} if rung == "json_object_schema" else {}
    return {"response_format": {"type": "json_object", **extra}}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
