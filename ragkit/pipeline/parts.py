"""Parts that several variants share, each made once: models, stores, indexes, token vectors. No part is made here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

_T = TypeVar("_T")


class PartCache:
    """Keeps parts by key; `close` hands back what holds files or connections.

    >>> cache = PartCache()
    >>> cache.get("demo", lambda: [1]) is cache.get("demo", lambda: [2])
    True
    """

    def __init__(self) -> None:
        self._parts: dict[Hashable, Any] = {}
        self._lock = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """The part of this key; `make` is called where there is none yet, once also under threads. What it raises is
        not kept."""
        with self._lock:
            if key not in self._parts:
                self._parts[key] = make()
            part: _T = self._parts[key]
            return part

    def close(self) -> None:
        """Close every part that can be closed and forget all of them; the cache can be filled again."""
        with self._lock:
            parts, self._parts = list(self._parts.values()), {}
        for part in parts:
            close = getattr(part, "close", None)
            if callable(close):
                close()
