"""Re-rankers: probabilities by one sigmoid, ids that cannot get lost, endpoints in both forms, MaxSim, MMR."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragkit.errors import DataError, RagkitError
from ragkit.pipeline.maxsim import MaxSimReranker, TokenVectors
from ragkit.pipeline.rag import Searcher
from ragkit.pipeline.rerank import CrossEncoderReranker, MmrReranker, by_score, restored, sigmoid
from ragkit.pipeline.rerank_http import HttpReranker
from ragkit.records.trajectory import Passage
from tests.support.pipeline_parts import JsonServer, TableEmbedder, tiny_cross_encoder

THREE = [Passage("d1", "one", "D1", 0.1, {"page": 1}), Passage("d2", "two", "D2", 0.2), Passage("d3", "three")]


class Fixed:
    """A retriever that always finds the same."""

    name, score_kind = "fixed", "unknown"

    def __init__(self, passages: Sequence[Passage] = THREE) -> None:
        self.passages = list(passages)

    def retrieve(self, query: str, k: int) -> list[Passage]:
        return self.passages[:k]


def test_a_threshold_is_on_probabilities_not_on_logits() -> None:  # C73 a
    def reply(path: str, payload: Any) -> Any:
        return {"results": [{"index": i, "relevance_score": s} for i, s in enumerate([2.0, 0.4, -3.0])]}

    with JsonServer(reply) as server:
        reranker = HttpReranker("cohere", f"{server.url}/v2/rerank", "m")
        scores = [passage.score for passage in reranker.rerank("q", THREE, 3)]
        assert scores == pytest.approx([0.880797, 0.598688, 0.047426], abs=1e-6)
        kept = Searcher([Fixed()], reranker, k=3, threshold=0.5).search("q")
        assert [passage.id for passage in kept] == ["d1", "d2"]


def test_calibrated_scores_are_not_pressed_a_second_time() -> None:  # C73 b
    def reply(path: str, payload: Any) -> Any:
        return [{"index": i, "score": s} for i, s in enumerate([0.0029, 0.0003, 0.0])]

    with JsonServer(reply) as server:
        found = HttpReranker("tei", server.url).rerank("q", THREE, 3)
    assert [(passage.id, passage.score) for passage in found] == [("d1", 0.0029), ("d2", 0.0003), ("d3", 0.0)]


def test_ids_lost_by_a_reranker_come_back_or_are_a_loud_error() -> None:  # C73 c
    class Document:
        def __init__(self, text: str) -> None:
            self.page_content, self.metadata = text, {}

    found = restored(THREE, [Document("three"), Document("one")], "demo")
    assert [(p.id, p.doc_id, dict(p.metadata)) for p in found] == [("d3", None, {}), ("d1", "D1", {"page": 1})]
    with pytest.raises(RagkitError, match="'d9' which is none of them"):
        restored(THREE, [Passage("d9", "nine")], "demo")
    with pytest.raises(RagkitError, match="'d1' twice"):
        restored(THREE, [THREE[0], THREE[0]], "demo")
    same = [Passage("a", "T"), Passage("b", "T")]
    with pytest.raises(RagkitError, match="none of them"):
        restored(same, ["T"], "demo")  # nobody can tell which one


def test_a_search_never_lets_a_reranker_invent_passages() -> None:
    class Inventor:
        name, score_kind = "inventor", "similarity"

        def rerank(self, query: str, passages: Sequence[Passage], k: int) -> list[Passage]:
            return [Passage("made up", "text")]

    with pytest.raises(RagkitError, match="re-ranker inventor: expected passages of the 3 it was given"):
        Searcher([Fixed()], Inventor(), k=2).search("q")


def test_ties_keep_their_order_and_nan_is_an_error() -> None:
    assert [passage.id for passage in by_score(THREE, [0.5, 0.5, 0.9], 3)] == ["d3", "d1", "d2"]
    with pytest.raises(RagkitError, match="1 NaN"):
        by_score(THREE, [0.5, math.nan, 0.9], 3)
    assert sigmoid(-1000) == 0.0 and sigmoid(1000) == 1.0


@pytest.fixture(scope="module")
def raw_scores(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    made = [tiny_cross_encoder(tmp_path_factory.mktemp("ce"), kind) for kind in (None, "identity", "tanh")]
    return made[0], made[1], made[2]


def test_a_real_cross_encoder_gives_probabilities_whatever_its_activation(raw_scores: tuple[str, str, str]) -> None:
    import torch

    default, identity, tanh = (CrossEncoderReranker(path) for path in raw_scores)
    pairs = [("q", passage.text or "") for passage in THREE]
    logits = default.model.predict(pairs, activation_fn=torch.nn.Identity())
    expected = {p.id: sigmoid(float(x)) for p, x in zip(THREE, logits, strict=True)}
    assert len({round(value, 5) for value in expected.values()}) == 3
    for reranker in (default, identity):
        found = reranker.rerank("q", THREE, 3)
        assert reranker.probabilities and {p.id: p.score for p in found} == pytest.approx(expected, abs=1e-5)
        assert [p.id for p in found] == sorted(expected, key=lambda name: -expected[name])
    assert not tanh.probabilities
    kept = {p.id: p.score for p in tanh.rerank("q", THREE, 3)}
    assert kept == pytest.approx({p.id: math.tanh(float(x)) for p, x in zip(THREE, logits, strict=True)}, abs=1e-5)
    assert default.rerank("q", [], 3) == []


def test_a_missing_cross_encoder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^re-ranker .*cannot be loaded") as caught:
        CrossEncoderReranker(str(tmp_path / "nothing"))
    assert "\n" not in str(caught.value)


def test_coheres_form_asks_for_k_and_leads_indexes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RERANK_API_KEY", "secret-5")

    def reply(path: str, payload: Any) -> Any:
        return {"results": [{"index": 2, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]}

    with JsonServer(reply) as server:
        reranker = HttpReranker("cohere", f"{server.url}/v2/rerank", "rerank-3", "RERANK_API_KEY")
        found = reranker.rerank("question?", THREE, 2)
        path, payload, headers = server.requests[0]
    assert [(p.id, p.score) for p in found] == [("d3", 0.9), ("d1", 0.1)] and found[1].metadata["page"] == 1
    assert path == "/v2/rerank" and headers["Authorization"] == "Bearer secret-5"
    assert payload == {"model": "rerank-3", "query": "question?", "documents": ["one", "two", "three"], "top_n": 2}
    assert "secret" not in repr(vars(reranker))


def test_teis_form_sends_texts_and_asks_for_probabilities() -> None:
    scores = {"one": 0.2, "two": 0.7, "three": 0.1}

    def reply(path: str, payload: Any) -> Any:
        return sorted(({"index": i, "score": scores[t]} for i, t in enumerate(payload["texts"])),
                      key=lambda row: -row["score"])

    with JsonServer(reply) as server:
        found = HttpReranker("tei", server.url + "/").rerank("q", THREE, 2)
        path, payload, _ = server.requests[0]
    assert [p.id for p in found] == ["d2", "d1"] and path == "/rerank"
    assert payload["texts"] == ["one", "two", "three"] and payload["raw_scores"] is False


@pytest.mark.parametrize("rows", [
    [{"index": 3, "relevance_score": 1.0}], [{"index": -1, "relevance_score": 1.0}],
    [{"index": 0, "relevance_score": 1.0}, {"index": 0, "relevance_score": 0.5}],
    [{"index": "0", "relevance_score": 1.0}], [], [{"relevance_score": 1.0}], "nonsense", [{"index": 0}],
])
def test_a_reply_that_leads_nowhere_is_a_loud_error(rows: Any) -> None:
    with JsonServer(lambda path, payload: {"results": rows}) as server, pytest.raises(RagkitError, match="expected"):
        HttpReranker("cohere", server.url, "m").rerank("q", THREE, 3)


def test_tei_must_score_every_text() -> None:
    with JsonServer(lambda path, payload: [{"index": 0, "score": 1.0}]) as server, \
            pytest.raises(RagkitError, match="scores for 3 texts, got 1"):
        HttpReranker("tei", server.url).rerank("q", THREE, 3)


class Letters:
    """Token vectors by letter: "ab" is two unit rows. Counts what it encodes."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def token_vectors(self, texts: Sequence[str]) -> list[Any]:
        self.encoded.extend(texts)
        return [np.eye(26, dtype=np.float32)[[ord(letter) - 97 for letter in text]] for text in texts]


def test_maxsim_is_the_mean_of_the_best_matches_and_encodes_each_text_once() -> None:
    model = Letters()
    reranker = MaxSimReranker(model)
    given = [Passage("x", "cz"), Passage("y", "ab"), Passage("z", "bzz")]
    assert [(p.id, p.score) for p in reranker.rerank("abc", given, 3)] == [
        ("y", pytest.approx(2 / 3)), ("x", pytest.approx(1 / 3)), ("z", pytest.approx(1 / 3))]
    assert [p.id for p in reranker.rerank("z", given, 1)] == ["x"]
    assert model.encoded == ["abc", "cz", "ab", "bzz", "z"]


def test_token_vectors_are_let_go_above_the_limit() -> None:
    model = Letters()
    held = TokenVectors(model, limit=2)
    held.get(["a", "b"])
    held.get(["a", "c"])  # b is the longest unused
    held.get(["a", "b"])
    assert model.encoded == ["a", "b", "c", "b"]


def test_mmr_takes_the_nearest_and_then_what_is_unlike_it() -> None:
    table = TableEmbedder({"q": (1.0, 0.0), "near": (0.9, 0.1), "near too": (0.9, 0.11), "aside": (0.7, -0.7)})
    given = [Passage(text, text) for text in ("near", "near too", "aside")]
    assert [p.id for p in MmrReranker(table).rerank("q", given, 3)] == ["near", "aside", "near too"]
    assert [p.id for p in MmrReranker(table, weight=1.0).rerank("q", given, 3)] == ["near", "near too", "aside"]
    scores = [p.score or 0 for p in MmrReranker(table).rerank("q", given, 3)]
    assert scores == sorted(scores, reverse=True)
    with pytest.raises(DataError, match=r"weight in 0\.\.1"):
        MmrReranker(table, weight=2)
