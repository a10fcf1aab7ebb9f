"""Many questions at once: threads, tasks, sync and async tools, raw thread pools. Nothing may change its question."""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore

from ragkit.recording import Recorder
from ragkit.records.trajectory import Trajectory
from tests.support.recording_parts import WordEmbedding, calls, chat, create_agent, documents

NAMES = [f"q{number:02}" for number in range(24)]


class Slow(BaseRetriever):
    """Gives a passage that names the query, after a moment of its own."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        time.sleep(0.0005 * (hash(query) % 5))
        return [Document(id=f"id of {query}", page_content=f"Passage about {query}.")]

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        await asyncio.sleep(0.1 if query.startswith("together") else 0.0005 * (hash(query) % 5))
        return [Document(id=f"id of {query}", page_content=f"Passage about {query}.")]


def queries(name: str, count: int = 3) -> list[str]:
    return [f"{name} #{number}" for number in range(count)]


def check(recorder: Recorder, turns: list[int] | None = None, names: list[str] = NAMES) -> None:
    assert sorted(one.question for one in recorder.trajectories) == names and recorder.orphans == 0
    for one in recorder.trajectories:
        assert [step.outermost.query for step in one.steps] == queries(one.question)
        assert [step.outermost.ids for step in one.steps] == [(f"id of {query}",) for query in queries(one.question)]
        assert "guessed" not in one.meta
        assert turns is None or [step.turn for step in one.steps] == turns


def test_twenty_four_threads() -> None:
    recorder, gate = Recorder(), threading.Barrier(24, timeout=30)
    app = RunnableLambda(lambda name: [Slow().invoke(query) for query in queries(name)])

    def ask(name: str) -> None:
        with warnings.catch_warnings(action="ignore"), recorder.trace(name):
            gate.wait()
            app.invoke(name)

    with ThreadPoolExecutor(24) as pool:
        list(pool.map(ask, NAMES))
    check(recorder, [0, 1, 2])


@pytest.mark.parametrize("together", [False, True])
def test_twenty_four_gathered_tasks(together: bool) -> None:
    recorder = Recorder()

    async def search(name: str) -> None:
        if together:
            await asyncio.gather(*(Slow().ainvoke(query) for query in queries(name)))
        else:
            for query in queries(name):
                await Slow().ainvoke(query)

    async def ask(name: str) -> None:
        with warnings.catch_warnings(action="ignore"), recorder.trace(name):
            await RunnableLambda(search).ainvoke(name)

    names = [f"together {name}" if together else name for name in NAMES]

    async def main() -> None:
        await asyncio.gather(*(ask(name) for name in names))

    asyncio.run(main())
    check(recorder, [0, 0, 0] if together else [0, 1, 2], names)


def agent(name: str, tools: list[Any]) -> Any:
    first, second, third = queries(name)
    return create_agent(chat(calls(first, second), calls(third), f"done {name}"), tools)


@tool
def search_sync(query: str) -> str:
    """Searches."""
    return Slow().invoke(query)[0].page_content


@tool
async def search_async(query: str) -> str:
    """Searches."""
    return (await Slow().ainvoke(query))[0].page_content


@pytest.mark.parametrize("is_async", [False, True])
def test_agents_with_sync_and_async_tools_side_by_side(is_async: bool) -> None:
    pytest.importorskip("langgraph")
    recorder = Recorder()
    used = (search_async if is_async else search_sync).model_copy(update={"name": "search"})

    async def ask_async(name: str) -> None:
        with recorder.trace(name):
            await agent(name, [used]).ainvoke({"messages": [("user", name)]})

    async def main() -> None:
        await asyncio.gather(*(ask_async(name) for name in NAMES))

    def ask(name: str) -> None:
        with recorder.trace(name):
            agent(name, [used]).invoke({"messages": [("user", name)]})

    if is_async:
        asyncio.run(main())
    else:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, NAMES))
    check(recorder, [0, 0, 1])
    for one in recorder.trajectories:
        assert one.answer == f"done {one.question}"
        assert one.context is not None and not one.context.ranked and len(one.context.ids) == 3


def test_async_agents_with_sync_tools_that_call_a_store_directly() -> None:
    pytest.importorskip("langgraph")
    store = InMemoryVectorStore(WordEmbedding())
    store.add_documents(documents())
    recorder = Recorder()

    @tool
    def search(query: str) -> str:
        """Searches."""
        return store.similarity_search(query, k=1)[0].page_content

    async def ask(name: str) -> Trajectory:
        with recorder.trace(name) as trace:
            await agent(name, [search]).ainvoke({"messages": [("user", name)]})
        return trace.trajectory

    async def main() -> list[Trajectory]:
        with recorder.instrument(store):
            return await asyncio.gather(*(ask(name) for name in NAMES))

    for one in asyncio.run(main()):
        assert [step.outermost.query for step in one.steps] == queries(one.question)
        assert [step.turn for step in one.steps] == [0, 0, 1]
        assert all(step.outermost.score_kind == "similarity" for step in one.steps)
    assert recorder.orphans == 0


def raw_pool(name: str) -> list[Any]:
    """Three searches in a pool that carries no context, as plenty of code does."""
    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(Slow().invoke, queries(name)))


def test_a_raw_pool_with_one_live_trace_is_guessed_and_flagged() -> None:
    recorder = Recorder()
    with warnings.catch_warnings(action="ignore"), recorder.trace("only") as trace:
        RunnableLambda(raw_pool).invoke("only")
    assert sorted(step.outermost.query for step in trace.trajectory.steps) == queries("only")
    assert trace.trajectory.meta["guessed"] == 3 and recorder.orphans == 0


def test_raw_pools_with_several_live_traces_are_orphans_and_never_mixed() -> None:
    recorder, gate = Recorder(), threading.Barrier(4, timeout=30)

    def ask(name: str) -> None:
        with recorder.trace(name):
            Slow().invoke(name)
            gate.wait()
            raw_pool(name)
            gate.wait()

    with pytest.warns(UserWarning, match=r"recorder\.bind\(function\)"), ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, NAMES[:4]))
    assert recorder.orphans == 12
    for one in recorder.trajectories:
        assert [step.outermost.query for step in one.steps] == [one.question]


def test_bound_pools_are_told_apart() -> None:
    recorder, gate = Recorder(), threading.Barrier(4, timeout=30)

    def ask(name: str) -> None:
        with recorder.trace(name):
            gate.wait()
            with ThreadPoolExecutor(3) as pool:
                list(pool.map(recorder.bind(Slow().invoke), queries(name)))

    with warnings.catch_warnings(action="error"), ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, NAMES[:4]))
    assert recorder.orphans == 0
    for one in recorder.trajectories:
        assert sorted(step.outermost.query for step in one.steps) == queries(one.question)
        assert "guessed" not in one.meta


def test_callbacks_that_are_handed_on_tell_it_in_raw_pools_too() -> None:
    recorder, gate = Recorder(), threading.Barrier(4, timeout=30)

    class HandsOn(Slow):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            config = {"callbacks": run_manager.get_child()}
            with ThreadPoolExecutor(2) as pool:
                parts = [pool.submit(Slow().invoke, one, config) for one in queries(query, 2)]
            return [found for part in parts for found in part.result()]

    def ask(name: str) -> None:
        with recorder.trace(name):
            gate.wait()
            HandsOn().invoke(name)
            gate.wait()

    with warnings.catch_warnings(action="error"), ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, NAMES[:4]))
    for one in recorder.trajectories:
        (step,) = one.steps
        assert [found.stage for found in step.retrievals] == ["fuse", "retrieve", "retrieve"]
        assert sorted(found.query for found in step.retrievals) == [one.question, *queries(one.question, 2)]
        assert "guessed" not in one.meta
    assert recorder.orphans == 0


def test_a_trace_inside_a_run_of_another_is_nearer_than_the_run() -> None:
    """An app that traces itself, asked inside a trace: what it does belongs to its own."""
    recorder = Recorder()

    def traced(name: str) -> str:
        with recorder.trace(f"inner {name}"):
            Slow().invoke(f"inner {name}")
        Slow().invoke(f"outer {name}")
        return name

    with warnings.catch_warnings(action="ignore"), recorder.trace("outer a"):
        RunnableLambda(traced).invoke("a")
    found = {one.question: [step.outermost.query for step in one.steps] for one in recorder.trajectories}
    assert found == {"inner a": ["inner a"], "outer a": ["outer a"]}


def test_nothing_of_the_app_is_kept_once_its_trace_has_ended() -> None:
    import gc
    import weakref

    from ragkit.recording import attribution

    class Mine(Slow):
        pass

    recorder = Recorder()
    app = Mine()
    with warnings.catch_warnings(action="ignore"), recorder.trace("q") as trace:
        (RunnableLambda(lambda name: name) | app).invoke("q")
        assert trace.log.runs and attribution._live == [trace.log]
    gone = weakref.ref(app)
    del app
    gc.collect()
    assert gone() is None and attribution._live == []
    assert not (trace.log.runs or trace.log.frames or trace.log.prompts or trace.log.outputs)
