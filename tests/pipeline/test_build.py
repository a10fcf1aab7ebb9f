"""The whole pipeline with its real parts: what it answers, what it records, what variants share."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ragkit.errors import DataError
from ragkit.pipeline import build as build_module
from ragkit.pipeline.build import PartCache, build_pipeline
from ragkit.pipeline.generate import NOT_FOUND
from ragkit.pipeline.protocols import Pipeline
from ragkit.pipeline.settings import ChromaSettings, PipelineConfig
from ragkit.recording import Recorder
from ragkit.records.questions import Document
from ragkit.records.trajectory import Trajectory
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.pipeline_parts import CountingEmbedder, chroma_server, corpus


@pytest.fixture(scope="module")
def cache() -> Iterator[PartCache]:
    made = PartCache()
    yield made
    made.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("index")


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> CountingEmbedder:
    """Pipelines without a real model, where only the plumbing is at stake."""
    embedder = CountingEmbedder()
    monkeypatch.setattr(build_module, "load_embedder", lambda spec, key: embedder)
    return embedder


def ask(pipeline: Pipeline, question: str) -> Trajectory:
    with Recorder().trace(question) as trace:
        answer = pipeline(question)
    assert trace.trajectory.answer == (answer or None) or not answer
    return trace.trajectory


def test_the_default_pipeline_answers_and_records_itself(cache: PartCache, folder: Path) -> None:
    pipeline = build_pipeline(PipelineConfig(k=3), corpus(), folder, cache)
    seen = ask(pipeline, "Which person designed the beacon in Norrby?")
    step, = seen.steps
    assert [r.stage for r in step.retrievals] == ["retrieve"] and step.outermost.score_kind == "distance"
    assert step.outermost.name == "chroma" and step.outermost.ids[0] == "lamp" and len(step.outermost.ids) == 3
    distances = [passage.score or 0.0 for passage in step.outermost.passages]
    assert distances == sorted(distances) and step.outermost.ms is not None and step.outermost.ms > 0
    assert seen.context is not None and seen.context.ids == step.outermost.ids and seen.context.ranked
    assert seen.answer is not None and "Ada Lund" in seen.answer
    assert pipeline.index_ids == frozenset(corpus()) and pipeline.fingerprints["space"] == "cosine"
    assert pipeline.fingerprints["embedder"].startswith("minilm:")
    assert ask(pipeline, "What is the boiling point of mercury?").answer == NOT_FOUND


def test_every_stage_of_a_hybrid_search_with_reranker_is_recorded(cache: PartCache, folder: Path) -> None:
    config = PipelineConfig(retriever="hybrid", reranker="maxsim", k=2, candidates=4, generator=None)
    seen = ask(build_pipeline(config, corpus(), folder, cache), "Who built the lighthouse at Norrby?")
    step, = seen.steps
    assert [(r.stage, r.name) for r in step.retrievals] == [
        ("rerank", "maxsim"), ("fuse", "rrf"), ("retrieve", "bm25"), ("retrieve", "chroma")]
    rerank, fused, lexical, dense = step.retrievals
    assert len(rerank.ids) == 2 and len(dense.ids) == 4 and set(rerank.ids) <= set(fused.ids)
    assert fused.ids == tuple(dict.fromkeys(fused.ids)) and len(fused.ids) <= 4
    assert rerank.ids[0] == "lamp" and set(fused.ids) <= set(lexical.ids) | set(dense.ids)
    assert (lexical.score_kind, dense.score_kind) == ("similarity", "distance")
    assert seen.answer is None and seen.context is not None and seen.context.ids == rerank.ids


def test_it_works_without_a_trace_and_from_many_threads(cache: PartCache, folder: Path) -> None:
    config = PipelineConfig(retriever="hybrid", k=2, context_k=1)
    pipeline = build_pipeline(config, corpus(), folder, cache)
    questions = ["Who built the lighthouse at Norrby?", "When does the harbour of Norrby freeze?"] * 4
    alone = [pipeline(question) for question in questions]
    recorder = Recorder()

    def one(number: int) -> str:
        with recorder.trace(questions[number], repeat=number):
            return pipeline(questions[number])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(8))) == alone
    assert [len(t.steps) for t in recorder.trajectories] == [1] * 8
    assert all(t.context is not None and len(t.context.ids) == 1 for t in recorder.trajectories)


def test_the_lexical_pipeline_needs_no_model_and_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "load_embedder", lambda *a: pytest.fail("no embedder is needed"))
    pipeline = build_pipeline(PipelineConfig(retriever="lexical", k=2), corpus(), tmp_path)
    assert pipeline("Who built the lighthouse at Norrby?").startswith("The lighthouse at Norrby was built")
    assert list(tmp_path.iterdir()) == []


def test_building_and_asking_contacts_nobody(
    counting: CountingEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contacted: list[object] = []  # C59
    monkeypatch.setattr(socket.socket, "connect", lambda self, address: contacted.append(address))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: contacted.append(a) or [])
    pipeline = build_pipeline(PipelineConfig(retriever="hybrid", agent="iterative"), corpus(), tmp_path)
    assert pipeline("Who built the lighthouse at Norrby?")
    pipeline.close()
    assert contacted == []


def test_variants_share_their_parts_and_a_second_build_embeds_nothing(
    counting: CountingEmbedder, tmp_path: Path
) -> None:
    cache = PartCache()
    first = build_pipeline(PipelineConfig(k=2), corpus(), tmp_path, cache)
    second = build_pipeline(PipelineConfig(k=3, retriever="hybrid", agent="iterative"), corpus(), tmp_path, cache)
    assert len(counting.asked) == 6 and first.fingerprints["collection"] == second.fingerprints["collection"]
    first.close()
    assert second("Who built the lighthouse?")  # a shared store is not closed by one of its users
    cache.close()
    asked = len(counting.asked)
    again = build_pipeline(PipelineConfig(k=2), corpus(), tmp_path)
    assert len(counting.asked) == asked and again("Who built the lighthouse at Norrby?")
    again.close()


def test_a_changed_corpus_is_what_is_searched(counting: CountingEmbedder, tmp_path: Path) -> None:
    with_vik = build_pipeline(PipelineConfig(k=9, generator=None), corpus("lamp", "vik"), tmp_path)
    with_vik.close()
    changed = {**corpus("lamp"), "ice": Document("ice", "The harbour is blue.")}
    pipeline = build_pipeline(PipelineConfig(k=9, generator=None), changed, tmp_path)
    assert sorted(ask(pipeline, "harbour").steps[0].outermost.ids) == ["ice", "lamp"]
    pipeline.close()


def test_two_chunkings_of_one_corpus_live_beside_each_other(counting: CountingEmbedder, tmp_path: Path) -> None:
    cache = PartCache()
    whole = build_pipeline(PipelineConfig(k=50, generator=None), corpus(), tmp_path, cache)
    cut = build_pipeline(PipelineConfig(k=50, chunk_size=40, generator=None), corpus(), tmp_path, cache)
    assert whole.fingerprints["collection"] != cut.fingerprints["collection"]
    assert len(whole.index_ids) == 6 < len(cut.index_ids)
    found = ask(cut, "goat cheese").steps[0].outermost.passages
    assert {passage.id for passage in found} == cut.index_ids
    assert all(p.doc_id == p.id.split("#")[0] and "start" in p.metadata for p in found)
    with pytest.raises(DataError, match="was made with chunker 'whole:1', got 'characters:1:40:0'"):
        named = ChromaSettings(collection="one name")
        build_pipeline(PipelineConfig(chroma=named), corpus(), tmp_path, cache)
        build_pipeline(PipelineConfig(chroma=named, chunk_size=40), corpus(), tmp_path, cache)
    cache.close()


def test_empty_documents_survive_and_an_empty_corpus_does_not(counting: CountingEmbedder, tmp_path: Path) -> None:
    documents = {**corpus("lamp"), "471": Document("471", ""), "995": Document("995", " ")}
    pipeline = build_pipeline(PipelineConfig(retriever="hybrid", generator=None), documents, tmp_path)
    assert pipeline.notes == ("index: 2 of 3 passages hold no text and are not indexed (471, 995)",)
    assert ask(pipeline, "lighthouse").steps[0].outermost.ids == ("lamp",) and pipeline.index_ids == {"lamp"}
    pipeline.close()
    for empty in ({}, {"471": Document("471", "")}, None):
        with pytest.raises(DataError, match="corpus: expected"):
            build_pipeline(PipelineConfig(), empty, tmp_path)


def test_an_attached_collection_is_searched_in_its_own_space(counting: CountingEmbedder, tmp_path: Path) -> None:
    import chromadb
    from chromadb.config import Settings

    client = chromadb.PersistentClient(str(tmp_path), Settings(anonymized_telemetry=False))
    client.create_collection("theirs", embedding_function=None).add(
        ids=["k1", "k2"], embeddings=counting.embed_documents(["fog bell", "lamp oil"]).tolist(),
        documents=["fog bell", "lamp oil"], metadatas=[{"doc_id": "a"}, {"doc_id": "b"}])
    client.close()
    settings = ChromaSettings(path=str(tmp_path), collection="theirs", attach=True)
    config = PipelineConfig(retriever="hybrid", chroma=settings, generator=None, k=5)
    pipeline = build_pipeline(config, None, tmp_path / "unused")
    assert "says not which model made its vectors" in pipeline.notes[0] and pipeline.fingerprints["space"] == "l2"
    assert pipeline.index_ids == {"k1", "k2"} and {p.doc_id for p in pipeline.passages} == {"a", "b"}
    assert ask(pipeline, "bell").steps[0].outermost.ids[0] == "k1"
    pipeline.close()
    assert not (tmp_path / "unused").exists()


def test_a_pipeline_over_an_http_server(counting: CountingEmbedder, tmp_path: Path) -> None:
    with chroma_server(tmp_path / "server") as url:
        config = PipelineConfig(chroma=ChromaSettings(url=url), generator=None, k=1)
        pipeline = build_pipeline(config, corpus(), tmp_path / "unused")
        assert ask(pipeline, "fog bell bronze").steps[0].outermost.ids == ("bell",)
        pipeline.close()
    assert not (tmp_path / "unused").exists()


def test_the_tokens_of_a_chat_generator_are_counted_once(counting: CountingEmbedder, tmp_path: Path) -> None:
    with OpenAIServer(reply=lambda request: Answer("Ada Lund [1]", prompt_tokens=1100)) as server:
        config = PipelineConfig(k=2, generator=f"{server.url}#tiny")
        seen = ask(build_pipeline(config, corpus(), tmp_path), "Who built the lighthouse?")
        request, = server.calls
    assert seen.answer == "Ada Lund [1]" and '<passage number="2">' in request.prompt
    assert seen.context is not None and seen.context.ranked and len(seen.context.ids) == 2
    assert seen.usage["input_tokens"] == 1100 and seen.usage["output_tokens"] > 0


def test_mmr_and_a_failing_search_are_recorded(counting: CountingEmbedder, tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    config = PipelineConfig(k=2, candidates=4, reranker="mmr", generator=None)
    pipeline = build_pipeline(config, corpus(), tmp_path)
    seen = ask(pipeline, "lighthouse lamp")
    assert [r.stage for r in seen.steps[0].retrievals] == ["rerank", "retrieve"] and len(counting.asked) == 6
    monkeypatch.setattr(counting, "embed_query", lambda text: 1 / 0)
    recorder = Recorder()
    with pytest.raises(ZeroDivisionError), recorder.trace("lamp"):
        pipeline("lamp")
    failed, = recorder.trajectories
    assert failed.error is not None and failed.steps[0].outermost.error is not None
    pipeline.close()
