"""The parts that a pipeline is put together from: one-method Protocols, and the little they hand to each other."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from ragkit.recording import current_trace
from ragkit.records.trajectory import Passage, ScoreKind

_EMPTY: Mapping[str, float] = MappingProxyType({})
_logger = logging.getLogger("ragkit.pipeline")


@dataclass(frozen=True)
class Answer:
    """What a generator wrote; `usage` counts what it cost ("input_tokens", "output_tokens")."""

    text: str
    usage: Mapping[str, float] = field(default_factory=lambda: _EMPTY)


class Retriever(Protocol):
    """Finds passages for a query, best first, at most k; `score_kind` says how their scores are read."""

    @property
    def name(self) -> str: ...

    @property
    def score_kind(self) -> ScoreKind: ...

    def retrieve(self, query: str, k: int) -> list[Passage]: ...


class Reranker(Protocol):
    """Puts passages in a new order, best first, at most k. It returns what it was given, ids unchanged."""

    @property
    def name(self) -> str: ...

    @property
    def score_kind(self) -> ScoreKind: ...

    def rerank(self, query: str, passages: Sequence[Passage], k: int) -> list[Passage]: ...


class Generator(Protocol):
    """Writes the answer to a question from the passages of its context."""

    @property
    def name(self) -> str: ...

    def generate(self, question: str, passages: Sequence[Passage]) -> Answer: ...


def warn(text: str) -> None:
    """A notice about this one question: into the live trace, else into the log of ragkit.pipeline."""
    trace = current_trace()
    if trace is None:
        _logger.warning("%s", text)
    else:
        trace.warn(text)


class Pipeline(Protocol):
    """What build_pipeline gives: a question in, an answer out, recorded step by step into the live trace.

    index_ids: ids of all passages that can be found; passages: these passages, to project gold texts on;
    fingerprints: what tells this pipeline's parts from another's, by part; notes: what was noticed while it was built.
    """

    @property
    def index_ids(self) -> frozenset[str]: ...

    @property
    def passages(self) -> tuple[Passage, ...]: ...

    @property
    def fingerprints(self) -> dict[str, str]: ...

    @property
    def notes(self) -> tuple[str, ...]: ...

    def __call__(self, question: str) -> str: ...

    def close(self) -> None: ...
