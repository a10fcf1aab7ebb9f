"""Late interaction: each word piece of the query looks for its nearest one in the passage. A re-ranker without any
model of its own: it compares the token vectors of the packaged embedding model."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ragkit.models.embeddings import Vectors
from ragkit.pipeline.rerank import by_score
from ragkit.records.trajectory import Passage, ScoreKind


class TokenEmbedder(Protocol):
    """Gives unit vectors, one a token, for each text."""

    def token_vectors(self, texts: Sequence[str]) -> list[Vectors]: ...


class TokenVectors:
    """Token vectors by text, each text encoded once; half precision, the longest unused ones go first.

    About 100 KB a passage of 130 tokens: `limit` 20,000 passages are at most some 2 GB.
    """

    def __init__(self, embedder: TokenEmbedder, limit: int = 20_000) -> None:
        self._embedder = embedder
        self._limit = limit
        self._held: OrderedDict[bytes, npt.NDArray[np.float16]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, texts: Sequence[str]) -> list[npt.NDArray[np.float16]]:
        keys = [hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest() for text in texts]
        with self._lock:
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._held}
            if missing:
                made = self._embedder.token_vectors(list(missing.values()))
                self._held.update((key, array.astype(np.float16)) for key, array in zip(missing, made, strict=True))
            found = []
            for key in keys:
                self._held.move_to_end(key)
                found.append(self._held[key])
            while len(self._held) > self._limit:
                self._held.popitem(last=False)
            return found


class MaxSimReranker:
    """Score = mean over the query's tokens of the highest cosine to a token of the passage; in -1..1."""

    name = "maxsim"
    score_kind: ScoreKind = "similarity"

    def __init__(self, embedder: TokenEmbedder, vectors: TokenVectors | None = None) -> None:
        self._embedder = embedder
        self._vectors = vectors or TokenVectors(embedder)

    def rerank(self, query: str, passages: Sequence[Passage], k: int) -> list[Passage]:
        if not passages:
            return []
        asked = self._embedder.token_vectors([query])[0]
        arrays = self._vectors.get([passage.text or "" for passage in passages])
        starts = np.cumsum([0, *(len(array) for array in arrays)])[:-1]
        similar = asked @ np.concatenate(arrays).astype(np.float32).T
        best = np.maximum.reduceat(similar, starts, axis=1)  # (query tokens, passages)
        return by_score(passages, best.mean(axis=0).tolist(), k)
