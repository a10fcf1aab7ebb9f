"""Re-rank endpoints over HTTP in Cohere's and in TEI's form. Keys are read from the environment at each call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ragkit.errors import RagkitError
from ragkit.models.endpoint import bearer, post_json
from ragkit.pipeline.protocols import warn
from ragkit.pipeline.rerank import by_score, sigmoid
from ragkit.pipeline.settings import check_count
from ragkit.records.trajectory import Passage, ScoreKind


class HttpReranker:
    """POSTs query and texts, reads an index and a score for each: the index leads back to the passage, so ids cannot
    get lost. An index out of range or twice, or a missing one, is a RagkitError.

    form "cohere": {model, query, documents, top_n} -> results[{index, relevance_score}] (Cohere, Jina, vLLM ...).
    form "tei": {query, texts} -> [{index, score}] (text-embeddings-inference; scores asked for as probabilities).
    """

    score_kind: ScoreKind = "similarity"

    def __init__(self, form: str, url: str, model: str = "", key_variable: str | None = None,
                 timeout: float = 60.0) -> None:
        self.form, self.model = form, model
        self.url = url if form == "cohere" or url.rstrip("/").endswith("/rerank") else url.rstrip("/") + "/rerank"
        self.name = f"{form}:{model or self.url}"
        self._key_variable = key_variable
        self._timeout = timeout

    def rerank(self, query: str, passages: Sequence[Passage], k: int) -> list[Passage]:
        check_count("k", k)
        if not passages:
            return []
        texts = [passage.text or "" for passage in passages]
        payload: dict[str, Any]
        if self.form == "cohere":
            payload = {"model": self.model, "query": query, "documents": texts, "top_n": min(k, len(texts))}
        else:
            payload = {"query": query, "texts": texts, "raw_scores": False, "truncate": True}
        reply = post_json(self.url, payload, bearer(self._key_variable), timeout=self._timeout)
        found = self._pairs(reply, len(passages))
        kept = by_score([passages[index] for index, _ in found], [score for _, score in found], k)
        if any(not 0.0 <= (passage.score or 0.0) <= 1.0 for passage in kept):
            # Some servers of this form give logits; already calibrated scores must not be pressed a second time.
            warn(f"re-ranker {self.name}: scores lie outside of 0..1 and are taken for logits")
            return [replace(passage, score=sigmoid(passage.score or 0.0)) for passage in kept]
        return kept

    def _pairs(self, reply: Any, count: int) -> list[tuple[int, float]]:
        try:
            rows = reply["results"] if isinstance(reply, dict) else reply
            key = "relevance_score" if self.form == "cohere" else "score"
            pairs = [(row["index"], float(row[key])) for row in rows]
        except (KeyError, TypeError, ValueError) as error:
            raise RagkitError(f"{self.url}: expected an index and a score for each text, got {str(reply)[:200]}"
                              ) from error
        seen: set[int] = set()
        for index, _ in pairs:
            if not isinstance(index, int) or not 0 <= index < count or index in seen:
                raise RagkitError(f"{self.url}: expected each index of 0..{count - 1} at most once, got {index!r}")
            seen.add(index)
        if not pairs or (self.form == "tei" and len(pairs) != count):
            raise RagkitError(f"{self.url}: expected scores for {count} texts, got {len(pairs)}")
        return pairs
