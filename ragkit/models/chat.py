"""Chat models by a short spec, and what tells one from another. Prompts and calls belong to those who ask."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ragkit.errors import DataError, MissingPackageError
from ragkit.models.vendors import first_line, model_name, without_user

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


def load_chat_model(spec: Any, key_variable: str = "OPENAI_API_KEY", **options: Any) -> BaseChatModel:
    """The chat model that a spec means; a langchain chat model is taken as it is.

    "PROVIDER:MODEL" goes to langchain's init_chat_model, "http://HOST/v1#MODEL" is any OpenAI-compatible endpoint
    (the key is read from the environment variable `key_variable`; a server without keys needs none). `options` are
    the model's own (temperature, max_tokens, timeout ...). What cannot be loaded is a DataError of one line.
    """
    if not isinstance(spec, str):
        if hasattr(spec, "invoke") and hasattr(spec, "bind_tools"):
            model: BaseChatModel = spec
            return model
        raise DataError(f'chat model: expected "PROVIDER:MODEL", "http://HOST/v1#MODEL" or a langchain chat model, '
                        f"got {type(spec).__name__}")
    if spec.startswith(("http://", "https://")):
        return _endpoint(spec, key_variable, options)
    if ":" not in spec:
        raise DataError(f'chat model {spec!r}: expected "PROVIDER:MODEL" such as openai:gpt-5-mini, or '
                        f'"http://HOST/v1#MODEL"')
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise MissingPackageError("langchain", "langchain", f"chat model {spec!r}") from error
    try:
        loaded: BaseChatModel = init_chat_model(spec, **options)
    except Exception as error:  # each provider raises its own types for a wrong name or a missing key
        raise DataError(f"chat model {spec!r}: {first_line(error)}") from error
    return loaded


def chat_fingerprint(model: Any) -> str:
    """Class, model, endpoint and temperature of a chat model, as one line without any key.

    >>> class Echo: model_name = "echo-1"
    >>> chat_fingerprint(Echo())
    'Echo:echo-1'
    """
    parts = [type(model).__name__, model_name(model)]
    base = next((str(value) for key in ("openai_api_base", "base_url", "anthropic_api_url")
                 if (value := getattr(model, key, None))), "")
    temperature = getattr(model, "temperature", None)
    if base:
        parts.append(without_user(base))
    if temperature is not None:
        parts.append(f"temperature={temperature:g}")
    return ":".join(part for part in parts if part)


def _endpoint(spec: str, key_variable: str, options: dict[str, Any]) -> BaseChatModel:
    base, _, name = spec.partition("#")
    if not name:
        raise DataError(f'chat model {spec!r}: expected "http://HOST/v1#MODEL", the model after the #')
    try:
        from langchain_openai import ChatOpenAI
        from pydantic import SecretStr
    except ImportError as error:
        raise MissingPackageError("langchain-openai", "langchain", f"chat model {spec!r}") from error
    # The client insists on a key even for servers that ask for none.
    key = SecretStr(os.environ.get(key_variable) or "none")
    return ChatOpenAI(model=name, base_url=base, api_key=key, **options)
