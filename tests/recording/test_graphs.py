"""LangGraph as apps use it: fan-out, sub-graphs whose step numbers restart, agents in graphs, nodes that give lists."""

from __future__ import annotations

import asyncio
import operator
import time
import warnings
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph")

from langchain_core.documents import Document
from langchain_core.tools import tool
from langchain_core.tools.retriever import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send

import ragkit
from ragkit.recording import Recorder
from ragkit.records.trajectory import Trajectory
from tests.support.recording_parts import calls, chat, create_agent

QUESTION = "In which town was the builder of the lighthouse at Norrby born?"


class State(TypedDict, total=False):
    question: str
    queries: list[str]
    found: Annotated[list[str], operator.add]
    documents: Annotated[list[Document], operator.add]
    answer: str


class Plain(TypedDict, total=False):
    question: str
    found: str
    documents: list[Document]


def ask(app: Any, given: Any, recorder: Recorder | None = None) -> Trajectory:
    with warnings.catch_warnings(action="ignore"), (recorder or Recorder()).trace(QUESTION) as trace:
        app.invoke(given)
    return trace.trajectory


def queries_of(trajectory: Trajectory) -> list[tuple[str, int]]:
    return [(step.outermost.query, step.turn) for step in trajectory.steps]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_fan_out_is_one_turn_and_stands_in_order_of_start(store: InMemoryVectorStore, is_async: bool) -> None:
    retriever = store.as_retriever(search_kwargs={"k": 1})

    def look(given: dict[str, str]) -> State:
        found = retriever.invoke(given["query"])
        time.sleep(0.05 if given["query"] == "lighthouse" else 0.0)  # the first ends last
        return {"documents": found}

    async def look_async(given: dict[str, str]) -> State:
        found = await retriever.ainvoke(given["query"])
        await asyncio.sleep(0.05 if given["query"] == "lighthouse" else 0.0)
        return {"documents": found}

    builder = StateGraph(State)
    builder.add_node("plan", lambda state: {"queries": ["lighthouse", "cheese", "harbour"]})
    builder.add_node("look", look_async if is_async else look)
    builder.add_node("again", lambda state: {"documents": retriever.invoke("keeper")})
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", lambda state: [Send("look", {"query": one}) for one in state["queries"]])
    builder.add_edge("look", "again")
    app = builder.compile()
    if is_async:
        with warnings.catch_warnings(action="ignore"), Recorder().trace(QUESTION) as trace:
            asyncio.run(app.ainvoke({"question": QUESTION}))
        trajectory = trace.trajectory
    else:
        trajectory = ask(app, {"question": QUESTION})
    found = queries_of(trajectory)
    assert sorted(found[:3]) == [("cheese", 0), ("harbour", 0), ("lighthouse", 0)]
    assert found[3] == ("keeper", 1)
    if is_async:  # threads may start in any order, tasks do not
        assert [query for query, _ in found[:3]] == ["lighthouse", "cheese", "harbour"]


def test_step_numbers_of_sub_graphs_that_run_at_once_are_not_one_turn_of_both(store: InMemoryVectorStore) -> None:
    """Two sub-graphs, side by side, two searches each: both count their steps from 1."""
    retriever = store.as_retriever(search_kwargs={"k": 1})

    def branch(name: str) -> Any:
        builder = StateGraph(Plain)
        for number in (1, 2):
            builder.add_node(f"n{number}", lambda state, n=number: {"found": str(retriever.invoke(f"{name} {n}"))})
        builder.add_edge(START, "n1")
        builder.add_edge("n1", "n2")
        graph = builder.compile()
        return lambda state: {"found": [graph.invoke({"question": name})["found"]]}

    builder = StateGraph(State)
    builder.add_node("x", branch("x"))
    builder.add_node("y", branch("y"))
    builder.add_node("last", lambda state: {"documents": retriever.invoke("last")})
    builder.add_edge(START, "x")
    builder.add_edge(START, "y")
    builder.add_edge(["x", "y"], "last")
    found = queries_of(ask(builder.compile(), {"question": QUESTION}))
    assert dict(found) == {"x 1": 0, "y 1": 0, "x 2": 1, "y 2": 1, "last": 2}


@pytest.mark.parametrize("in_one_node", [False, True])
def test_agents_that_work_side_by_side_as_tools_of_another(store: InMemoryVectorStore, in_one_node: bool) -> None:
    search = create_retriever_tool(store.as_retriever(search_kwargs={"k": 1}), "search", "Searches.")

    @tool
    def research(query: str) -> str:
        """Lets another agent look."""
        inner = create_agent(chat(calls(f"{query} 1"), calls(f"{query} 2"), "found"), [search])
        return str(inner.invoke({"messages": [("user", query)]})["messages"][-1].content)

    script = chat(calls("x", "y", tool="research"), calls("last"), "In Vik.")
    if in_one_node:  # LangGraph's older agent: one node makes all calls of a message, in threads
        with warnings.catch_warnings(action="ignore"):
            from langgraph.prebuilt import create_react_agent

            app = create_react_agent(script, [research, search], version="v1")
    else:
        app = create_agent(script, [research, search])
    found = queries_of(ask(app, {"messages": [("user", QUESTION)]}))
    assert dict(found) == {"x 1": 0, "y 1": 0, "x 2": 1, "y 2": 1, "last": 2}


def test_an_agent_as_a_node_in_a_loop_counts_its_turns_on(store: InMemoryVectorStore) -> None:
    search = create_retriever_tool(store.as_retriever(search_kwargs={"k": 1}), "search", "Searches.")
    agents = iter([
        create_agent(chat(calls("one", "two"), calls("three"), "so far"), [search]),
        create_agent(chat(calls("four"), "In Vik."), [search]),
    ])
    builder = StateGraph(State)
    builder.add_node("research", lambda state: {
        "answer": next(agents).invoke({"messages": [("user", QUESTION)]})["messages"][-1].content})
    left = iter(["research", END])
    builder.add_edge(START, "research")
    builder.add_conditional_edges("research", lambda state: next(left))
    trajectory = ask(builder.compile(), {"question": QUESTION})
    assert queries_of(trajectory) == [("one", 0), ("two", 0), ("three", 1), ("four", 2)]
    assert trajectory.answer == "In Vik."


def test_a_node_that_gives_its_list_in_a_command_is_a_stage(store: InMemoryVectorStore) -> None:
    def rerank(state: Plain) -> Command[Any]:
        return Command(goto="keep", update={"documents": state["documents"][::-1]})

    async def keep(state: Plain) -> Plain:
        return {"documents": state["documents"][:2]}

    builder = StateGraph(Plain)
    builder.add_node("look", lambda state: {
        "documents": store.as_retriever(search_kwargs={"k": 3}).invoke(state["question"])})
    builder.add_node("rerank", rerank, destinations=("keep",))
    builder.add_node("keep", keep)
    builder.add_edge(START, "look")
    builder.add_edge("look", "rerank")
    with warnings.catch_warnings(action="ignore"), Recorder().trace(QUESTION) as trace:
        asyncio.run(builder.compile().ainvoke({"question": QUESTION}))
    (step,) = trace.trajectory.steps
    assert [(one.stage, one.name) for one in step.retrievals] == [
        ("filter", "keep"), ("rerank", "rerank"), ("retrieve", "VectorStoreRetriever")]
    first = step.retrievals[2].ids
    assert [one.ids for one in step.retrievals] == [(first[2], first[1]), first[::-1], first]


def test_gold_at_rank_1_of_the_second_step_counts(store: InMemoryVectorStore) -> None:
    """The context of a tool-calling agent is a set: never a concatenation that is cut at k."""
    pytest.importorskip("pandas")
    search = create_retriever_tool(store.as_retriever(search_kwargs={"k": 3}), "search", "Searches.")
    agent = create_agent(chat(calls("harbour winters Norrby"), calls("Ada Lund born town Vik west coast"), "In Vik."),
                         [search])
    recorder = Recorder()
    trajectory = ask(agent, {"messages": [("user", QUESTION)]}, recorder)
    first, second = trajectory.steps
    assert "d2" not in first.outermost.ids and second.outermost.ids[0] == "d2"
    assert trajectory.context is not None and not trajectory.context.ranked
    rows = [{"id": "q1", "question": QUESTION, "reference": "In Vik.", "gold_ids": "d2"}]
    scores = ragkit.score(recorder.trajectories, rows).scores
    value = {(row.metric, row.step): row.value for row in scores.itertuples()}
    assert value["allhit", "final"] == value["recall", "final"] == 1.0
    assert value["hit@1", "0"] == 0.0 and value["hit@1", "1"] == value["mrr", "1"] == 1.0
    assert value["steps_to_evidence", "final"] == 2.0 and value["survival", "final"] == 1.0
    for metric in ("hit@1", "hit@3", "ndcg@10", "mrr"):  # a set has no ranks
        assert value[metric, "final"] != value[metric, "final"], metric
