"""A LangGraph agent with a retriever tool: steps, turns, and a context that is a set."""

from __future__ import annotations

import asyncio
import threading
import warnings
from typing import Any

import pytest

pytest.importorskip("langgraph")

from langchain_core.tools import tool
from langchain_core.tools.retriever import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore

from ragkit.recording import Recorder
from ragkit.records.trajectory import Trajectory
from tests.support.recording_parts import calls, chat, create_agent, documents

QUESTION = "In which town was the builder of the lighthouse at Norrby born?"
GOLD = {"d1", "d2"}


def retriever_tool(store: InMemoryVectorStore, k: int = 2, **options: Any) -> Any:
    return create_retriever_tool(
        store.as_retriever(search_kwargs={"k": k}), "search", "Searches the passages.", **options
    )


def ask(app: Any, recorder: Recorder | None = None) -> Trajectory:
    with (recorder or Recorder()).trace(QUESTION) as trace:
        app.invoke({"messages": [("user", QUESTION)]})
    return trace.trajectory


def test_two_hops_are_two_steps_and_the_context_is_a_set(store: InMemoryVectorStore) -> None:
    script = chat(calls("lighthouse Norrby built"), calls("Ada Lund born town Vik"), "In Vik.")
    trajectory = ask(create_agent(script, [retriever_tool(store)]))
    first, second = trajectory.steps
    assert first.outermost.ids[0] == "d1" and "d2" not in first.outermost.ids
    assert second.outermost.ids[0] == "d2"  # gold at rank 1 of the second step
    assert (first.turn, second.turn) == (0, 1)
    assert [first.outermost.query, second.outermost.query] == ["lighthouse Norrby built", "Ada Lund born town Vik"]
    assert trajectory.context is not None and not trajectory.context.ranked
    assert set(trajectory.context.ids) == set(first.outermost.ids) | set(second.outermost.ids) >= GOLD
    assert len(trajectory.context.ids) == len(set(trajectory.context.ids))
    assert trajectory.answer == "In Vik."


def test_one_search_is_a_ranking(store: InMemoryVectorStore) -> None:
    trajectory = ask(create_agent(chat(calls("lighthouse Norrby"), "Ada."), [retriever_tool(store, k=3)]))
    assert trajectory.context is not None and trajectory.context.ranked
    assert trajectory.context.ids == trajectory.steps[0].outermost.ids and len(trajectory.context.ids) == 3


def test_two_searches_that_find_the_same_are_a_set(store: InMemoryVectorStore) -> None:
    script = chat(calls("lighthouse Norrby built"), calls("built by Ada Lund in 1881"), "Ada.")
    trajectory = ask(create_agent(script, [retriever_tool(store, k=5)]))
    first, second = (step.outermost.ids for step in trajectory.steps)
    assert set(first) == set(second) and first != second
    assert trajectory.context is not None and set(trajectory.context.ids) == set(first)
    assert not trajectory.context.ranked


def test_parallel_calls_of_one_message_share_a_turn(store: InMemoryVectorStore) -> None:
    gate = threading.Barrier(2, timeout=10)

    @tool
    def search(query: str) -> str:
        """Searches the passages; the first one asked answers last."""
        found = store.as_retriever(search_kwargs={"k": 1}).invoke(query)
        if query in ("lighthouse Norrby", "cheese Vik"):
            gate.wait()
        return found[0].page_content

    script = chat(calls("lighthouse Norrby", "cheese Vik"), calls("harbour winters"), "x")
    trajectory = ask(create_agent(script, [search]))
    assert [step.turn for step in trajectory.steps] == [0, 0, 1]
    assert [step.outermost.query for step in trajectory.steps[:2]] == ["lighthouse Norrby", "cheese Vik"]
    assert trajectory.context is not None and not trajectory.context.ranked


def test_a_plain_tool_that_calls_the_store_is_seen_when_instrumented(store: InMemoryVectorStore) -> None:
    @tool
    def search(query: str) -> str:
        """Searches the passages."""
        return "\n".join(one.page_content for one in store.similarity_search(query, k=2))

    @tool
    def calculator(query: str) -> str:
        """Counts."""
        return "4"

    def app() -> Any:
        script = chat(calls("lighthouse Norrby", "cheese Vik"), calls("2+2", tool="calculator"), calls("Ada"), "Vik.")
        return create_agent(script, [search, calculator])

    recorder = Recorder()
    with pytest.warns(UserWarning, match=r"recorder\.instrument\(vector_store\)"):
        assert ask(app(), recorder).steps == ()
    with recorder.instrument(store):
        trajectory = ask(app(), recorder)
    assert [step.outermost.query for step in trajectory.steps] == ["lighthouse Norrby", "cheese Vik", "Ada"]
    assert [step.turn for step in trajectory.steps] == [0, 0, 1]
    assert all(step.outermost.score_kind == "similarity" for step in trajectory.steps)
    assert trajectory.context is not None and not trajectory.context.ranked


def test_artifacts_count_once_where_the_retriever_was_seen(store: InMemoryVectorStore) -> None:
    script = chat(calls("lighthouse Norrby"), calls("Ada Lund"), "x")
    seen = ask(create_agent(script, [retriever_tool(store, response_format="content_and_artifact")]))
    assert len(seen.steps) == 2 and all(len(step.retrievals) == 1 for step in seen.steps)


def test_artifacts_are_the_list_where_nothing_else_was_seen() -> None:
    answers = iter(["d1 d2", "d2", ""])

    @tool(response_format="content_and_artifact")
    def search(query: str) -> Any:
        """Searches somewhere that has no callbacks."""
        found = documents(next(answers))
        return "\n".join(one.page_content for one in found), found

    trajectory = ask(create_agent(chat(calls("one"), calls("two"), calls("three"), "x"), [search]))
    assert [step.outermost.ids for step in trajectory.steps] == [("d1", "d2"), ("d2",), ()]
    assert [step.outermost.query for step in trajectory.steps] == ["one", "two", "three"]
    assert [step.turn for step in trajectory.steps] == [0, 1, 2]
    assert trajectory.context is not None and set(trajectory.context.ids) == GOLD


def test_an_artifact_that_is_a_part_of_what_was_retrieved_is_a_stage(store: InMemoryVectorStore) -> None:
    @tool(response_format="content_and_artifact")
    def search(query: str) -> Any:
        """Searches and keeps the best."""
        found = store.as_retriever(search_kwargs={"k": 3}).invoke(query)[:1]
        return found[0].page_content, found

    (step,) = ask(create_agent(chat(calls("lighthouse"), "x"), [search])).steps
    assert [(one.stage, len(one.ids)) for one in step.retrievals] == [("filter", 1), ("retrieve", 3)]


def test_an_agent_that_never_searches(store: InMemoryVectorStore) -> None:
    with pytest.warns(UserWarning, match="no search was seen"):
        trajectory = ask(create_agent(chat("From memory: Vik."), [retriever_tool(store)]))
    assert trajectory.steps == () and trajectory.context is None and trajectory.answer == "From memory: Vik."


def test_agents_side_by_side_in_one_loop(store: InMemoryVectorStore) -> None:
    recorder = Recorder()

    async def one(name: str) -> Trajectory:
        app = create_agent(chat(calls(f"{name} a", f"{name} b"), calls(f"{name} c"), name), [retriever_tool(store)])
        with recorder.trace(name) as trace:
            await app.ainvoke({"messages": [("user", name)]})
        return trace.trajectory

    async def main() -> list[Trajectory]:
        return await asyncio.gather(*(one(f"agent {number}") for number in range(6)))

    for trajectory in asyncio.run(main()):
        name = trajectory.question
        assert [step.outermost.query for step in trajectory.steps] == [f"{name} a", f"{name} b", f"{name} c"]
        assert [step.turn for step in trajectory.steps] == [0, 0, 1]
        assert trajectory.answer == name
    assert recorder.orphans == 0


def test_an_agent_used_as_a_tool_has_turns_of_its_own(store: InMemoryVectorStore) -> None:
    @tool
    def research(query: str) -> str:
        """Lets another agent look."""
        inner = create_agent(chat(calls(f"{query} 1", f"{query} 2"), calls(f"{query} 3"), "found"), [
            retriever_tool(store)
        ])
        return str(inner.invoke({"messages": [("user", query)]})["messages"][-1].content)

    script = chat(calls("lighthouse", tool="research"), calls("cheese"), "Vik.")
    trajectory = ask(create_agent(script, [research, retriever_tool(store)]))
    assert [step.outermost.query for step in trajectory.steps] == [
        "lighthouse 1", "lighthouse 2", "lighthouse 3", "cheese",
    ]
    assert [step.turn for step in trajectory.steps] == [0, 0, 1, 2]
    assert trajectory.answer == "Vik."


def test_a_tool_that_fails_is_noted(store: InMemoryVectorStore) -> None:
    @tool
    def search(query: str) -> str:
        """Searches."""
        raise ConnectionError("no index")

    app = create_agent(chat(calls("x"), "y"), [search])
    raised = None
    try:  # an older agent tells the model of it instead, and goes on
        with warnings.catch_warnings(action="ignore"), Recorder().trace(QUESTION) as trace:
            app.invoke({"messages": [("user", QUESTION)]})
    except ConnectionError as error:
        raised = f"ConnectionError: {error}"
    assert trace.trajectory.meta["failed_tools"] == ("search: ConnectionError: no index",)
    assert trace.trajectory.error == raised
