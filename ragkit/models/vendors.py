"""What vendors' objects say of themselves, as one line for messages and fingerprints: an error, a model, an address."""

from __future__ import annotations

from typing import Any


def first_line(error: Exception) -> str:
    """The first line of what an error says, at most 300 characters; its type where it says nothing.

    >>> first_line(OSError("no such model\\nsee https://...")), first_line(ValueError())
    ('no such model', 'ValueError')
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def model_name(model: Any) -> str:
    """The name of a LangChain chat model, whichever attribute its class keeps it in; empty where it has none.

    >>> class Echo: model_id = "echo-1"
    >>> model_name(Echo()), model_name(object())
    ('echo-1', '')
    """
    found = (getattr(model, attribute, None) for attribute in ("model_name", "model", "model_id", "deployment_name"))
    return next((name for name in found if isinstance(name, str) and name), "")


def without_user(url: str) -> str:
    """An address without the user name and password that may stand in it.

    >>> without_user("http://ann:secret@host/v1"), without_user("http://host/v1")
    ('http://host/v1', 'http://host/v1')
    """
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}" if separator else url
