"""Puts passages into a collection of our own so that it holds exactly the corpus: nothing twice, nothing old, and no
text embedded a second time because the store failed. Opening collections is in chroma.py."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tenacity import RetryError, Retrying, stop_after_attempt, wait_exponential

from ragkit.errors import DataError, RagkitError
from ragkit.models.embeddings import Embedder
from ragkit.records.trajectory import Passage

HASH_KEY = "ragkit_hash"
_PAGE = 2000
_EMBED_AT_ONCE = 1024


@dataclass(frozen=True)
class IngestReport:
    """What one ingest did: numbers of passages added, changed, removed and kept as they were; `blank` ones are not
    indexed (no text, no vector: nothing could find them)."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    kept: int = 0
    blank: tuple[str, ...] = ()


def is_blank(passage: Passage) -> bool:
    """Whether the passage holds no visible character; such a one is in no index."""
    return not (passage.text or "").strip()


class Ingester:
    """Ingests into one collection. Vectors stay here until the store has taken them, so a failed call can be made
    again without asking the model again."""

    def __init__(self, client: Any, collection: Any, embedder: Embedder, attempts: int = 3) -> None:
        self._collection = collection
        self._embedder = embedder
        self._attempts = attempts
        self._batch = max(1, int(client.get_max_batch_size()))
        self._vectors: dict[str, npt.NDArray[np.float32]] = {}
        self._lock = threading.Lock()

    def ingest(self, passages: Iterable[Passage]) -> IngestReport:
        """Make the collection hold exactly these passages, under their ids.

        What is there with the same content is kept; another content replaces the old one; what is no longer among
        the passages is removed. A store that fails three times in a row is a RagkitError; what it took stays.
        """
        with self._lock:
            return self._ingest(list(passages))

    def _ingest(self, passages: list[Passage]) -> IngestReport:
        wanted = {passage.id: passage for passage in passages if not is_blank(passage)}
        blank = tuple(passage.id for passage in passages if is_blank(passage))
        if len(wanted) + len(blank) != len(passages):
            raise DataError("ingest: expected every passage id once, got one twice")
        held = self._held()
        gone = [name for name in held if name not in wanted]
        todo = [passage for passage in wanted.values() if held.get(passage.id) != content_hash(passage)]
        changed = sum(passage.id in held for passage in todo)
        for batch in _batches(gone, self._batch):
            self._retry(lambda batch=batch: self._collection.delete(ids=batch), len(batch))
        for part in _batches(todo, _EMBED_AT_ONCE):
            self._embed(part)
            for batch in _batches(part, self._batch):
                self._store(batch)
        count = self._collection.count()
        if count != len(wanted):
            raise RagkitError(f"chroma: collection {self._collection.name!r} holds {count} entries, expected "
                              f"{len(wanted)}; does another process write to it?")
        return IngestReport(len(todo) - changed, changed, len(gone), len(wanted) - len(todo), blank)

    def _embed(self, passages: Sequence[Passage]) -> None:
        missing = [passage for passage in passages if content_hash(passage) not in self._vectors]
        vectors = self._embedder.embed_documents([passage.text or "" for passage in missing])
        for passage, vector in zip(missing, vectors, strict=True):
            self._vectors[content_hash(passage)] = vector

    def _store(self, passages: Sequence[Passage]) -> None:
        hashes = [content_hash(passage) for passage in passages]
        rows = {
            "ids": [passage.id for passage in passages],
            "embeddings": [self._vectors[name].tolist() for name in hashes],
            "documents": [_storable(passage.text or "") for passage in passages],
            "metadatas": [_metadata(passage, name) for passage, name in zip(passages, hashes, strict=True)],
        }
        self._retry(lambda: self._collection.upsert(**rows), len(passages))
        for name in hashes:
            self._vectors.pop(name, None)

    def _held(self) -> dict[str, str | None]:
        held: dict[str, str | None] = {}
        for start in range(0, self._collection.count(), _PAGE):
            page = self._collection.get(limit=_PAGE, offset=start, include=["metadatas"])
            for name, metadata in zip(page["ids"], page["metadatas"], strict=True):
                held[name] = (metadata or {}).get(HASH_KEY)
        return held

    def _retry(self, call: Any, count: int) -> None:
        retrying = Retrying(stop=stop_after_attempt(self._attempts), wait=wait_exponential(multiplier=0.1, max=5))
        try:
            retrying(call)
        except RetryError as error:
            cause = error.last_attempt.exception()
            line = (str(cause).strip().splitlines() or [type(cause).__name__])[0][:300]
            raise RagkitError(f"chroma: a batch of {count} was refused {self._attempts} times by collection "
                              f"{self._collection.name!r} ({line}); run it again, computed vectors are kept") from cause


def content_hash(passage: Passage) -> str:
    """What tells a changed passage: its text and its place in the document."""
    place = f"{passage.doc_id}\0{passage.metadata.get('start')}\0{passage.metadata.get('end')}\0"
    return hashlib.sha1((place + (passage.text or "")).encode("utf-8", "surrogatepass"),
                        usedforsecurity=False).hexdigest()


def _metadata(passage: Passage, content: str) -> dict[str, Any]:
    # Chroma takes plain values only; whatever else a document carries stays with the corpus.
    plain = {key: value for key, value in passage.metadata.items()
             if isinstance(value, str | int | float | bool) and not key.startswith(("ragkit_", "chroma:"))}
    return {**plain, "doc_id": passage.doc_id or passage.id, HASH_KEY: content}


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")  # the store refuses lone surrogates


def _batches(items: Sequence[Any], size: int) -> Iterable[list[Any]]:
    return (list(items[start:start + size]) for start in range(0, len(items), size))
