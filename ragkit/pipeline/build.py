"""From settings and a corpus to a pipeline that answers. It puts the parts together and holds none of their logic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragkit.models.chat import load_chat_model
from ragkit.models.embeddings import DEFAULT_EMBEDDING, Embedder, load_embedder
from ragkit.pipeline.agent import IterativeAgent, ToolAgent
from ragkit.pipeline.generate import ChatGenerator, ExtractiveGenerator
from ragkit.pipeline.index import Index, build_index
from ragkit.pipeline.maxsim import MaxSimReranker, TokenVectors
from ragkit.pipeline.parts import PartCache
from ragkit.pipeline.protocols import Generator, Pipeline, Reranker, Retriever
from ragkit.pipeline.rag import Searcher, SingleShot
from ragkit.pipeline.rerank import CrossEncoderReranker, MmrReranker
from ragkit.pipeline.rerank_http import HttpReranker
from ragkit.pipeline.settings import PipelineConfig, parse_reranker
from ragkit.records.questions import Document
from ragkit.records.trajectory import Passage

__all__ = ["PartCache", "build_pipeline"]


def build_pipeline(config: PipelineConfig, corpus: Mapping[str, Document] | None, index_dir: str | Path,
                   cache: PartCache | None = None) -> Pipeline:
    """Build the pipeline of `config` over `corpus` (None only with an attached collection).

    Its index lies under `index_dir` unless `config.chroma` says otherwise. With one `cache` for several variants
    they share what is equal; whoever made the cache closes it. An empty corpus and whatever cannot be opened or
    loaded is a DataError (or a MissingPackageError) before the first question.
    """
    parts = _Parts(config, cache or PartCache())
    index = build_index(config, corpus, Path(index_dir), parts.embedder(), parts.cache)
    reranker = parts.reranker(index)
    searcher = Searcher(parts.retrievers(index), reranker, k=config.k, candidates=config.candidates,
                        rrf_k=config.rrf_k, threshold=config.rerank_threshold)
    fingerprints = {**index.fingerprints, "config": config.fingerprint, "retriever": config.retriever,
                    "reranker": reranker.name if reranker else "none", "agent": config.agent}
    if parts.embedder() is not None:
        fingerprints["embedder"] = parts.embedder_needed().fingerprint
    app: Callable[[str], str]
    if config.agent == "tools":
        agent = ToolAgent(searcher, parts.chat(), config.max_steps)
        app, fingerprints["generator"] = agent, agent.name
    else:
        generator = parts.generator()
        fingerprints["generator"] = generator.name if generator else "none"
        if config.agent == "iterative":
            app = IterativeAgent(searcher, generator, embedder=parts.embedder(), max_steps=config.max_steps,
                                 context_k=config.context_k, rrf_k=config.rrf_k)
        else:
            app = SingleShot(searcher, generator, config.context_k)
    return BuiltPipeline(app, index, fingerprints, None if cache is not None else parts.cache)


@dataclass
class BuiltPipeline:
    """See protocols.Pipeline. `owned` is the cache that is closed with it: None where others share it."""

    app: Callable[[str], str]
    index: Index
    fingerprints: dict[str, str]
    owned: PartCache | None = None

    @property
    def index_ids(self) -> frozenset[str]:
        return self.index.ids

    @property
    def passages(self) -> tuple[Passage, ...]:
        return self.index.passages

    @property
    def notes(self) -> tuple[str, ...]:
        return self.index.notes

    def __call__(self, question: str) -> str:
        return self.app(question)

    def close(self) -> None:
        if self.owned is not None:
            self.owned.close()


class _Parts:
    """Makes the parts that one configuration asks for, out of the cache where they are there."""

    def __init__(self, config: PipelineConfig, cache: PartCache) -> None:
        self.config, self.cache = config, cache

    def embedder(self) -> Embedder | None:
        """The embedder where vectors are searched; None for a purely lexical search."""
        return None if self.config.retriever == "lexical" else self.embedder_needed()

    def embedder_needed(self) -> Embedder:
        return self._embedder(self.config.embedding)

    def _embedder(self, spec: str) -> Embedder:
        key = self.config.embedding_key_variable
        return self.cache.get(("embedder", spec, key), lambda: load_embedder(spec, key))

    def retrievers(self, index: Index) -> list[Retriever]:
        found: list[Retriever] = []
        if self.config.retriever != "dense":
            found.append(index.lexical)
        if index.dense is not None:
            found.append(index.dense)
        return found

    def reranker(self, index: Index) -> Reranker | None:
        if self.config.reranker is None:
            return None
        kind, rest = parse_reranker(self.config.reranker)
        if kind == "maxsim":
            return self.cache.get("maxsim", self._maxsim)
        if kind == "mmr":
            return MmrReranker(self.embedder_needed(), index.dense.vectors if index.dense else None)
        if kind == "cross-encoder":
            return self.cache.get(("cross-encoder", rest), lambda: CrossEncoderReranker(rest))
        url, _, model = rest.partition("#")
        return HttpReranker(kind, url, model, self.config.reranker_key_variable)

    def _maxsim(self) -> Reranker:
        model: Any = self._embedder(DEFAULT_EMBEDDING)
        return MaxSimReranker(model, TokenVectors(model))

    def chat(self) -> Any:
        spec, key = self.config.generator, self.config.generator_key_variable
        return self.cache.get(("chat", spec, key), lambda: load_chat_model(spec, key))

    def generator(self) -> Generator | None:
        if self.config.generator is None:
            return None
        if self.config.generator == "extractive":
            return ExtractiveGenerator(self.embedder())
        return ChatGenerator(self.chat())

