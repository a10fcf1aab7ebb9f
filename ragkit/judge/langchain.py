"""A judge over any LangChain chat model, asked with a plain `ainvoke`: nothing is injected that a provider may refuse.

Models are known by what they offer (`ainvoke`), so nothing of langchain is imported here.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from ragkit.errors import JudgeError
from ragkit.judge.calls import CallError, ModelReply, ModelRequest, ParameterRefusedError, TransientError
from ragkit.judge.faults import REFUSED, TRUNCATED, classify
from ragkit.judge.settings import JudgeSettings
from ragkit.models.vendors import model_name

_ROOM_FIELDS = ("max_tokens", "num_predict", "max_output_tokens")
_RATE_LIMIT = re.compile(r"rate.?limit|resource.?exhausted|too many requests|throttl", re.I)
_NO_KEY = re.compile(r"authenticat|api[_ ]?key|credentials?\b", re.I)
_NETWORK = re.compile(r"connect|timeout|timed out|event loop is closed|reset|disconnected|remoteprotocol|overloaded|"
                      r"unavailable|internal server", re.I)


@dataclass
class LangChainModel:
    """A chat model of LangChain. `fingerprint` tells it from others; parameters are the model's own fields."""

    model: Any
    fingerprint: str
    settings: JudgeSettings
    _dropped: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return model_name(self.model) or type(self.model).__name__

    @property
    def where(self) -> str:
        return type(self.model).__name__

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"kind": "langchain", "fingerprint": self.fingerprint}

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[LangChainModel]:
        try:
            yield self
        finally:
            await _let_go(self.model)

    def dropped(self) -> tuple[str, ...]:
        return tuple(self._dropped)

    async def probe(self) -> bool:
        return False  # LangChain has no question about a model that costs nothing

    async def send(self, request: ModelRequest) -> ModelReply:
        messages = list(request.messages)
        if "system" in self._dropped and len(messages) > 1 and messages[0][0] == "system":
            messages = [(messages[1][0], f"{messages[0][1]}\n\n{messages[1][1]}"), *messages[2:]]
        roles = {"user": "human", "assistant": "ai", "system": "system"}
        try:
            model = self._with_room(request.max_tokens)
            message = await model.ainvoke([(roles[role], text) for role, text in messages])
        except Exception as error:
            raise self._meaning(error, messages[0][0] == "system") from error
        return _reply(message)

    def _with_room(self, max_tokens: int) -> Any:
        """The model with so much more (or less) room than its own as the request has than the settings.

        Less room is a courtesy, so a model without a known field for it is asked as it is; more is needed: CallError.
        """
        factor = max_tokens / self.settings.max_tokens
        if factor == 1:
            return self.model
        for name in _ROOM_FIELDS:
            own = getattr(self.model, name, None)
            if isinstance(own, int) and own > 0:
                return self.model.model_copy(update={name: int(own * factor)})
        if factor < 1:
            return self.model
        raise CallError(f"the reply was truncated, and {type(self.model).__name__} has no known field for more room",
                        kind="truncated")

    def _meaning(self, error: Exception, system: bool) -> Exception:
        """The error of calls.py that a provider's exception stands for: by its status where it has one."""
        if isinstance(error, CallError | JudgeError):
            return error
        text = " ".join(str(error).split())
        named = f"{type(error).__name__}: {text[:300]}"
        status, response = _status(error)
        if status is None and _RATE_LIMIT.search(named):
            status = 429
        if status is None:
            if isinstance(error, OSError | TimeoutError) or _NETWORK.search(named):
                return TransientError(named, unreachable=re.search("connect", type(error).__name__, re.I) is not None)
            if _NO_KEY.search(named):
                return JudgeError(f"judge {self.name}: {named}; check the environment variable of its key")
            return CallError(named, text[:2000], "request rejected")
        body = getattr(response, "text", None)
        headers = dict(getattr(response, "headers", None) or {})
        sent = {"temperature"} if getattr(self.model, "temperature", None) is not None else set()
        sent |= {"system"} if system else set()
        body = body if isinstance(body, str) and body else text
        fault = classify(status, headers, body, frozenset(sent), self.where)
        if isinstance(fault, ParameterRefusedError):
            self._refuse(fault.parameter)
        return fault

    def _refuse(self, parameter: str) -> None:
        if parameter not in self._dropped:
            self._dropped.append(parameter)
        if parameter != "system":
            self.model = self.model.model_copy(update={parameter: None})


def _status(error: BaseException) -> tuple[int | None, Any]:
    """The HTTP status that an error, or what caused it, carries; and the response. Providers name it differently."""
    for one in causes(error):
        response = getattr(one, "response", None)
        found = [getattr(one, "status_code", None), getattr(one, "code", None), getattr(response, "status_code", None)]
        if isinstance(response, dict):  # boto
            found.append(response.get("ResponseMetadata", {}).get("HTTPStatusCode"))
        for status in found:
            if isinstance(status, int) and not isinstance(status, bool) and 300 <= status < 600:
                return status, response
    return None, None


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, then what caused it, and so on."""
    while error is not None:
        yield error
        error = error.__cause__


async def _let_go(model: Any) -> None:
    """Closes the idle connections that the model's HTTP client keeps.

    They belong to this event loop; the next run has another one, and a request over them would be sent and lost.
    """
    for name in ("root_async_client", "_async_client", "async_client"):
        client = getattr(getattr(model, name, None), "_client", None)
        pool = getattr(getattr(client, "_transport", None), "_pool", None)
        with suppress(Exception):  # other clients, other versions: then the next run tries again
            for connection in list(getattr(pool, "connections", ())):
                if connection.is_idle():
                    await connection.aclose()


def _reply(message: Any) -> ModelReply:
    content = getattr(message, "content", message)
    if isinstance(content, list):  # parts: text, reasoning, and others that are no answer
        content = "".join(part if isinstance(part, str) else str(part.get("text") or "") for part in content
                          if isinstance(part, str) or (isinstance(part, dict) and part.get("type") in (None, "text")))
    meta = getattr(message, "response_metadata", None) or {}
    blocked = (meta.get("prompt_feedback") or {}).get("block_reason") if not content else None  # Gemini
    finish = str(meta.get("finish_reason") or meta.get("stop_reason") or meta.get("done_reason") or "").lower()
    extra = getattr(message, "additional_kwargs", None) or {}
    usage = getattr(message, "usage_metadata", None) or {}
    refusal = extra.get("refusal") or (finish if finish in REFUSED else None) or (
        f"the prompt was blocked ({blocked})" if blocked else None)
    return ModelReply(text=str(content or ""), truncated=finish in TRUNCATED, refusal=refusal,
                      tokens_in=usage.get("input_tokens"), tokens_out=usage.get("output_tokens"))
