"""LangChain's own kinds of retrievers, real ones, and what each shows: lists, scores, ids, texts that change."""

from __future__ import annotations

import asyncio
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore

from ragkit.recording import Recorder
from ragkit.records.questions import text_id
from ragkit.records.trajectory import Step, Trajectory
from tests.support.recording_parts import TEXTS, WordEmbedding, chat, classic_compressor, classic_retriever, documents

QUESTION = "Who built the lighthouse at Norrby?"


@pytest.fixture
def chroma(tmp_path: Path) -> Any:
    chromadb = pytest.importorskip("chromadb")
    langchain_chroma = pytest.importorskip("langchain_chroma")
    client = chromadb.PersistentClient(str(tmp_path), chromadb.Settings(anonymized_telemetry=False))
    return langchain_chroma.Chroma("passages", WordEmbedding(), client=client)


def bm25(found: list[Document], k: int = 3) -> Any:
    pytest.importorskip("rank_bm25")
    with warnings.catch_warnings(action="ignore"):
        home = pytest.importorskip("langchain_community.retrievers")
        return home.BM25Retriever.from_documents(found, k=k)


def ask(app: Any, recorder: Recorder | None = None, question: str = QUESTION) -> Trajectory:
    with warnings.catch_warnings(action="ignore"), (recorder or Recorder()).trace(question) as trace:
        app.invoke(question)
    return trace.trajectory


def shape(step: Step) -> list[tuple[str, str]]:
    return [(found.stage, found.name) for found in step.retrievals]


def test_bm25_without_ids_and_chroma_with_given_ones_name_a_chunk_once(chroma: Any) -> None:
    chroma.add_documents(documents())
    bare = [Document(page_content=text) for text in TEXTS.values()]
    both = classic_retriever("EnsembleRetriever")(
        retrievers=[bm25(bare), chroma.as_retriever(search_kwargs={"k": 5})], weights=[0.5, 0.5])
    (step,) = ask(both).steps
    assert shape(step) == [("fuse", "EnsembleRetriever"), ("retrieve", "BM25Retriever"),
                           ("retrieve", "VectorStoreRetriever")]
    assert len(step.retrievals[1].ids) == 3
    assert all(set(found.ids) <= set(TEXTS) for found in step.retrievals)
    assert len(step.outermost.ids) == len(set(step.outermost.ids)) == 5


def test_bm25_without_ids_and_chroma_with_random_ones_name_a_chunk_once(chroma: Any) -> None:
    bare = [Document(page_content=text) for text in TEXTS.values()]
    chroma.add_documents(bare)  # makes random ids of its own
    both = classic_retriever("EnsembleRetriever")(
        retrievers=[bm25(bare), chroma.as_retriever(search_kwargs={"k": 5})], weights=[0.5, 0.5])
    (step,) = ask(both).steps
    made = set(step.retrievals[2].ids)
    assert len(made) == 5 and set(step.retrievals[1].ids) <= made and set(step.outermost.ids) == made
    alone = ask(bm25(bare)).steps[0]  # nobody gave an id: that of the text
    assert set(alone.outermost.ids) <= {text_id(text) for text in TEXTS.values()}


def test_two_given_ids_of_one_text_stay_apart_and_the_merge_is_noted(store: InMemoryVectorStore) -> None:
    other = InMemoryVectorStore(WordEmbedding())
    other.add_texts(list(TEXTS.values()), ids=[f"copy of {name}" for name in TEXTS])
    both = classic_retriever("EnsembleRetriever")(
        retrievers=[store.as_retriever(search_kwargs={"k": 1}), other.as_retriever(search_kwargs={"k": 1})],
        weights=[0.5, 0.5])
    trajectory = ask(both)
    (step,) = trajectory.steps
    assert [found.ids for found in step.retrievals] == [("d1",), ("d1",), ("copy of d1",)]
    assert trajectory.meta["notices"] == ("copy of d1 merged into d1 (same text)",)


def test_parent_documents_stand_above_the_chunks_that_led_to_them(store: InMemoryVectorStore) -> None:
    splitters = pytest.importorskip("langchain_text_splitters")
    chunks = InMemoryVectorStore(WordEmbedding())
    parents = classic_retriever("ParentDocumentRetriever")(
        vectorstore=chunks, docstore=InMemoryStore(), search_kwargs={"k": 3},
        child_splitter=splitters.CharacterTextSplitter(separator=" ", chunk_size=30, chunk_overlap=0))
    parents.add_documents(documents(), ids=list(TEXTS))
    assert [found.ids[0] for found in ask(parents).steps[0].retrievals] == ["d1"]
    recorder = Recorder()
    with recorder.instrument(parents):
        (step,) = ask(parents, recorder).steps
        (again,) = ask(type("Async", (), {"invoke": lambda _, q: asyncio.run(parents.ainvoke(q))})(), recorder).steps
    for one in (step, again):
        assert shape(one) == [("retrieve", "ParentDocumentRetriever"), ("retrieve", "InMemoryVectorStore")]
        outer, inner = one.retrievals
        assert outer.ids[0] == "d1" and set(outer.ids) <= set(TEXTS)
        assert [passage.doc_id for passage in inner.passages] == list(outer.ids)
        assert inner.score_kind == "similarity" and all(passage.score is not None for passage in inner.passages)


class Rewriting(BaseDocumentCompressor):
    """As an extractor that asks a model: other words, no id, the metadata kept; one passage is dropped."""

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        return [Document(page_content=f"In short: {one.page_content[4:12]}.", metadata=one.metadata)
                for one in documents[:2]]


@pytest.mark.parametrize("watched", [False, True])
def test_texts_changed_by_compression_keep_the_id_of_where_they_came_from(store: Any, watched: bool) -> None:
    compressing = classic_retriever("ContextualCompressionRetriever")(
        base_compressor=Rewriting(), base_retriever=store.as_retriever(search_kwargs={"k": 4}))
    recorder = Recorder()
    if watched:
        recorder.instrument(compressing)
    (step,) = ask(compressing, recorder).steps
    outer, inner = step.retrievals
    assert (outer.stage, inner.stage, outer.score_kind) == ("filter", "retrieve", "unknown")
    assert outer.ids == inner.ids[:2] and len(inner.ids) == 4
    assert str(outer.passages[0].text).startswith("In short") and inner.passages[0].text == TEXTS[inner.ids[0]]


def test_an_extractor_that_asks_a_model_leaves_its_question_out_of_the_context(store: Any) -> None:
    one = store.as_retriever(search_kwargs={"k": 1})
    extractor = classic_compressor("LLMChainExtractor").from_llm(chat("The lighthouse at Norrby was built by Ada Lund"))
    compressing = classic_retriever("ContextualCompressionRetriever")(base_compressor=extractor, base_retriever=one)
    model = chat("Ada Lund.")
    with Recorder().trace(QUESTION) as trace:
        found = compressing.invoke(QUESTION)
        model.invoke(f"{found[0].page_content}\n\n{QUESTION}")
    (step,) = trace.trajectory.steps
    assert [(found.stage, found.ids) for found in step.retrievals] == [("filter", ("d1",)), ("retrieve", ("d1",))]
    assert trace.trajectory.context is not None and trace.trajectory.context.ids == ("d1",)
    assert "truncated" not in trace.trajectory.context.passages[0].metadata


def test_what_a_compressor_asks_a_model_is_not_what_the_answer_was_written_from(store: Any) -> None:
    """A check after the answer: the passages stand in the prompt of the compressor, and in no other."""
    extractor = classic_compressor("LLMChainExtractor").from_llm(chat("The lighthouse at Norrby was built"))
    compressing = classic_retriever("ContextualCompressionRetriever")(
        base_compressor=extractor, base_retriever=store.as_retriever(search_kwargs={"k": 1}))
    with pytest.warns(UserWarning, match="not found in the last prompt"), Recorder().trace(QUESTION) as trace:
        chat("Ada Lund.").invoke(QUESTION)
        compressing.invoke(QUESTION)
        trace.answer("In other words: she did.")
    assert len(trace.trajectory.steps) == 1 and trace.trajectory.context is None


def test_chunks_of_one_document_are_not_told_apart_by_what_they_share() -> None:
    shared = [Document(id=name, page_content=text, metadata={"source": "all.txt"}) for name, text in TEXTS.items()]
    store = InMemoryVectorStore(WordEmbedding())
    store.add_documents(shared)
    compressing = classic_retriever("ContextualCompressionRetriever")(
        base_compressor=Rewriting(), base_retriever=store.as_retriever(search_kwargs={"k": 3}))
    (step,) = ask(compressing).steps
    assert not set(step.outermost.ids) & set(TEXTS) and {one.doc_id for one in step.outermost.passages} == {"all.txt"}


def test_a_neighbour_with_the_metadata_of_a_passage_is_not_taken_for_it(store: InMemoryVectorStore) -> None:
    class WithNeighbour(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            (found,) = store.as_retriever(search_kwargs={"k": 1}).invoke(query)
            return [found, Document(page_content="What stands beside it in the file.", metadata=found.metadata)]

    (step,) = ask(WithNeighbour()).steps
    assert step.outermost.ids == ("d1", text_id("What stands beside it in the file."))


def test_a_pipeline_of_compressors_is_one_list_each(store: InMemoryVectorStore) -> None:
    class Reranker(BaseDocumentCompressor):
        def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
            scored = zip((0.9, 0.7), documents[::-1], strict=False)
            return [one.model_copy(update={"metadata": {**one.metadata, "relevance_score": s}}) for s, one in scored]

    class Keep(BaseDocumentCompressor):
        def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
            return documents[:1]

    pipeline = classic_compressor("DocumentCompressorPipeline")(transformers=[Reranker(), Keep()])
    compressing = classic_retriever("ContextualCompressionRetriever")(
        base_compressor=pipeline, base_retriever=store.as_retriever(search_kwargs={"k": 3}))
    recorder = Recorder()
    with recorder.instrument(compressing):
        (step,) = ask(compressing, recorder).steps
    assert shape(step) == [("filter", "Keep"), ("rerank", "Reranker"), ("retrieve", "VectorStoreRetriever")]
    keep, rerank, retrieve = step.retrievals
    assert rerank.ids == retrieve.ids[:0:-1] and keep.ids == rerank.ids[:1]
    assert [passage.score for passage in rerank.passages] == [0.9, 0.7]
    assert [found.score_kind for found in step.retrievals] == ["similarity"] * 3


def test_merged_lists_and_a_rephrased_query(store: InMemoryVectorStore) -> None:
    merger = classic_retriever("MergerRetriever")(retrievers=[
        store.as_retriever(search_kwargs={"k": 2}), store.as_retriever(search_kwargs={"k": 1})])
    (step,) = ask(merger).steps
    assert shape(step)[0] == ("fuse", "MergerRetriever") and len(step.retrievals) == 3
    rephrasing = classic_retriever("RePhraseQueryRetriever").from_llm(
        store.as_retriever(search_kwargs={"k": 2}), chat("known for cheese and rain"))
    (step,) = ask(rephrasing).steps
    outer, inner = step.retrievals
    assert (outer.query, inner.query) == (QUESTION, "known for cheese and rain")
    assert outer.ids == inner.ids and outer.ids[0] == "d4" and outer.stage == inner.stage == "retrieve"


def test_a_retriever_in_an_ensemble_that_fails_leaves_the_others_visible(store: InMemoryVectorStore) -> None:
    class Failing(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            raise ConnectionError("index unreachable")

    both = classic_retriever("EnsembleRetriever")(
        retrievers=[store.as_retriever(search_kwargs={"k": 1}), Failing()], weights=[0.5, 0.5])
    with pytest.raises(ConnectionError), Recorder().trace(QUESTION) as trace:
        both.invoke(QUESTION)
    (step,) = trace.trajectory.steps
    errors = {found.name: found.error for found in step.retrievals}
    assert errors["Failing"] == errors["EnsembleRetriever"] == "ConnectionError: index unreachable"
    assert errors["VectorStoreRetriever"] is None and step.outermost.error is not None
