"""Whose trace is it: tasks, threads that carry the context, raw threads, and what belongs to nobody."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ragkit.recording import Recorder, current_trace


def search_of(recorder: Recorder) -> Callable[[str], list[tuple[str, str]]]:
    @recorder.retriever
    def search(query: str) -> list[tuple[str, str]]:
        return [(f"id-{query}", f"text of {query}")]

    return search


def in_raw_thread(function: Callable[..., Any], *args: Any) -> None:
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def test_questions_side_by_side_in_tasks_never_mix() -> None:
    recorder = Recorder()

    @recorder.retriever
    async def search(query: str) -> list[tuple[str, str]]:
        await asyncio.sleep(0.001)
        return [(query, query)]

    async def ask(name: str) -> None:
        with recorder.trace(name) as trace:
            await asyncio.gather(search(f"{name}.0"), search(f"{name}.1"))
            await asyncio.to_thread(search_of(recorder), name)
            assert current_trace() is trace

    async def main() -> None:
        await asyncio.gather(*(ask(f"q{number}") for number in range(20)))

    asyncio.run(main())
    assert len(recorder.trajectories) == 20 and recorder.orphans == 0
    for trajectory in recorder.trajectories:
        name = trajectory.question
        assert [step.outermost.query for step in trajectory.steps] == [f"{name}.0", f"{name}.1", name]
        assert [step.turn for step in trajectory.steps] == [0, 0, 1]  # the two of one gather overlap in time
        assert "guessed" not in trajectory.meta


def test_threads_with_a_context_of_their_own() -> None:
    recorder = Recorder()
    search = search_of(recorder)

    def ask(name: str) -> None:
        with recorder.trace(name):
            search(name)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, [f"q{number}" for number in range(40)]))
    assert {one.question: one.steps[0].outermost.query for one in recorder.trajectories} == {
        f"q{number}": f"q{number}" for number in range(40)
    }


def test_a_raw_thread_with_one_live_trace_is_a_flagged_guess() -> None:
    recorder = Recorder()
    search = search_of(recorder)
    with recorder.trace("q") as trace:
        search("own")
        in_raw_thread(search, "raw")
        in_raw_thread(contextvars.copy_context().run, search, "carried")
    assert [step.outermost.query for step in trace.trajectory.steps] == ["own", "raw", "carried"]
    assert trace.trajectory.meta["guessed"] == 1 and recorder.orphans == 0


def test_a_raw_thread_with_several_live_traces_is_an_orphan() -> None:
    recorder = Recorder()
    search = search_of(recorder)
    inside = threading.Barrier(2, timeout=10)

    def ask(name: str) -> None:
        with recorder.trace(name):
            inside.wait()
            if name == "one":
                in_raw_thread(search, "whose?")
            inside.wait()

    with pytest.warns(UserWarning, match=r"recorder\.bind\(function\)"), ThreadPoolExecutor(2) as pool:
        list(pool.map(ask, ["one", "two"]))
    assert recorder.orphans == 1
    assert [one.steps for one in recorder.trajectories] == [(), ()]


def test_bind_mends_it() -> None:
    recorder = Recorder()
    search = search_of(recorder)
    inside = threading.Barrier(2, timeout=10)

    async def later(query: str) -> Any:
        return search(query)

    def ask(name: str) -> None:
        with recorder.trace(name):
            inside.wait()
            in_raw_thread(recorder.bind(search), name)
            bound = recorder.bind(later)
            in_raw_thread(lambda: asyncio.run(bound(f"{name} async")))
            with ThreadPoolExecutor(4) as pool:  # several calls of one bound function at the same time
                list(pool.map(recorder.bind(search), [name] * 8))
            inside.wait()

    with warnings.catch_warnings(), ThreadPoolExecutor(2) as pool:
        warnings.simplefilter("error")
        list(pool.map(ask, ["one", "two"]))
    assert recorder.orphans == 0
    for trajectory in recorder.trajectories:
        queries = [step.outermost.query for step in trajectory.steps]
        assert sorted(queries) == [trajectory.question] * 9 + [f"{trajectory.question} async"]
        assert "guessed" not in trajectory.meta


def test_bind_keeps_the_place_beneath_the_calling_function() -> None:
    recorder = Recorder()
    search = search_of(recorder)

    @recorder.retriever
    def both(query: str) -> list[tuple[str, str]]:
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(recorder.bind(search), ["x", "y"]))
        return [*found[1], *found[0]]

    with recorder.trace("q") as trace:
        both("x and y")
    (step,) = trace.trajectory.steps
    assert [one.stage for one in step.retrievals] == ["fuse", "retrieve", "retrieve"]


def test_work_that_goes_on_after_its_trace_is_not_given_to_the_next() -> None:
    recorder = Recorder()
    search = search_of(recorder)
    with recorder.trace("first") as first:
        context = contextvars.copy_context()
    with pytest.warns(UserWarning, match="left out"), recorder.trace("second") as second:
        context.run(search, "late")
    assert first.trajectory.steps == () and second.trajectory.steps == ()
    assert recorder.orphans == 1


def test_outside_of_any_trace_nothing_is_kept_and_bind_changes_nothing() -> None:
    recorder = Recorder()
    search = search_of(recorder)
    assert recorder.bind(search) is search
    search("x")
    assert recorder.trajectories == [] and recorder.orphans == 0


def test_a_trace_inside_a_trace_takes_its_own_searches() -> None:
    recorder = Recorder()
    search = search_of(recorder)
    with recorder.trace("outer") as outer:
        search("a")
        with recorder.trace("inner") as inner:
            search("b")
        search("c")
    assert [step.outermost.query for step in outer.trajectory.steps] == ["a", "c"]
    assert [step.outermost.query for step in inner.trajectory.steps] == ["b"]
    assert "guessed" not in outer.trajectory.meta and current_trace() is None
