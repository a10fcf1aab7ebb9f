"""Retrieve, fuse, re-rank, cut, generate: one search recorded stage by stage, and the app that asks once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from ragkit.errors import DataError
from ragkit.pipeline.fusion import reciprocal_rank_fusion
from ragkit.pipeline.protocols import Generator, Reranker, Retriever
from ragkit.pipeline.rerank import restored
from ragkit.pipeline.settings import check_count
from ragkit.recording import current_trace
from ragkit.records.trajectory import Passage, ScoreKind, Stage


@dataclass(frozen=True)
class _Listed:
    """One list on the way of a search, as it will be recorded."""

    stage: Stage
    name: str
    passages: list[Passage]
    score_kind: ScoreKind
    ms: float


class Searcher:
    """A search: one or several retrievers, a reciprocal rank fusion where they are several, a re-ranker, a cut at k.

    Retrievers are asked for `candidates` passages where something follows them, else for k. Re-ranked passages below
    `threshold` are dropped. Every list on the way goes into the live trace, the outermost as the step's result.
    """

    def __init__(self, retrievers: Sequence[Retriever], reranker: Reranker | None = None, *, k: int = 10,
                 candidates: int = 50, rrf_k: int = 60, threshold: float | None = None) -> None:
        if not retrievers:
            raise DataError("search: expected at least one retriever, got none")
        self.retrievers = tuple(retrievers)
        self.reranker = reranker
        self.k = check_count("k", k)
        self._candidates = max(check_count("candidates", candidates), k)
        self._rrf_k = check_count("rrf_k", rrf_k)
        self._threshold = threshold

    def search(self, query: str, turn: int | None = None) -> list[Passage]:
        """At most k passages, best first."""
        trace = current_trace()
        block: AbstractContextManager[Any] = nullcontext() if trace is None else trace.search(query, turn=turn)
        with block as record:
            lists = self._lists(query)
            if record is not None:
                for listed in lists[:-1]:
                    record.stage(listed.stage, listed.name, listed.passages, listed.score_kind, listed.ms)
                last = lists[-1]
                record.result(last.stage, last.name, last.passages, last.score_kind, last.ms)
        return lists[-1].passages

    def _lists(self, query: str) -> list[_Listed]:
        single = len(self.retrievers) == 1
        depth = self.k if single and self.reranker is None else self._candidates
        lists = []
        for retriever in self.retrievers:
            begun = time.perf_counter()
            found = retriever.retrieve(query, depth)
            lists.append(_Listed("retrieve", retriever.name, found, retriever.score_kind, _ms(begun)))
        if not single:
            begun = time.perf_counter()
            cut = self.k if self.reranker is None else self._candidates
            fused = reciprocal_rank_fusion([listed.passages for listed in lists], self._rrf_k, cut)
            lists.append(_Listed("fuse", "rrf", fused, "similarity", _ms(begun)))
        if self.reranker is not None:
            lists.extend(self._reranked(self.reranker, query, lists[-1].passages))
        return lists

    def _reranked(self, reranker: Reranker, query: str, given: list[Passage]) -> list[_Listed]:
        begun = time.perf_counter()
        order = restored(given, reranker.rerank(query, given, self.k), reranker.name)[: self.k]
        lists = [_Listed("rerank", reranker.name, order, reranker.score_kind, _ms(begun))]
        if self._threshold is not None:
            kept = [passage for passage in order if passage.score is not None and passage.score >= self._threshold]
            lists.append(_Listed("filter", f"score >= {self._threshold:g}", kept, reranker.score_kind, 0.0))
        return lists


class SingleShot:
    """The plain app: one search, the first `context_k` passages as context, one answer ("" without a generator)."""

    def __init__(self, searcher: Searcher, generator: Generator | None, context_k: int | None = None) -> None:
        self.searcher = searcher
        self._generator = generator
        self._context_k = check_count("context_k", context_k if context_k is not None else searcher.k)

    def __call__(self, question: str) -> str:
        return answer(question, self.searcher.search(question)[: self._context_k], self._generator)


def answer(question: str, context: Sequence[Passage], generator: Generator | None) -> str:
    """Record the context (one ranking), let the generator write from it, record what it wrote and used."""
    trace = current_trace()
    if trace is not None:
        trace.context(list(context), ranked=True)
    if generator is None:
        return ""
    written = generator.generate(question, context)
    if trace is not None:
        if written.usage and not getattr(generator, "counted", False):
            trace.usage(**written.usage)
        trace.answer(written.text)
    return written.text


def _ms(begun: float) -> float:
    return (time.perf_counter() - begun) * 1000
