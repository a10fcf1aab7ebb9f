"""From settings and a corpus to a pipeline that answers. It puts the parts together and holds none of their logic."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ragkit.pipeline.protocols import Pipeline
from ragkit.pipeline.settings import PipelineConfig
from ragkit.records.questions import Document

_T = TypeVar("_T")


class PartCache:
    """Parts that several variants share: models, indexes, token vectors. Each is made once, also under threads.

    >>> cache = PartCache()
    >>> cache.get("demo", lambda: [1]) is cache.get("demo", lambda: [2])
    True
    """

    def __init__(self) -> None:
        self._parts: dict[Hashable, Any] = {}
        self._lock = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """The part of this key; `make` is called where there is none yet, and what it raises is not kept."""
        with self._lock:
            if key not in self._parts:
                self._parts[key] = make()
            part: _T = self._parts[key]
            return part


def build_pipeline(config: PipelineConfig, corpus: Mapping[str, Document] | None, index_dir: str | Path,
                   cache: PartCache | None = None) -> Pipeline:
    """Build the pipeline of `config` over `corpus` (None only with an attached collection).

    Its index lies under `index_dir` unless `config.chroma` says otherwise. With one `cache` for several variants
    they share what is equal. An empty corpus and whatever cannot be opened or loaded is a DataError (or a
    MissingPackageError) before the first question.
    """
    raise NotImplementedError
