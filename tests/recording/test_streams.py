"""Streams: read to the end, left half-way, closed, read by turns; and generators that hold a trace."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import warnings
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

from ragkit.recording import Recorder, current_trace
from ragkit.records.trajectory import Trajectory
from tests.support.recording_parts import calls, chat, create_agent

QUESTION = "Who built the lighthouse at Norrby?"
ANSWER = "Ada Lund built it in 1881."
PROMPT = ChatPromptTemplate.from_template("Answer from:\n{context}\n\nQuestion: {question}")
LEFT = "a stream was left before its end; the answer is what had come by then"


def rag(store: InMemoryVectorStore, answer: str = ANSWER, model: Any = None) -> Any:
    retriever = store.as_retriever(search_kwargs={"k": 2})
    context = retriever | (lambda found: "\n".join(one.page_content for one in found))
    chain = {"context": context, "question": RunnablePassthrough()} | PROMPT | (model or chat(answer))
    return chain | StrOutputParser()


def is_whole(trajectory: Trajectory, question: str = QUESTION) -> bool:
    (step,) = trajectory.steps
    assert step.outermost.query == question
    assert trajectory.context is not None and trajectory.context.ids == step.outermost.ids
    assert trajectory.error is None
    assert trajectory.meta.get("notices", ()) == ((LEFT,) if "abandoned" in trajectory.meta else ())
    return "abandoned" not in trajectory.meta


def test_read_to_the_end(store: InMemoryVectorStore) -> None:
    recorder = Recorder()
    with recorder.trace(QUESTION) as trace:
        text = "".join(rag(store).stream(QUESTION))
    assert is_whole(trace.trajectory) and trace.trajectory.answer == text == ANSWER

    async def main() -> None:
        with recorder.trace(QUESTION) as streamed:
            async for _ in rag(store).astream(QUESTION):
                pass
        with recorder.trace(QUESTION) as events:
            async for _ in rag(store).astream_events(QUESTION, version="v2"):
                pass
        for one in (streamed, events):
            assert is_whole(one.trajectory) and one.trajectory.answer == ANSWER

    asyncio.run(main())


@pytest.mark.parametrize("way", ["break", "close", "held", "collected"])
def test_left_half_way(store: InMemoryVectorStore, way: str) -> None:
    recorder = Recorder()
    with recorder.trace(QUESTION) as trace:
        stream = rag(store).stream(QUESTION)
        first = next(stream)
        if way == "break":
            for part in stream:
                first += part
                break
        if way == "close":
            stream.close()
        elif way != "held":
            del stream
            gc.collect()
    assert not is_whole(trace.trajectory)
    assert first.startswith(trace.trajectory.answer or "")
    with recorder.trace("next") as following:  # what is left of the stream belongs to nobody
        if way == "held":
            list(stream)
    assert following.trajectory.steps == () and following.trajectory.answer is None


def test_a_stream_of_one_part_that_is_left_at_it(store: InMemoryVectorStore) -> None:
    """A model that does not stream gives one part. A reader who stops there has all of it, and LangChain says None."""
    with Recorder().trace(QUESTION) as trace:
        for _ in rag(store, model=FakeMessagesListChatModel(responses=[AIMessage(ANSWER)])).stream(QUESTION):
            break
    assert not is_whole(trace.trajectory) and trace.trajectory.answer == ANSWER


@pytest.mark.parametrize("way", ["break", "close", "cancel"])
def test_left_half_way_async(store: InMemoryVectorStore, way: str) -> None:
    recorder = Recorder()

    async def main() -> None:
        stream = rag(store).astream(QUESTION)
        with recorder.trace(QUESTION):
            await anext(stream)
            if way == "close":
                await stream.aclose()
            elif way == "cancel":
                raise asyncio.CancelledError

    if way == "cancel":
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(main())
        (trajectory,) = recorder.trajectories
        assert str(trajectory.error).startswith("CancelledError") and len(trajectory.steps) == 1
    else:
        asyncio.run(main())
        assert not is_whole(recorder.trajectories[0])


def test_an_agent_left_between_its_searches(store: InMemoryVectorStore) -> None:
    pytest.importorskip("langgraph")
    from langchain_core.tools.retriever import create_retriever_tool

    search = create_retriever_tool(store.as_retriever(search_kwargs={"k": 1}), "search", "Searches.")
    script = (calls("lighthouse"), calls("Ada Lund born"), "In Vik.")
    recorder = Recorder()
    seen: list[int] = []
    for wanted in (1, 2, 9):
        with warnings.catch_warnings(action="ignore"), recorder.trace(QUESTION) as trace:
            searches = 0
            for update in create_agent(chat(*script), [search]).stream({"messages": [("user", QUESTION)]}):
                searches += "tools" in update
                if searches == wanted:
                    break
        seen.append(len(trace.trajectory.steps))
        assert trace.trajectory.error is None
    assert seen == [1, 2, 2] and trace.trajectory.answer == "In Vik." and "abandoned" not in trace.trajectory.meta


def served(recorder: Recorder, app: Any, question: str, bound: bool) -> Iterator[Any]:
    """As a web handler does: the trace stands inside a generator that somebody else reads."""
    with recorder.trace(question) as trace:
        stream = recorder.bind(app.stream) if bound else app.stream
        yield trace
        yield from stream(question)


def test_a_generator_that_holds_a_trace_and_is_closed(store: InMemoryVectorStore) -> None:
    recorder = Recorder()
    handler = served(recorder, rag(store), QUESTION, bound=False)
    next(handler), next(handler)
    handler.close()
    assert current_trace() is None and not is_whole(recorder.trajectories[0])
    unread = served(recorder, rag(store), QUESTION, bound=False)
    next(unread)
    del unread
    gc.collect()
    assert recorder.trajectories[1].steps == () and recorder.trajectories[1].meta["abandoned"]


def by_turns(recorder: Recorder, store: InMemoryVectorStore, bound: bool) -> list[Any]:
    questions = ["lighthouse", "cheese", "harbour"]
    handlers = [served(recorder, rag(store, f"It is {one}."), one, bound) for one in questions]
    traces = [next(handler) for handler in handlers]
    left = list(handlers)
    while left:
        left = [handler for handler in left if next(handler, None) is not None]
    return traces


def test_generators_read_by_turns_are_told_apart_once_bound(store: InMemoryVectorStore) -> None:
    recorder = Recorder()
    with warnings.catch_warnings(action="ignore"):
        for trace in by_turns(recorder, store, bound=True):
            assert is_whole(trace.trajectory, trace.question.text)
            assert trace.trajectory.answer == f"It is {trace.question.text}."
            assert "guessed" not in trace.trajectory.meta
    assert current_trace() is None


def test_generators_read_by_turns_are_flagged_where_nothing_tells_them_apart(store: InMemoryVectorStore) -> None:
    recorder = Recorder()
    with pytest.warns(UserWarning, match=r"recorder\.bind\(app\.stream\)"):
        traces = by_turns(recorder, store, bound=False)
    assert all(trace.trajectory.meta["guessed"] for trace in traces)
    assert current_trace() is None
    with recorder.trace("after") as trace:
        store.as_retriever().invoke("after")
    assert len(trace.trajectory.steps) == 1 and "guessed" not in trace.trajectory.meta


def test_a_stream_that_began_in_its_own_trace_stays_there(store: InMemoryVectorStore) -> None:
    """What LangChain began in a run goes on in it, whatever the context says by then."""
    recorder = Recorder()
    agent_store = store.as_retriever(search_kwargs={"k": 1})
    first = (RunnablePassthrough() | (lambda question: [agent_store.invoke(f"{question} {n}") for n in range(2)]))
    stream = None
    with recorder.trace("outer") as outer:
        stream = first.stream("a")
        with recorder.trace("inner") as inner:
            list(store.as_retriever(search_kwargs={"k": 1}).stream("b"))
        list(stream)
    assert [step.outermost.query for step in outer.trajectory.steps][:2] == ["a 0", "a 1"]
    assert [step.outermost.query for step in inner.trajectory.steps] == ["b"]


def test_what_began_in_one_trace_goes_on_in_it_whatever_the_context_says(store: InMemoryVectorStore) -> None:
    pytest.importorskip("langgraph")
    from langchain_core.tools.retriever import create_retriever_tool

    search = create_retriever_tool(store.as_retriever(search_kwargs={"k": 1}), "search", "Searches.")
    recorder = Recorder()

    def handler(name: str) -> Iterator[str]:
        agent = create_agent(chat(calls(f"{name} 1"), calls(f"{name} 2"), "done"), [search])
        with recorder.trace(name):
            for _ in agent.stream({"messages": [("user", name)]}):
                yield name

    left = [handler("a"), handler("b")]
    with warnings.catch_warnings(action="ignore"):
        while left:
            left = [one for one in left if next(one, None) is not None]
    assert {one.question: [step.outermost.query for step in one.steps] for one in recorder.trajectories} == {
        "a": ["a 1", "a 2"], "b": ["b 1", "b 2"]}
    assert recorder.orphans == 0


def test_bound_async_generators(store: InMemoryVectorStore) -> None:
    recorder = Recorder()

    async def main() -> None:
        with recorder.trace("held") as trace:
            parts: AsyncIterator[Any] = recorder.bind(rag(store, "It is held.").astream)("held")
            with recorder.trace("beside"):  # read by a task that knows nothing of either trace
                await asyncio.get_running_loop().create_task(collect(parts), context=contextvars.Context())
        assert is_whole(trace.trajectory, "held") and trace.trajectory.answer == "It is held."
        assert recorder.trajectories[0].steps == ()

    async def collect(parts: AsyncIterator[Any]) -> list[Any]:
        return [part async for part in parts]

    with warnings.catch_warnings(action="ignore"):
        asyncio.run(main())
