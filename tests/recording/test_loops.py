"""Apps that gather: a state that grows in a loop of a graph, a re-rank node that happens to keep the order."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph")

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.graph import END, START, StateGraph

from ragkit.recording import Recorder
from ragkit.records.trajectory import Trajectory
from tests.support.recording_parts import WordEmbedding, chat, documents

FIRST = "lighthouse Norrby builder"


class State(TypedDict, total=False):
    queries: Annotated[list[str], operator.add]
    found: list[Document]
    kept: list[Document]
    answer: str


def ask(rerank: Any, second: str = "Ada Lund born", unique: bool = False) -> Trajectory:
    """Two rounds of search, re-rank and keep; then the answer from all that was kept."""
    store = InMemoryVectorStore(WordEmbedding())
    store.add_documents(documents())
    retriever, model = store.as_retriever(search_kwargs={"k": 4}), chat("In Vik.")

    def keep(state: State) -> State:
        known = {one.id for one in state.get("kept", [])} if unique else set()
        return {"kept": state.get("kept", []) + [one for one in state["found"] if one.id not in known]}

    builder = StateGraph(State)
    builder.add_node("search", lambda state: {"found": retriever.invoke(state["queries"][-1])})
    builder.add_node("rerank", rerank)
    builder.add_node("keep", keep)
    builder.add_node("rewrite", lambda state: {"queries": [second]})
    builder.add_node("write", lambda state: {
        "answer": model.invoke("\n\n".join(one.page_content for one in state["kept"])).content})
    builder.add_edge(START, "search")
    builder.add_edge("search", "rerank")
    builder.add_edge("rerank", "keep")
    builder.add_conditional_edges("keep", lambda state: "write" if len(state["queries"]) == 2 else "rewrite",
                                  ["write", "rewrite"])
    builder.add_edge("rewrite", "search")
    builder.add_edge("write", END)
    with Recorder().trace("Where was the builder born?") as trace:
        builder.compile().invoke({"queries": [FIRST]})
    return trace.trajectory


def first_and_last(state: State) -> State:
    return {"found": [state["found"][0], state["found"][-1]][::-1]}


@pytest.mark.parametrize(("second", "unique"), [
    ("Ada Lund born", False), ("Ada Lund born", True), ("builder born keeper lighthouse", False)])
def test_what_a_loop_gathers_is_no_list_of_its_last_step(second: str, unique: bool) -> None:
    trajectory = ask(first_and_last, second, unique)
    for step in trajectory.steps:  # though the last search holds all that was gathered by then
        assert [one.name for one in step.retrievals] == ["rerank", "VectorStoreRetriever"]
    first, last = trajectory.steps
    assert set(first.outermost.ids) <= set(last.retrievals[-1].ids)
    gathered = trajectory.meta["across_steps"][-1]
    assert tuple(gathered["ids"]) == first.outermost.ids + last.outermost.ids


def test_the_context_of_a_loop_is_a_set_where_it_only_appends() -> None:
    trajectory = ask(first_and_last)
    assert trajectory.context is not None and not trajectory.context.ranked
    first, second = (step.outermost.ids for step in trajectory.steps)
    assert trajectory.context.ids == tuple(dict.fromkeys((*first, *second)))


def test_a_re_rank_node_that_keeps_the_order_is_a_re_ranker_all_the_same() -> None:
    trajectory = ask(lambda state: {"found": state["found"][:2]})
    assert [step.outermost.stage for step in trajectory.steps] == ["rerank", "rerank"]
