"""Retrievers made of retrievers: what stands beneath what, in one step."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore

from ragkit.recording import Recorder
from tests.support.recording_parts import TEXTS, WordEmbedding, chat, classic_retriever, shape

QUESTION = "Who built the lighthouse at Norrby?"


class Reverse(BaseDocumentCompressor):
    """Turns the list around and keeps the first `top`."""

    top: int = 2

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        return list(reversed(documents))[: self.top]


class Lexical(BaseRetriever):
    """BM25 over bare texts: like LangChain's own, it knows no ids."""

    texts: list[str]
    k: int = 3

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        import bm25s

        model = bm25s.BM25()
        model.index(bm25s.tokenize(self.texts, show_progress=False), show_progress=False)
        asked = bm25s.tokenize(query, show_progress=False)
        rows, _ = model.retrieve(asked, k=self.k, show_progress=False)
        return [Document(page_content=self.texts[row]) for row in rows[0]]


def test_ensemble_is_one_step_and_texts_without_ids_get_those_of_the_store(store: InMemoryVectorStore) -> None:
    dense, lexical = store.as_retriever(search_kwargs={"k": 3}), Lexical(texts=list(TEXTS.values()))
    both = classic_retriever("EnsembleRetriever")(retrievers=[lexical, dense], weights=[0.5, 0.5])
    with Recorder().trace(QUESTION) as trace:
        found = both.invoke(QUESTION)
    (step,) = trace.trajectory.steps
    assert [one.stage for one in step.retrievals] == ["fuse", "retrieve", "retrieve"]
    assert [one.name for one in step.retrievals] == ["EnsembleRetriever", "Lexical", "VectorStoreRetriever"]
    known = {"d1", "d3", "d2", "d4", "d5"}
    assert set(step.outermost.ids) <= known and len(step.outermost.ids) == len(found)
    shared = set(step.retrievals[2].ids)  # aliased where the store showed the same text, else still generated
    assert step.retrievals[1].ids[0] == "d1" and shared <= known


def test_ensemble_async(store: InMemoryVectorStore) -> None:
    other = InMemoryVectorStore(WordEmbedding())
    other.add_texts(list(TEXTS.values())[:3], ids=["d1", "d2", "d3"])
    both = classic_retriever("EnsembleRetriever")(
        retrievers=[store.as_retriever(search_kwargs={"k": 2}), other.as_retriever(search_kwargs={"k": 3})],
        weights=[0.2, 0.8],
    )
    with Recorder().trace(QUESTION) as trace:
        asyncio.run(both.ainvoke("cheese and rain"))
    (step,) = trace.trajectory.steps
    assert [one.stage for one in step.retrievals] == ["fuse", "retrieve", "retrieve"]
    assert len(step.retrievals[2].ids) == 3


def test_contextual_compression_with_and_without_the_compressor_instrumented(store: InMemoryVectorStore) -> None:
    recorder = Recorder()
    base = store.as_retriever(search_kwargs={"k": 3})
    compressing = classic_retriever("ContextualCompressionRetriever")(base_compressor=Reverse(), base_retriever=base)
    with recorder.trace(QUESTION) as plain:
        compressing.invoke(QUESTION)
    first = plain.trajectory.steps[0].retrievals[-1].ids
    assert shape(plain.trajectory.steps[0]) == [("rerank", (first[2], first[1])), ("retrieve", first)]
    with recorder.instrument(compressing), recorder.trace(QUESTION) as watched:
        compressing.invoke(QUESTION)
        asyncio.run(compressing.ainvoke(QUESTION))
    for step in watched.trajectory.steps:
        assert shape(step) == shape(plain.trajectory.steps[0])
        assert step.outermost.name == "Reverse"
        assert step.retrievals[1].score_kind == "similarity" and step.retrievals[1].passages[0].score is not None


def test_multi_query_keeps_each_query_as_a_stage(store: InMemoryVectorStore) -> None:
    several = classic_retriever("MultiQueryRetriever").from_llm(
        store.as_retriever(search_kwargs={"k": 2}), chat("lighthouse Norrby\ncheese rain Vik")
    )
    with Recorder().trace(QUESTION) as trace:
        several.invoke(QUESTION)
    (step,) = trace.trajectory.steps
    assert [one.stage for one in step.retrievals] == ["fuse", "retrieve", "retrieve"]
    assert [one.query for one in step.retrievals] == [QUESTION, "lighthouse Norrby", "cheese rain Vik"]


def test_a_retriever_that_calls_another_without_its_callbacks(store: InMemoryVectorStore) -> None:
    base = store.as_retriever(search_kwargs={"k": 3})

    class Outer(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> Any:
            return base.invoke(query)[:1]

    with Recorder().trace(QUESTION) as trace:
        Outer().invoke(QUESTION)
        base.invoke(QUESTION)
    nested, alone = trace.trajectory.steps
    assert [one.stage for one in nested.retrievals] == ["filter", "retrieve"]
    assert [one.stage for one in alone.retrievals] == ["retrieve"]
