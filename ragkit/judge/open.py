"""From a judge's name to a gateway: which client asks it. Asks nothing yet."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

from ragkit.errors import JudgeError
from ragkit.judge.azure import azure_endpoint
from ragkit.judge.calls import Backend, Connection
from ragkit.judge.endpoint import OPENAI_URL, OpenAIEndpoint, served_model
from ragkit.judge.gateway import Gateway
from ragkit.judge.keys import digest
from ragkit.judge.langchain import LangChainModel
from ragkit.judge.providers import is_provider, load_provider_model
from ragkit.judge.settings import JudgeSettings

__all__ = ["JudgeSettings", "judge_at", "open_judge", "reopen_judge"]

_FORMS = "expected PROVIDER:MODEL, http://host:port/v1#MODEL, or a model's name with the URL of its server"


def open_judge(spec: Any, url: str | None = None, settings: JudgeSettings | None = None) -> Gateway:
    """The gateway to a judge. `await gateway.check()` tells whether it answers.

    `spec` is "openai:MODEL" or "azure_openai:DEPLOYMENT" (asked straight), "PROVIDER:MODEL" of langchain's
    init_chat_model (`url` is then that provider's address), "http://host/v1#MODEL", a model's name together with `url`
    (any OpenAI-compatible server), or a LangChain chat model itself. The key comes from the environment
    (`settings.key_variable`, by default the provider's own variable) and is never kept.
    Raises JudgeError for a spec that names no model, or where a provider's package or key is missing.

    >>> open_judge("http://127.0.0.1:8000/v1#m").name
    'm'
    """
    settings = settings or JudgeSettings()
    return Gateway(_backend(spec, url, settings), settings)


async def judge_at(spec: Any, url: str | None, settings: JudgeSettings) -> Gateway:
    """As `open_judge`; a judge that is named by its address alone is the one model that the server there lists."""
    if spec is None and url is not None:
        spec, url = (url, None) if "#" in url else (await served_model(normal_url(url), settings), url)
    return open_judge(spec, url, settings)


def reopen_judge(record: Mapping[str, str], settings: JudgeSettings) -> Gateway:
    """The judge of an earlier run, to read what it judged: {"name", "endpoint", "fingerprint"}. It is never asked.

    "language" is the one that its prompts were in, absent where they were ragas' own.
    """
    past = PastJudge(record["name"], record["endpoint"])
    return Gateway(past, replace(settings, frozen=True, language=record.get("language")), record["fingerprint"])


@dataclass(frozen=True)
class PastJudge:
    """Stands for a model that is not at hand any more, and need not be."""

    name: str
    where: str

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"kind": "past", "name": self.name, "endpoint": self.where}

    def connect(self) -> AbstractAsyncContextManager[Connection]:
        raise JudgeError(f"judge {self.name}: of an earlier run, and cannot be asked")

    def dropped(self) -> tuple[str, ...]:
        return ()


def _backend(spec: Any, url: str | None, settings: JudgeSettings) -> Backend:
    if hasattr(spec, "ainvoke"):
        if url:
            raise JudgeError("judge: a chat model knows its own address; give the URL only with a model's name")
        return LangChainModel(spec, model_fingerprint(spec), settings)
    if not isinstance(spec, str) or not spec.strip():
        where = f" for the server at {url}" if url else ""
        raise JudgeError(f"judge: no model is named{where}; {_FORMS}")
    spec = spec.strip()
    if re.match(r"https?://", spec):
        address, _, model = spec.partition("#")
        return _endpoint(model, url or address, settings)
    provider, colon, model = spec.partition(":")
    provider = provider.replace("-", "_")
    if provider == "azure_openai" and model:
        return azure_endpoint(model, url, settings)
    if url and (provider == "openai" or not (model and is_provider(provider))):
        return _endpoint(spec.removeprefix("openai:"), url, settings)
    if not colon or not model:
        raise JudgeError(f"judge {spec!r}: {_FORMS}")
    if provider == "openai":
        return _endpoint(model, os.environ.get("OPENAI_BASE_URL") or OPENAI_URL, settings)
    if provider == "offline":
        raise JudgeError(f"judge {spec!r}: the embedded judge has no gateway; it is asked with judge_offline")
    asked = {"url": url, "temperature": settings.temperature, "max_tokens": settings.max_tokens,
             "reasoning_effort": settings.reasoning_effort, "extra": dict(settings.extra_body)}
    return LangChainModel(load_provider_model(spec, url, settings), digest([provider, model, asked]), settings)


def normal_url(url: str) -> str:
    """The base URL of an endpoint, without a slash or the chat route at its end; JudgeError where it is no address."""
    url = url.strip().rstrip("/").removesuffix("/chat/completions")
    if not re.match(r"https?://[^/\s]+", url):
        raise JudgeError(f"judge: {url!r} is no address; expected http://host:port/v1")
    return url


def _endpoint(model: str, url: str, settings: JudgeSettings) -> OpenAIEndpoint:
    url = normal_url(url)
    if not model:
        raise JudgeError(f"judge: no model is named for the server at {url}; {_FORMS}")
    return OpenAIEndpoint(model, url, settings)


def model_fingerprint(model: Any) -> str:
    """A hash of a LangChain model's class and identifying parameters. Keys are not among them."""
    parameters = dict(getattr(model, "_identifying_params", None) or {})
    for name in ("base_url", "openai_api_base", "endpoint", "azure_endpoint", "model", "model_name", "temperature"):
        value = getattr(model, name, None)
        if isinstance(value, str | int | float):
            parameters[name] = value
    return digest([f"{type(model).__module__}.{type(model).__qualname__}",
                   json.loads(json.dumps(parameters, sort_keys=True, default=_plain))])


def _plain(value: Any) -> str:
    return "secret" if "Secret" in type(value).__name__ else str(value)
