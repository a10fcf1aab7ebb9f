"""What a pipeline searches in: the passages of a corpus with their BM25 and Chroma indexes, or an attached collection.
Built once for all variants that share it; the search itself is rag.py's."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ragkit.errors import DataError
from ragkit.models.embeddings import Embedder
from ragkit.pipeline import chroma, chunking
from ragkit.pipeline.ingest import Ingester, content_hash, is_blank
from ragkit.pipeline.lexical import LexicalRetriever
from ragkit.pipeline.parts import PartCache
from ragkit.pipeline.settings import ChromaSettings, PipelineConfig
from ragkit.records.questions import Document
from ragkit.records.trajectory import Passage


@dataclass
class Index:
    """The searchable passages. `dense` is None where no vectors are needed; blank passages are in no index."""

    read: Callable[[], tuple[Passage, ...]]
    dense: chroma.DenseRetriever | None = None
    notes: tuple[str, ...] = ()
    fingerprints: dict[str, str] = field(default_factory=dict)

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        return tuple(passage for passage in self.read() if not is_blank(passage))

    @cached_property
    def ids(self) -> frozenset[str]:
        return frozenset(passage.id for passage in self.passages)

    @cached_property
    def lexical(self) -> LexicalRetriever:
        return LexicalRetriever(self.passages)


def build_index(config: PipelineConfig, corpus: Mapping[str, Document] | None, index_dir: Path,
                embedder: Embedder | None, cache: PartCache) -> Index:
    """The index of `config`; with an `embedder` it has vectors. An empty corpus is a DataError."""
    if config.chroma.attach:
        return _attached(config.chroma, index_dir, embedder, cache)
    if not corpus:
        raise DataError(f"corpus: expected at least one document, got {'none' if corpus is None else 'an empty one'}")
    chunker = chunking.fingerprint(config.chunk_size, config.chunk_overlap)
    passages = chunking.chunk_corpus(corpus.values(), config.chunk_size, config.chunk_overlap)
    blank = [passage.id for passage in passages if is_blank(passage)]
    if len(blank) == len(passages):
        raise DataError(f"corpus: expected documents with text, got {len(passages)} empty ones")
    notes: tuple[str, ...] = ()
    if blank:
        shown = ", ".join(blank[:5]) + (", …" if len(blank) > 5 else "")
        notes = (f"index: {len(blank)} of {len(passages)} passages hold no text and are not indexed ({shown})",)
    digest = _digest(passages)
    fingerprints = {"chunker": chunker, "passages": digest}
    if embedder is None:
        return cache.get(("lexical", chunker, digest), lambda: Index(lambda: passages, None, notes, fingerprints))
    model = embedder
    # Without a name of the user's own, each pair of model and chunker has a collection: variants never collide.
    name = chroma.collection_name(config.chroma.collection or f"ragkit {model.fingerprint} {chunker}")
    place = _place(config.chroma, index_dir)
    client = cache.get(("client", place), lambda: chroma.open_client(config.chroma, index_dir))

    def opened() -> tuple[Any, Ingester]:
        collection = chroma.own_collection(client, name, model, chunker)
        return collection, Ingester(client, collection, model)

    # Kept before it is filled: after a store that failed, the vectors that were computed are still here.
    collection, ingester = cache.get(("collection", place, name, model.fingerprint, chunker), opened)

    def filled() -> Index:
        ingester.ingest(passages)
        held = {passage.id: passage for passage in passages}
        dense = chroma.DenseRetriever(collection, model, held)
        return Index(lambda: passages, dense, notes, {**fingerprints, "collection": name, "space": dense.space})

    return cache.get(("index", place, name, model.fingerprint, chunker, digest), filled)


def _attached(settings: ChromaSettings, index_dir: Path, embedder: Embedder | None, cache: PartCache) -> Index:
    place, name = _place(settings, index_dir), settings.collection or ""
    client = cache.get(("client", place), lambda: chroma.open_client(settings, index_dir))

    def opened() -> Index:
        collection, notes = chroma.attached_collection(client, name, embedder)
        dense = None if embedder is None else chroma.DenseRetriever(collection, embedder, None, settings.doc_id_key)
        if not collection.count():
            notes += (f"chroma: collection {name!r} is empty, nothing can be found",)
        return Index(lambda: tuple(chroma.stored_passages(collection, settings.doc_id_key)), dense, notes,
                     {"collection": name, "space": chroma.space_of(collection)})

    return cache.get(("attached", place, name, embedder.fingerprint if embedder else ""), opened)


def _place(settings: ChromaSettings, index_dir: Path) -> str:
    return settings.url or str(Path(settings.path or index_dir).resolve())


def _digest(passages: tuple[Passage, ...]) -> str:
    digest = hashlib.sha256()
    for passage in passages:
        digest.update(f"{passage.id}\0{content_hash(passage)}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]
