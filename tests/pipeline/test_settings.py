"""Settings: what is refused at birth, in one line."""

from __future__ import annotations

from typing import Any

import pytest

from ragkit.errors import DataError
from ragkit.pipeline.settings import ChromaSettings, PipelineConfig


@pytest.mark.parametrize(("settings", "message"), [
    ({"k": 0}, "k: expected a whole number of at least 1, got 0"),
    ({"k": True}, "k: expected"),
    ({"context_k": 0}, "context_k: expected"),
    ({"max_steps": -1}, "max_steps: expected"),
    ({"chunk_overlap": 5}, None),
    ({"chunk_size": 5, "chunk_overlap": 5}, "chunk_overlap: expected 0 <="),
    ({"retriever": "magic"}, "retriever: expected dense, lexical, hybrid, got 'magic'"),
    ({"agent": "magic"}, "agent: expected none, iterative, tools"),
    ({"agent": "tools"}, "expected a chat model as generator, got 'extractive'"),
    ({"reranker": "magic"}, "reranker 'magic': expected"),
    ({"reranker": "cohere:http://h/v2/rerank"}, "the model after the #"),
    ({"reranker": "tei:localhost"}, "reranker 'tei:localhost': expected"),
    ({"rerank_threshold": 0.5}, "rerank_threshold: expected a re-ranker with probabilities"),
    ({"rerank_threshold": 0.5, "reranker": "maxsim"}, "rerank_threshold: expected a re-ranker with probabilities"),
    ({"chroma": {"where": "x"}}, "chroma: unknown key 'where'"),
    ({"chroma": {"path": "x", "url": "http://h"}}, "a path or a url, got both"),
    ({"chroma": {"url": "localhost:8000"}}, r"an http\(s\) url"),
    ({"chroma": {"attach": True}}, "attach needs"),
])
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], message: str | None) -> None:
    if message is None:
        assert PipelineConfig(**settings).chunk_overlap == 5  # without chunks it means nothing and does no harm
        return
    with pytest.raises(DataError, match=message) as caught:
        PipelineConfig(**settings)
    assert "\n" not in str(caught.value)


def test_the_fingerprint_tells_settings_apart_and_is_stable() -> None:
    base = PipelineConfig()
    assert base.fingerprint == PipelineConfig().fingerprint != PipelineConfig(k=9).fingerprint
    named = PipelineConfig(chroma={"path": "x", "collection": "c"})  # type: ignore[arg-type]
    assert named.chroma == ChromaSettings(path="x", collection="c") and named.fingerprint != base.fingerprint
