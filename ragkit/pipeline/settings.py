"""What a pipeline of our own is made of, as plain frozen settings checked at birth. YAML is read elsewhere."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from ragkit.errors import DataError

RetrieverKind = Literal["dense", "lexical", "hybrid"]
AgentKind = Literal["none", "iterative", "tools"]
RERANKERS = '"maxsim", "mmr", "cross-encoder:NAME_OR_PATH", "cohere:URL#MODEL" or "tei:URL"'


@dataclass(frozen=True)
class ChromaSettings:
    """Where the vectors lie: a folder (`path`, default the run's index folder) or an HTTP server (`url`).

    `collection` is free text, mapped to a name that Chroma takes. With `attach` an existing collection is read as it
    is, under its exact name and in its own space, and never written to; `doc_id_key` names the metadata field that
    holds the document's id.
    """

    path: str | None = None
    url: str | None = None
    collection: str | None = None
    attach: bool = False
    doc_id_key: str = "doc_id"

    def __post_init__(self) -> None:
        if self.path and self.url:
            raise DataError(f"chroma: expected a path or a url, got both ({self.path!r}, {self.url!r})")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise DataError(f"chroma: expected an http(s) url, got {self.url!r}")
        if self.attach and not (self.collection and (self.path or self.url)):
            raise DataError("chroma: attach needs the name of an existing collection and its path or url")


@dataclass(frozen=True)
class PipelineConfig:
    """One variant of a RAG app.

    chunk_size, chunk_overlap: characters of a document's text in one chunk (None: whole documents) and shared with
    the one before. embedding: a spec of ragkit.models.embeddings. k: passages that one search gives. candidates:
    depth of the first stage where a fusion or a re-ranker follows. rerank_threshold: re-ranked passages below this
    probability are dropped. context_k: passages put before the generator (None: k). generator: "extractive", a chat
    model's spec, or None for retrieval alone. agent: "none" asks once, "iterative" asks again with what was found
    (up to max_steps searches), "tools" lets the chat model call the search as a tool.
    """

    chunk_size: int | None = None
    chunk_overlap: int = 0
    embedding: str = "minilm"
    retriever: RetrieverKind = "dense"
    k: int = 10
    candidates: int = 50
    reranker: str | None = None
    rerank_threshold: float | None = None
    context_k: int | None = None
    generator: str | None = "extractive"
    agent: AgentKind = "none"
    max_steps: int = 3
    chroma: ChromaSettings = field(default_factory=ChromaSettings)
    rrf_k: int = 60
    embedding_key_variable: str = "OPENAI_API_KEY"
    reranker_key_variable: str = "RERANK_API_KEY"
    generator_key_variable: str = "OPENAI_API_KEY"

    def __post_init__(self) -> None:
        if isinstance(self.chroma, Mapping):
            object.__setattr__(self, "chroma", _chroma_settings(self.chroma))
        for name in ("k", "candidates", "max_steps", "rrf_k"):
            check_count(name, getattr(self, name))
        for name in ("chunk_size", "context_k"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        if self.chunk_overlap < 0 or self.chunk_overlap >= (self.chunk_size or self.chunk_overlap + 1):
            raise DataError(f"chunk_overlap: expected 0 <= chunk_overlap < chunk_size, got {self.chunk_overlap} "
                            f"with chunk_size {self.chunk_size}")
        if self.retriever not in get_args(RetrieverKind):
            raise DataError(f"retriever: expected {', '.join(get_args(RetrieverKind))}, got {self.retriever!r}")
        if self.agent not in get_args(AgentKind):
            raise DataError(f"agent: expected {', '.join(get_args(AgentKind))}, got {self.agent!r}")
        if self.agent == "tools" and self.generator in (None, "extractive"):
            raise DataError(f"agent 'tools': expected a chat model as generator, got {self.generator!r}")
        if self.reranker is not None:
            parse_reranker(self.reranker)
        if self.rerank_threshold is not None and not has_probabilities(self.reranker):
            raise DataError(f"rerank_threshold: expected a re-ranker with probabilities (cross-encoder, cohere, tei), "
                            f"got {self.reranker!r}")

    @property
    def fingerprint(self) -> str:
        """16 hex digits of all settings: two variants with one fingerprint do the same."""
        data = json.dumps(asdict(self), sort_keys=True, default=str).encode()
        return hashlib.sha256(data).hexdigest()[:16]


def check_count(name: str, value: Any) -> int:
    """`value` where it is a whole number of at least 1; else a DataError (k = 0 is a slip, not "nothing").

    >>> check_count("k", 5)
    5
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise DataError(f"{name}: expected a whole number of at least 1, got {value!r}")
    return value


def parse_reranker(spec: str) -> tuple[str, str]:
    """Kind and rest of a re-ranker's spec; an unknown one is a DataError.

    >>> parse_reranker("cohere:http://127.0.0.1/v2/rerank#model")
    ('cohere', 'http://127.0.0.1/v2/rerank#model')
    """
    kind, _, rest = spec.partition(":")
    if kind in ("maxsim", "mmr") and not rest:
        return kind, ""
    if kind == "cross-encoder" and rest:
        return kind, rest
    if kind in ("cohere", "tei") and rest.startswith(("http://", "https://")):
        if kind == "cohere" and not rest.partition("#")[2]:
            raise DataError(f"reranker {spec!r}: expected cohere:URL#MODEL, the model after the #")
        return kind, rest
    raise DataError(f"reranker {spec!r}: expected {RERANKERS}")


def has_probabilities(spec: str | None) -> bool:
    """Whether the scores of this re-ranker lie in 0..1, so that a threshold means something."""
    return spec is not None and spec.partition(":")[0] in ("cross-encoder", "cohere", "tei")


def _chroma_settings(values: Mapping[str, Any]) -> ChromaSettings:
    known = set(ChromaSettings.__dataclass_fields__)
    unknown = sorted(set(values) - known)
    if unknown:
        raise DataError(f"chroma: unknown key {unknown[0]!r}; known: {', '.join(sorted(known))}")
    return ChromaSettings(**values)
