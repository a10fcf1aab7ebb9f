"""Each mechanism is taken away once, and what it is there for goes wrong: no test of the recorder passes by luck.

The same was done by hand, in the source, for some sixty of them; all but three broke a test of another file:

- the context says whose it is; a run is known by its id -> test_agents: two hops are two steps
- the run above is nearer than the context -> test_streams: what began in one trace goes on in it
- a trace opened in a run is nearer than the run -> test_concurrency: a trace inside a run of another
- the run that plain code stands in -> test_batch: direct calls of a store
- one live trace: a flagged guess; several, or an ended one: an orphan, counted -> test_attribution: raw threads
- frames beneath the frame of the run above -> test_concurrency: callbacks that are handed on
- frames beneath the frame open in the context -> test_attribution: bind keeps the place
- a frame that ended takes no more -> test_concurrency: gathered tasks
- the outer trace comes back -> test_attribution: a trace inside a trace
- traces left out of order are told -> test_streams: generators read by turns are flagged
- bind: context, generators, async generators, no guess -> test_attribution: bind mends it; test_streams: once bound
- root runs: by text, inside a text, the longest, in turns, over several questions; errors apart -> test_batch
- the handler in raw threads -> test_batch: fifty questions
- callbacks in the caller's context -> test_retrievers: parent documents
- the patch of a store, of its async methods -> test_instrument: direct calls with scores
- a list seen twice is one -> test_agents: instrumented; not where texts or queries differ -> test_retrievers
- one id for one text over steps -> test_trace: the same ids in memory
- extracts, rewritten texts and their neighbours keep their ids -> test_retrievers
- order of the calls; a message's calls are a turn -> test_agents: parallel calls of one message
- tool calls, supersteps by their graph's run, branches that line up -> test_graphs
- branches of a RunnableParallel -> test_langchain; overlap in time -> test_concurrency: gathered tasks
- nodes that give lists are stages -> test_nodes
- a retriever's own model calls are no context -> test_retrievers; cut texts are flagged -> test_context
- streams left half-way, closed generators -> test_streams
- the log lets go of the app; ended traces are not live -> test_concurrency: nothing is kept
- a failing retriever is an error step; a cancelled one keeps its own runs -> test_langchain
"""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("langgraph")

from langchain_core.callbacks import CallbackManager
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore

from ragkit.recording import Recorder, assemble, attribution, batch, binding, fold, instrument, log, turns
from ragkit.records.trajectory import Trajectory
from tests.support.recording_parts import WordEmbedding, calls, chat, create_agent, documents

Scenario = Callable[[], bool]


class Named(BaseRetriever):
    """Gives a passage that names the query; "slow" ones take their time."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        time.sleep(0.1 if "slow" in query else 0.0)
        return [Document(id=f"id of {query}", page_content=f"Passage about {query}.")]


class Outer(Named):
    """Calls another retriever without handing its callbacks on."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return Named().invoke(query)


@tool
def search(query: str) -> str:
    """Searches twice, one after the other."""
    return "\n".join(Named().invoke(f"{query} {number}")[0].page_content for number in (1, 2))


def queries(trajectory: Trajectory) -> list[str]:
    return [step.outermost.query for step in trajectory.steps]


def two_at_once(inside: Callable[[Recorder, str], Any]) -> tuple[Recorder, bool]:
    """Two questions in two threads; whether each has its own search."""
    recorder, gate = Recorder(), threading.Barrier(2, timeout=20)

    def ask(name: str) -> None:
        with recorder.trace(name):
            gate.wait()
            inside(recorder, name)
            gate.wait()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(ask, ["one", "two"]))
    return recorder, all(queries(one) == [one.question] for one in recorder.trajectories)


def threads_by_context() -> bool:
    return two_at_once(lambda recorder, name: Named().invoke(name))[1]


def bound_threads() -> bool:
    def inside(recorder: Recorder, name: str) -> None:
        thread = threading.Thread(target=recorder.bind(Named().invoke), args=(name,))
        thread.start()
        thread.join()

    return two_at_once(inside)[1]


def a_batch() -> bool:
    recorder, app = Recorder(), RunnableLambda(lambda name: Named().invoke({"one": "1", "two": "2"}[name]))
    with recorder.traces(["one", "two"]) as traces:
        app.batch(["two", "one"])
    return [queries(trace.trajectory) for trace in traces] == [["1"], ["2"]]


def a_trace_in_a_run() -> bool:
    recorder = Recorder()

    def inner(name: str) -> None:
        with recorder.trace("inner"):
            Named().invoke("inner")

    with recorder.trace("outer"):
        RunnableLambda(inner).invoke("x")
    return [queries(one) for one in recorder.trajectories] == [["inner"], []]


def nested_retrievers() -> bool:
    with Recorder().trace("q") as trace:
        Outer().invoke("a")
    return len(trace.trajectory.steps) == 1


def direct_store_calls() -> bool:
    store = InMemoryVectorStore(WordEmbedding())
    store.add_documents(documents())
    recorder = Recorder()
    with recorder.instrument(store), recorder.trace("q") as trace:
        store.similarity_search("a")
    return queries(trace.trajectory) == ["a"]


def order_of_start() -> bool:
    """Two branches: the one that began first ends last."""
    gate = threading.Event()

    def first(query: str) -> Any:
        threading.Timer(0.05, gate.set).start()
        return Named().invoke("slow a")

    def second(query: str) -> Any:
        gate.wait(10)
        return Named().invoke("b")

    with Recorder().trace("q") as trace:
        RunnableParallel(a=RunnableLambda(first), b=RunnableLambda(second)).invoke("q")
    return queries(trace.trajectory) == ["slow a", "b"]


def turns_of_an_agent() -> bool:
    """Two searches of one tool call are of one turn: neither time nor the graph says so, the message does."""
    with Recorder().trace("q") as trace:
        create_agent(chat(calls("a"), calls("b"), "x"), [search]).invoke({"messages": [("user", "q")]})
    found = [(step.outermost.query, step.turn) for step in trace.trajectory.steps]
    return found == [("a 1", 0), ("a 2", 0), ("b 1", 1), ("b 2", 1)]


def ids_of_equal_texts() -> bool:
    recorder = Recorder()
    inner = recorder.retriever(lambda query: [("given", "The same text.")])
    outer = recorder.retriever(lambda query: [text for _, text in inner(query)])
    with recorder.trace("q") as trace:
        outer("q")
    return [found.ids for found in trace.trajectory.steps[0].retrievals] == [("given",)]


def one_list_seen_twice() -> bool:
    store = InMemoryVectorStore(WordEmbedding())
    store.add_documents(documents())
    recorder = Recorder()
    with recorder.instrument(store), recorder.trace("q") as trace:
        store.as_retriever().invoke("a")
    return [len(step.retrievals) for step in trace.trajectory.steps] == [1]


def tasks_of_one_gather() -> bool:
    async def main() -> Trajectory:
        with Recorder().trace("q") as trace:
            await asyncio.gather(Named().ainvoke("slow a"), Named().ainvoke("slow b"))
        return trace.trajectory

    return [step.turn for step in asyncio.run(main()).steps] == [0, 0]


def raw_threads_are_flagged() -> bool:
    with Recorder().trace("q") as trace:
        thread = threading.Thread(target=Named().invoke, args=("a",))
        thread.start()
        thread.join()
    return trace.trajectory.meta.get("guessed") == 1


def nothing_stays_live() -> bool:
    with Recorder().trace("q") as trace:
        Named().invoke("a")
    handlers = CallbackManager.configure().handlers
    return not (trace.log.runs or trace.log.frames) and not any("Ragkit" in type(one).__name__ for one in handlers)


class Blind:
    """A context variable that forgets."""

    def get(self) -> None:
        return None

    def set(self, value: Any) -> None:
        return None

    reset = set


def order_of_end(frame: Any, passages: Any = (), error: Any = None, close: Any = log.Frame.close) -> None:
    close(frame, passages, error)
    frame.seq = next(log._clock)


TAKEN_AWAY: dict[str, tuple[Scenario, Any, str, Any]] = {
    "the context": (threads_by_context, attribution, "current_log", Blind()),
    "the map of run ids": (a_batch, attribution, "log_of", lambda run_id: None),
    "the run that code stands in": (a_trace_in_a_run, attribution, "ambient_run", lambda: None),
    "the claim by text": (a_batch, batch.Traces, "_asked_for", lambda self, texts: ()),
    "the frame open in the context": (nested_retrievers, attribution, "open_frame_var", Blind()),
    "bind": (bound_threads, binding, "bind", lambda function: function),
    "the patch of the store": (direct_store_calls, instrument, "replace_method", lambda *args: lambda: None),
    "the order of start": (order_of_start, log.Frame, "close", order_of_end),
    "the runs above": (turns_of_an_agent, log.Log, "lineage", lambda self, run_id: iter(())),
    "the model call behind a tool": (turns_of_an_agent, turns, "_issuer", lambda log, run: None),
    "the grouping by turn": (turns_of_an_agent, assemble, "number_turns", lambda places: None),
    "overlap in time": (tasks_of_one_gather, turns, "_overlap", lambda one, other: False),
    "one id for one text": (ids_of_equal_texts, fold, "is_generated", lambda passage: False),
    "the merging of one list": (one_list_seen_twice, fold, "_texts", lambda found: [object()]),
    "the flag of a guess": (raw_threads_are_flagged, attribution, "locate",
                            lambda *args, locate=attribution.locate, **more: (locate(*args, **more)[0], False)),
    "the end of a trace": (nothing_stays_live, log.Log, "clear", lambda self: None),
    "silence outside of a trace": (nothing_stays_live, attribution._live, "remove", None),
}


@pytest.mark.parametrize("mechanism", TAKEN_AWAY)
def test_without_it_things_go_wrong(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, home, name, other = TAKEN_AWAY[mechanism]
    with warnings.catch_warnings(action="ignore"):
        assert scenario(), "with the mechanism"
        if other is None:
            monkeypatch.setattr("ragkit.recording.langchain.is_live", lambda: True)
        else:
            monkeypatch.setattr(home, name, other)
        assert not scenario(), "without it"
