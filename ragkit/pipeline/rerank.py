"""Re-ranking as a stage of its own: what every re-ranker's result must be, cross-encoders, and MMR. Endpoints are in
rerank_http.py, late interaction in maxsim.py."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ragkit.errors import DataError, RagkitError
from ragkit.models.embeddings import Embedder, Vectors
from ragkit.models.local import load_cross_encoder
from ragkit.pipeline.settings import check_count
from ragkit.recording import as_passage
from ragkit.records.trajectory import Passage, ScoreKind


def restored(given: Sequence[Passage], returned: Iterable[Any], name: str) -> list[Passage]:
    """The re-ranker's order in the passages that it was given: ids, texts and metadata are theirs, scores are new.

    `returned` are passages or documents. One that lost its id is found again by its text, where exactly one passage
    that is left has it. An unknown item, or one that comes twice, is a RagkitError: lost ids would score 0 silently.

    >>> restored([Passage("a", "T"), Passage("b", "U")], ["U"], "demo")[0].id
    'b'
    """
    left = {passage.id: passage for passage in given}
    order = []
    for item in returned:
        found = as_passage(item)
        named = left.get(found.id)
        if named is None:
            same = [passage for passage in left.values() if found.text is not None and passage.text == found.text]
            if len(same) != 1:
                twice = any(passage.id == found.id for passage in given)
                raise RagkitError(f"re-ranker {name}: expected passages of the {len(given)} it was given, got "
                                  f"{found.id!r} {'twice' if twice else 'which is none of them'}")
            named = same[0]
        order.append(replace(named, score=found.score))
        del left[named.id]
    return order


def by_score(given: Sequence[Passage], scores: Sequence[float], k: int) -> list[Passage]:
    """The k passages of the highest scores, ties in the old order; NaN is a RagkitError."""
    check_count("k", k)
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (len(given),) or np.isnan(values).any():
        raise RagkitError(f"re-ranker: expected {len(given)} scores, got {values.shape} with "
                          f"{int(np.isnan(values).sum())} NaN")
    order = np.argsort(-values, kind="stable")[:k]
    return [replace(given[i], score=float(values[i])) for i in order]


def sigmoid(value: float) -> float:
    """1 / (1 + e^-x), without overflow.

    >>> round(sigmoid(2.0), 6), round(sigmoid(-3.0), 6)
    (0.880797, 0.047426)
    """
    return 1.0 / (1.0 + math.exp(-value)) if value >= 0 else math.exp(value) / (1.0 + math.exp(value))


class CrossEncoderReranker:
    """Any sentence-transformers CrossEncoder. Its scores are probabilities, made by exactly one sigmoid.

    The model's own activation is read: with a sigmoid or none at all its logits are taken and passed through one;
    any other activation's outputs are kept as they come, and `probabilities` is False.
    """

    score_kind: ScoreKind = "similarity"

    def __init__(self, model: Any, name: str = "", batch: int = 32) -> None:
        self.model = load_cross_encoder(model) if isinstance(model, str) else model
        self.name = f"cross-encoder:{name or (model if isinstance(model, str) else type(model).__name__)}"
        activation = getattr(self.model, "activation_fn", None) or getattr(
            self.model, "default_activation_function", None)
        self.probabilities = type(activation).__name__ in ("Sigmoid", "Identity")
        self._batch = batch
        self._lock = threading.Lock()

    def rerank(self, query: str, passages: Sequence[Passage], k: int) -> list[Passage]:
        if not passages:
            return []
        pairs = [(query, passage.text or "") for passage in passages]
        options: dict[str, Any] = {"batch_size": self._batch, "show_progress_bar": False}
        if self.probabilities:
            import torch

            options["activation_fn"] = torch.nn.Identity()
        with self._lock:
            logits = [float(value) for value in self.model.predict(pairs, **options)]
        ranked = by_score(passages, logits, k)  # by logits: far out, different ones have the same probability
        if not self.probabilities:
            return ranked
        return [replace(passage, score=sigmoid(passage.score or 0.0)) for passage in ranked]


class MmrReranker:
    """Maximal marginal relevance: each next passage is like the query and unlike those already taken.

    Value = weight * cos(query, passage) - (1 - weight) * the highest cos to a taken passage. `vectors` gives the
    passages' vectors where they are stored already; else the embedder makes them.
    """

    name = "mmr"
    score_kind: ScoreKind = "similarity"

    def __init__(self, embedder: Embedder, vectors: Callable[[Sequence[Passage]], Vectors] | None = None,
                 weight: float = 0.5) -> None:
        if not 0.0 <= weight <= 1.0:
            raise DataError(f"mmr: expected a weight in 0..1, got {weight}")
        self._embedder = embedder
        self._vectors = vectors or (lambda given: embedder.embed_documents([one.text or "" for one in given]))
        self._weight = weight

    def rerank(self, query: str, passages: Sequence[Passage], k: int) -> list[Passage]:
        check_count("k", k)
        if not passages:
            return []
        vectors = _unit(self._vectors(passages))
        relevance = vectors @ _unit(self._embedder.embed_query(query)[None, :])[0]
        taken: list[int] = []
        nearest = np.zeros(len(passages))
        ranked = []
        while len(taken) < min(k, len(passages)):
            values = self._weight * relevance - (1.0 - self._weight) * nearest
            values[taken] = -np.inf
            best = int(np.argmax(values))
            ranked.append(replace(passages[best], score=float(values[best])))
            similar = vectors @ vectors[best]
            nearest = similar if not taken else np.maximum(nearest, similar)
            taken.append(best)
        return ranked


def _unit(vectors: Vectors) -> npt.NDArray[np.float64]:
    wide = np.asarray(vectors, dtype=np.float64)
    return np.asarray(wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-12))
