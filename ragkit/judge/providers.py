"""Providers behind langchain's init_chat_model: which package brings them, where their key is, how they are set up.

Only what their classes do not agree on stands here; a provider that is missing is used as langchain knows it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragkit.errors import DataError, JudgeError
from ragkit.judge.langchain import causes
from ragkit.judge.settings import JudgeSettings


@dataclass(frozen=True)
class Provider:
    """`keys` are the environment variables that may hold its key (none: it is not known, or needs none).

    `room` is its argument for the length of a reply, `headers` the one that takes headers, `effort` the one that takes
    a reasoning effort, `url` the one for its address.
    """

    package: str
    keys: tuple[str, ...] = ()
    room: str = "max_tokens"
    url: str = "base_url"
    headers: str | None = None
    effort: str | None = None
    no_retries: Mapping[str, Any] = field(default_factory=lambda: {"max_retries": 0})


PROVIDERS: dict[str, Provider] = {
    "anthropic": Provider("langchain-anthropic", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
                          headers="default_headers", effort="effort"),
    "anthropic_bedrock": Provider("langchain-aws"),
    "azure_ai": Provider("langchain-azure-ai"),
    "baseten": Provider("langchain-baseten", ("BASETEN_API_KEY",)),
    "bedrock": Provider("langchain-aws"),
    "bedrock_converse": Provider("langchain-aws", no_retries={}),
    "bedrock_mantle_anthropic": Provider("langchain-aws"),
    "bedrock_mantle_openai": Provider("langchain-aws"),
    "cohere": Provider("langchain-cohere", ("COHERE_API_KEY", "CO_API_KEY"), no_retries={}),
    "deepseek": Provider("langchain-deepseek", ("DEEPSEEK_API_KEY",), headers="default_headers"),
    "fireworks": Provider("langchain-fireworks", ("FIREWORKS_API_KEY",)),
    "google_anthropic_vertex": Provider("langchain-google-vertexai"),
    "google_genai": Provider("langchain-google-genai", ("GOOGLE_API_KEY", "GEMINI_API_KEY"), room="max_output_tokens",
                             headers="additional_headers"),
    "google_vertexai": Provider("langchain-google-vertexai", room="max_output_tokens"),
    "groq": Provider("langchain-groq", ("GROQ_API_KEY",), headers="default_headers", effort="reasoning_effort"),
    "huggingface": Provider("langchain-huggingface", no_retries={}),
    "ibm": Provider("langchain-ibm", no_retries={}),
    "langsmith": Provider("langchain-openai"),
    "litellm": Provider("langchain-litellm"),
    "meta": Provider("langchain-meta"),
    "mistralai": Provider("langchain-mistralai", ("MISTRAL_API_KEY",), url="endpoint"),
    "nvidia": Provider("langchain-nvidia-ai-endpoints", no_retries={}),
    "ollama": Provider("langchain-ollama", room="num_predict", effort="reasoning", no_retries={}),
    "openrouter": Provider("langchain-openrouter", ("OPENROUTER_API_KEY",)),
    "perplexity": Provider("langchain-perplexity", ("PPLX_API_KEY", "PERPLEXITY_API_KEY")),
    "together": Provider("langchain-together", ("TOGETHER_API_KEY",), headers="default_headers"),
    "upstage": Provider("langchain-upstage", ("UPSTAGE_API_KEY",)),
    "xai": Provider("langchain-xai", ("XAI_API_KEY",), headers="default_headers", effort="reasoning_effort"),
}
"""The names that langchain's init_chat_model takes; openai and azure_openai are asked straight."""


def is_provider(name: str) -> bool:
    """Whether a name before a colon is a provider's, and not part of a model's name such as llama3:8b.

    >>> is_provider("google-genai"), is_provider("llama3")
    (True, False)
    """
    return name.replace("-", "_") in (*PROVIDERS, "openai", "azure_openai", "offline")


def load_provider_model(spec: str, url: str | None, settings: JudgeSettings) -> Any:
    """The LangChain chat model of "PROVIDER:MODEL", set up as the settings say, without retries of its own.

    Raises JudgeError or MissingPackageError, one line, where that cannot be done.
    """
    name = spec.partition(":")[0].replace("-", "_")
    provider = PROVIDERS.get(name)
    if provider is None:
        raise JudgeError(f"judge {spec!r}: unknown provider {name!r}; expected one of "
                         f"{', '.join(sorted([*PROVIDERS, 'openai', 'azure_openai']))}, or a model's name with the "
                         "URL of its server")
    from ragkit.models.chat import load_chat_model

    arguments, model = _arguments(spec, provider, url, settings), f"{name}:{spec.partition(':')[2]}"
    try:
        try:
            return load_chat_model(model, **arguments)
        except DataError as error:
            if "max_retries" not in str(error):
                raise
            arguments.pop("max_retries", None)  # a class that has none
            return load_chat_model(model, **arguments)
    except DataError as error:
        raise JudgeError(_in_words(spec, provider, error)) from error


def _arguments(spec: str, provider: Provider, url: str | None, settings: JudgeSettings) -> dict[str, Any]:
    of_ollama = provider.package == "langchain-ollama"
    made: dict[str, Any] = {provider.room: settings.max_tokens, **provider.no_retries}
    if settings.temperature is not None:
        made["temperature"] = settings.temperature
    if url is not None:
        made[provider.url] = url.removesuffix("/v1") if of_ollama else url
    if settings.reasoning_effort is not None:
        if provider.effort is None:
            raise _unknown(spec, "reasoning_effort")
        made[provider.effort] = settings.reasoning_effort
    if settings.headers and of_ollama:
        made["client_kwargs"] = {"headers": dict(settings.headers)}
    elif settings.headers:
        if provider.headers is None:
            raise _unknown(spec, "headers")
        made[provider.headers] = dict(settings.headers)
    key = _key(spec, provider, url, settings)
    if settings.key_variable is not None:
        made["api_key"] = key
    return {**made, **settings.extra_body}


def _key(spec: str, provider: Provider, url: str | None, settings: JudgeSettings) -> str:
    """The key of the environment; a server at an address of its own may need none."""
    variables = provider.keys if settings.key_variable is None else (settings.key_variable,)
    key = next((value for variable in variables if (value := os.environ.get(variable, "").strip())), "")
    if variables and not key and (settings.key_variable is not None or url is None):
        raise JudgeError(f"judge {spec}: no key; set the environment variable {' or '.join(variables)}")
    return key


def _unknown(spec: str, setting: str) -> JudgeError:
    return JudgeError(f"judge {spec}: how this provider takes {setting} is not known; name the argument of its "
                      "LangChain class under extra_body")


def _in_words(spec: str, provider: Provider, error: DataError) -> str:
    if any(isinstance(cause, ImportError) for cause in causes(error)):
        return f"judge {spec}: needs the package {provider.package}: pip install {provider.package}"
    return f"judge {re.sub(r'^chat model ', '', str(error))}"
