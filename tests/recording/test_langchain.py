"""The LangChain hook on real parts: stores and chains. Nested retrievers, nodes, graphs and agents are beside it."""

from __future__ import annotations

import asyncio
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

from ragkit.recording import Recorder
from ragkit.records.questions import text_id
from ragkit.records.trajectory import Trajectory
from tests.support.recording_parts import TEXTS, WordEmbedding, chat, documents, shape

QUESTION = "Who built the lighthouse at Norrby?"
PROMPT = ChatPromptTemplate.from_template("Answer from these passages:\n{context}\n\nQuestion: {question}")


def joined(found: list[Document]) -> str:
    return "\n\n".join(one.page_content for one in found)


def rag(retriever: Any, model: Any, context: Any = joined) -> Any:
    given = {"context": retriever | context, "question": RunnablePassthrough()}
    return given | PROMPT | model | StrOutputParser()


class Failing(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        raise ConnectionError("index unreachable")


def test_a_chain_gets_no_config_and_shows_list_context_answer_and_tokens(store: InMemoryVectorStore) -> None:
    usage = {"input_tokens": 11, "output_tokens": 3, "total_tokens": 14}
    app = rag(store.as_retriever(search_kwargs={"k": 3}), chat(AIMessage("Ada Lund.", usage_metadata=usage)))
    with Recorder().trace(QUESTION) as trace:
        assert app.invoke(QUESTION) == "Ada Lund."
    trajectory = trace.trajectory
    (step,) = trajectory.steps
    expected = tuple(found.id for found in store.similarity_search(QUESTION, k=3))
    assert shape(step) == [("retrieve", expected)]
    assert step.outermost.query == QUESTION and step.outermost.passages[0].doc_id == f"{expected[0]}.txt"
    assert step.outermost.name == "VectorStoreRetriever" and (step.ms or 0) > 0
    assert trajectory.context is not None
    assert (trajectory.context.ids, trajectory.context.ranked, trajectory.context.source) == (expected, True, "prompt")
    assert trajectory.answer == "Ada Lund." and trajectory.usage == {"input_tokens": 11, "output_tokens": 3}
    assert "warnings" not in trajectory.meta


def test_async_streams_and_side_by_side(store: InMemoryVectorStore) -> None:
    recorder = Recorder()

    async def ask(question: str, streamed: bool) -> Trajectory:
        app = rag(store.as_retriever(search_kwargs={"k": 1}), chat(f"About {question}"))
        with recorder.trace(question) as trace:
            if streamed:
                async for _ in app.astream(question):
                    pass
            else:
                await app.ainvoke(question)
        return trace.trajectory

    async def main() -> list[Trajectory]:
        questions = [TEXTS[one] for one in ("d1", "d2", "d3", "d4")]
        return await asyncio.gather(*(ask(one, number % 2 == 0) for number, one in enumerate(questions)))

    for number, trajectory in enumerate(asyncio.run(main())):
        assert shape(trajectory.steps[0]) == [("retrieve", (f"d{number + 1}",))]
        assert trajectory.answer == f"About {trajectory.question}"
        assert trajectory.context is not None and trajectory.context.ids == (f"d{number + 1}",)
    assert recorder.orphans == 0


def test_the_context_is_what_was_left_of_the_list(store: InMemoryVectorStore) -> None:
    app = rag(store.as_retriever(search_kwargs={"k": 4}), chat("x"), lambda found: joined(found[:2]))
    with Recorder().trace(QUESTION) as trace:
        app.invoke(QUESTION)
    assert trace.trajectory.context is not None
    assert trace.trajectory.context.ids == trace.trajectory.steps[0].outermost.ids[:2]
    assert trace.trajectory.context.ranked


def test_an_app_that_rewrites_its_passages_is_told_how_to_say_its_context(store: InMemoryVectorStore) -> None:
    app = rag(store.as_retriever(), chat("x"), lambda found: "a summary in other words")
    with pytest.warns(UserWarning, match="not found in the last prompt"), Recorder().trace(QUESTION) as trace:
        app.invoke(QUESTION)
    assert trace.trajectory.context is None


def test_a_check_after_the_answer_is_not_what_the_answer_was_written_from(store: InMemoryVectorStore) -> None:
    retriever = store.as_retriever(search_kwargs={"k": 2})
    app, judge = rag(retriever, chat("Ada Lund built it in 1881.")), chat("yes")
    check = ChatPromptTemplate.from_template("Is this supported? {answer}") | judge | StrOutputParser()
    with Recorder().trace(QUESTION) as trace:
        answer = app.invoke(QUESTION)
        check.invoke({"answer": answer})
        trace.answer(answer)
    assert trace.trajectory.context is not None and len(trace.trajectory.context.ids) == 2


def test_a_failing_retriever_is_an_error_step_and_a_fallback_the_next(store: InMemoryVectorStore) -> None:
    recorder = Recorder()
    with pytest.raises(ConnectionError), recorder.trace(QUESTION) as trace:
        rag(Failing(), chat("x")).invoke(QUESTION)
    (step,) = trace.trajectory.steps
    assert step.outermost.error == "ConnectionError: index unreachable" and step.outermost.ids == ()
    assert trace.trajectory.error == "ConnectionError: index unreachable"

    app = rag(Failing().with_fallbacks([store.as_retriever(search_kwargs={"k": 1})]), chat("Ada."))
    with recorder.trace(QUESTION) as mended:
        app.invoke(QUESTION)
    bad, good = mended.trajectory.steps
    assert bad.outermost.error and good.outermost.ids == ("d1",)
    assert mended.trajectory.error is None and mended.trajectory.context is not None


def test_a_cancelled_retriever_does_not_swallow_what_comes_after_it(store: InMemoryVectorStore) -> None:
    class Slow(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
            raise NotImplementedError

        async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
            await asyncio.sleep(60)

    async def main() -> Trajectory:
        with Recorder().trace(QUESTION) as trace:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await Slow().ainvoke(QUESTION)
            await store.as_retriever(search_kwargs={"k": 1}).ainvoke(QUESTION)
        return trace.trajectory

    slow, quick = asyncio.run(main()).steps
    assert slow.outermost.error == "did not finish" and len(slow.retrievals) == 1
    assert shape(quick) == [("retrieve", ("d1",))]


def test_an_empty_search_stays_visible_and_the_context_is_nothing() -> None:
    app = rag(InMemoryVectorStore(WordEmbedding()).as_retriever(), chat("I do not know."))
    with Recorder().trace(QUESTION) as trace:
        app.invoke(QUESTION)
    assert shape(trace.trajectory.steps[0]) == [("retrieve", ())]
    assert trace.trajectory.context is not None and trace.trajectory.context.ids == ()


def test_parallel_branches_share_a_turn_and_a_later_search_does_not(store: InMemoryVectorStore) -> None:
    one = store.as_retriever(search_kwargs={"k": 1})
    app = RunnableParallel(a=one, b=RunnableLambda(lambda q: f"{q} rain") | one) | RunnableLambda(
        lambda found: one.invoke(found["a"][0].page_content)
    )
    for config in ({}, {"max_concurrency": 1}):  # also where one waits for the other
        with warnings.catch_warnings(action="ignore"), Recorder().trace(QUESTION) as trace:
            app.invoke(QUESTION, config=config)
        assert [step.turn for step in trace.trajectory.steps] == [0, 0, 1]


def test_a_lambda_that_reranks_is_a_stage(store: InMemoryVectorStore) -> None:
    def rerank(found: list[Document]) -> list[Document]:
        return [found[2], found[0]]

    app = rag(store.as_retriever(search_kwargs={"k": 3}) | RunnableLambda(rerank), chat("x"))
    with Recorder().trace(QUESTION) as trace:
        app.invoke(QUESTION)
    (step,) = trace.trajectory.steps
    assert [(one.stage, one.name) for one in step.retrievals] == [
        ("rerank", "rerank"), ("retrieve", "VectorStoreRetriever"),
    ]
    assert trace.trajectory.context is not None and trace.trajectory.context.ids == step.outermost.ids
    assert trace.trajectory.context.ranked


def test_a_lambda_that_searches_by_itself_is_a_search() -> None:
    def own_search(query: str) -> list[Document]:
        return documents("d2 d1")

    with Recorder().trace(QUESTION) as trace:
        (RunnableLambda(own_search) | RunnableLambda(lambda found: found[:1])).invoke("who")
    (step,) = trace.trajectory.steps
    assert shape(step) == [("filter", ("d2",)), ("retrieve", ("d2", "d1"))]
    assert step.retrievals[1].query == "who"


def test_plain_code_around_retriever_and_model(store: InMemoryVectorStore) -> None:
    retriever, model = store.as_retriever(search_kwargs={"k": 2}), chat("Ada Lund.")
    with Recorder().trace(QUESTION) as trace:
        found = retriever.invoke(QUESTION)
        model.invoke(f"{joined(found)}\n{QUESTION}")
    assert trace.trajectory.answer == "Ada Lund." and trace.trajectory.meta["answer_source"] == "llm"
    assert trace.trajectory.context is not None and len(trace.trajectory.context.ids) == 2


def test_a_search_block_around_langchain_records_once(store: InMemoryVectorStore) -> None:
    retriever = store.as_retriever(search_kwargs={"k": 3})
    with Recorder().trace(QUESTION) as trace, trace.search(QUESTION) as search:
        found = retriever.invoke(QUESTION)
        search.stage("retrieve", "dense", found)
        search.result("rerank", "mine", found[::-1])
    (step,) = trace.trajectory.steps
    assert [one.name for one in step.retrievals] == ["mine", "dense"]


def test_documents_without_id_get_the_id_of_their_text() -> None:
    class Bare(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
            return [Document(page_content="no id here")]

    with Recorder().trace(QUESTION) as trace:
        Bare().invoke(QUESTION)
    assert trace.trajectory.steps[0].outermost.ids == (text_id("no id here"),)


def test_nothing_is_seen_outside_of_a_trace(store: InMemoryVectorStore) -> None:
    recorder = Recorder()
    with recorder.trace("first"):
        pass
    rag(store.as_retriever(), chat("x")).invoke(QUESTION)
    with recorder.trace("second") as trace:
        pass
    assert trace.trajectory.steps == () and recorder.orphans == 0


def in_raw_thread(function: Any, *args: Any) -> None:
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()


def test_a_raw_thread_is_guessed_and_bound_it_is_known(store: InMemoryVectorStore) -> None:
    recorder, app = Recorder(), rag(store.as_retriever(search_kwargs={"k": 1}), chat("one", "two"))
    with recorder.trace(QUESTION) as trace:
        in_raw_thread(app.invoke, "cheese")
        in_raw_thread(recorder.bind(app.invoke), "harbour")
    assert [step.outermost.query for step in trace.trajectory.steps] == ["cheese", "harbour"]
    assert trace.trajectory.meta["guessed"] == 1 and trace.trajectory.answer == "two"


def test_a_raw_thread_while_several_questions_run_is_left_out(store: InMemoryVectorStore) -> None:
    recorder, retriever = Recorder(), store.as_retriever(search_kwargs={"k": 1})
    inside = threading.Barrier(2, timeout=20)

    def ask(question: str) -> None:
        with recorder.trace(question):
            retriever.invoke(question)
            inside.wait()
            if question == "harbour":
                in_raw_thread(retriever.invoke, "whose?")
            inside.wait()

    with pytest.warns(UserWarning, match=r"recorder\.bind"), ThreadPoolExecutor(2) as pool:
        list(pool.map(ask, ["harbour", "cheese"]))
    assert recorder.orphans == 1
    assert [[step.outermost.query for step in one.steps] for one in recorder.trajectories] == [
        [one.question] for one in recorder.trajectories
    ]
