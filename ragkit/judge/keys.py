"""The keys that stored replies are found by: a hash of all that a question to a model is made of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def digest(value: object) -> str:
    """The sha256 of plain data, the same in every process.

    >>> digest({"b": 1, "a": None}) == digest({"a": None, "b": 1})
    True
    """
    data = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"), default=_plain)
    return hashlib.sha256(data.encode()).hexdigest()


class CallKeys:
    """Keys of calls of one judge. A schema is hashed once, however many calls ask with it.

    >>> keys = CallKeys("judge")
    >>> keys.of("p", None, 0) == keys.of("p", None, 1)
    False
    """

    def __init__(self, identity: str) -> None:
        self.identity = identity
        self._schemas: dict[int, tuple[Mapping[str, Any], str]] = {}

    def of(self, prompt: str, schema: Mapping[str, Any] | None, replicate: int) -> str:
        content = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()
        return digest([self.identity, content, None if schema is None else self._schema(schema), replicate])

    def _schema(self, schema: Mapping[str, Any]) -> str:
        known = self._schemas.get(id(schema))
        if known is None:  # the schema is kept beside it, so that its id stays its own
            known = self._schemas[id(schema)] = (schema, digest(schema))
        return known[1]


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"expected plain data, got {type(value).__name__}")
