"""LangGraph nodes that give, grade, re-rank and drop lists of Documents, and graphs inside graphs."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest

pytest.importorskip("langgraph")

from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore

from ragkit.recording import Recorder
from tests.support.recording_parts import chat, documents, shape

QUESTION = "Who built the lighthouse at Norrby?"
PROMPT = ChatPromptTemplate.from_template("Answer from these passages:\n{context}\n\nQuestion: {question}")


def joined(found: list[Document]) -> str:
    return "\n\n".join(one.page_content for one in found)


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
