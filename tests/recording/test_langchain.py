"""The LangChain hook on real parts: stores, chains, nested retrievers, graphs. Agents are in test_agents.py."""

from __future__ import annotations

import asyncio
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypedDict

import pytest

pytest.importorskip("langchain_core")

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

from ragkit.recording import Recorder
from ragkit.records.questions import text_id
from ragkit.records.trajectory import Step, Trajectory
from tests.support.recording_parts import TEXTS, WordEmbedding, chat, classic_retriever, documents

QUESTION = "Who built the lighthouse at Norrby?"
PROMPT = ChatPromptTemplate.from_template("Answer from these passages:\n{context}\n\nQuestion: {question}")


@pytest.fixture
def store() -> InMemoryVectorStore:
    store = InMemoryVectorStore(WordEmbedding())
    store.add_documents(documents())
    return store


def joined(found: list[Document]) -> str:
    return "\n\n".join(one.page_content for one in found)


def rag(retriever: Any, model: Any, context: Any = joined) -> Any:
    given = {"context": retriever | context, "question": RunnablePassthrough()}
    return given | PROMPT | model | StrOutputParser()


def shape(step: Step) -> list[tuple[str, tuple[str, ...]]]:
    return [(found.stage, found.ids) for found in step.retrievals]


class Reverse(BaseDocumentCompressor):
    """Turns the list around and keeps the first `top`."""

    top: int = 2

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        return list(reversed(documents))[: self.top]


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


class State(TypedDict, total=False):
    question: str
    documents: list[Document]
    answer: str


def graph(**nodes: Any) -> Any:
    from langgraph.graph import END, START, StateGraph

    builder = StateGraph(State)
    names = list(nodes)
    for name in names:
        builder.add_node(name, nodes[name])
    for before, after in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(before, after)
    return builder.compile()


def test_graph_nodes_that_grade_and_pass_on_documents_are_stages(store: InMemoryVectorStore) -> None:
    model = chat("Ada Lund.")
    app = graph(
        retrieve=lambda s: {"documents": store.as_retriever(search_kwargs={"k": 4}).invoke(s["question"])},
        rerank=lambda s: {"documents": [s["documents"][i] for i in (1, 0, 3)]},
        grade=lambda s: {"documents": s["documents"][:2]},
        generate=lambda s: {
            "documents": s["documents"],  # passed on unchanged, as tutorials do: no stage
            "answer": model.invoke(PROMPT.format(context=joined(s["documents"]), question=s["question"])).content,
        },
    )
    with Recorder().trace(QUESTION) as trace:
        app.invoke({"question": QUESTION})
    (step,) = trace.trajectory.steps
    first = step.retrievals[-1].ids
    assert shape(step) == [
        ("filter", (first[1], first[0])), ("rerank", (first[1], first[0], first[3])), ("retrieve", first),
    ]
    assert [one.name for one in step.retrievals] == ["grade", "rerank", "VectorStoreRetriever"]
    assert trace.trajectory.answer == "Ada Lund."
    assert trace.trajectory.context is not None and trace.trajectory.context.ids == step.outermost.ids


def test_a_grader_that_drops_everything_and_a_search_that_no_callback_told() -> None:
    app = graph(
        retrieve=lambda s: {"documents": documents("d3 d4")},
        grade=lambda s: {"documents": []},
        web=lambda s: {"documents": [*s["documents"], Document(id="w1", page_content="From the web.")]},
    )
    with Recorder().trace(QUESTION) as trace:
        app.invoke({"question": QUESTION})
    first, second = trace.trajectory.steps
    assert shape(first) == [("filter", ()), ("retrieve", ("d3", "d4"))]
    assert first.retrievals[1].query == QUESTION
    assert shape(second) == [("retrieve", ("w1",))]
    assert [first.turn, second.turn] == [0, 1]


def test_a_node_in_a_loop_that_searches_again_is_a_new_step() -> None:
    from langgraph.graph import END, START, StateGraph

    rounds = iter(["d1 d2", "d2", "d2 d1"])
    builder = StateGraph(State)
    builder.add_node("retrieve", lambda s: {"documents": documents(next(rounds))})
    builder.add_edge(START, "retrieve")
    left = iter(["retrieve", "retrieve", END])
    builder.add_conditional_edges("retrieve", lambda s: next(left))
    with Recorder().trace(QUESTION) as trace:
        builder.compile().invoke({"question": QUESTION})
    assert [step.outermost.ids for step in trace.trajectory.steps] == [("d1", "d2"), ("d2",), ("d2", "d1")]
    assert [step.turn for step in trace.trajectory.steps] == [0, 1, 2]


def test_sub_graphs_restart_their_steps_and_turns_go_on(store: InMemoryVectorStore) -> None:
    retriever = store.as_retriever(search_kwargs={"k": 1})
    search = lambda query: lambda s: {"documents": retriever.invoke(query)}  # noqa: E731
    inner = graph(look=search("lighthouse"), again=search("cheese"))
    app = graph(first=inner, second=graph(look=search("harbour")))
    with Recorder().trace(QUESTION) as trace:
        app.invoke({"question": QUESTION})
    steps = trace.trajectory.steps
    assert [step.outermost.query for step in steps] == ["lighthouse", "cheese", "harbour"]
    assert [step.turn for step in steps] == [0, 1, 2]
    assert all(len(step.retrievals) == 1 for step in steps)


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
