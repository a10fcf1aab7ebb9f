"""Traces by hand: steps, searches, decorated functions, context, errors."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from ragkit.recording import Recorder, current_trace
from ragkit.records.questions import Question, text_id
from ragkit.records.trajectory import Step, Trajectory

A, B, C, D = ("a", "Text of A."), ("b", "Text of B."), ("c", "Text of C."), ("d", "Text of D.")


def ids(step: Step) -> list[tuple[str, ...]]:
    return [found.ids for found in step.retrievals]


def stages(step: Step) -> list[str]:
    return [found.stage for found in step.retrievals]


def test_transcript_with_a_calculator_and_an_empty_search() -> None:  # case C71
    transcript: list[tuple[str, str, list[str] | None]] = [
        ("search", "first", ["d1", "d5"]),
        ("calculator", "", None),
        ("search", "second", ["d2", "d1"]),
        ("search", "third", []),
    ]
    gold, seen = {"d1", "d2", "d3"}, set[str]()
    with Recorder().trace("q") as trace:
        for tool, query, found in transcript:
            if found is not None:
                trace.step(query, [(one, None) for one in found], name=tool)
    steps = trace.trajectory.steps
    assert [step.outermost.query for step in steps] == ["first", "second", "third"]
    assert [step.outermost.ids for step in steps] == [("d1", "d5"), ("d2", "d1"), ()]
    assert [step.turn for step in steps] == [0, 1, 2]
    cumulative = []
    for step in steps:
        seen |= gold & set(step.outermost.ids)
        cumulative.append(len(seen) / 3)
    assert cumulative == pytest.approx([1 / 3, 2 / 3, 2 / 3])


def test_two_documents_of_one_text_keep_their_ids() -> None:  # case C69
    recorder = Recorder()
    lists = {"one": [("id1", "T"), ("id2", "B")], "two": [("id4", "C"), ("id3", "T")]}

    @recorder.retriever(name="one")
    def one(query: str) -> list[tuple[str, str]]:
        return lists["one"]

    @recorder.retriever(name="two")
    def two(query: str) -> list[tuple[str, str]]:
        return lists["two"]

    @recorder.retriever(stage="fuse")
    def merged_by_text(query: str) -> list[tuple[str, str]]:
        one(query), two(query)
        return [("id1", "T"), ("id4", "C"), ("id2", "B")]

    with recorder.trace("q") as trace:
        merged_by_text("T")
    (step,) = trace.trajectory.steps
    assert ids(step) == [("id1", "id4", "id2"), ("id1", "id2"), ("id4", "id3")]
    assert stages(step) == ["fuse", "retrieve", "retrieve"]
    assert trace.trajectory.meta["notices"] == ("id3 merged into id1 (same text)",)


def test_a_generated_id_becomes_the_given_one_of_the_same_text() -> None:
    with Recorder().trace("q") as trace:
        trace.step("x", ["Text of A.", ""])
        trace.step("y", [A, ("b", "")])
    first, second = trace.trajectory.steps
    assert first.outermost.ids == ("a", text_id(""))  # an empty text says nothing
    assert second.outermost.ids == ("a", "b")


def test_search_puts_the_result_outermost() -> None:
    with Recorder().trace(Question("q1", "q")) as trace:
        with trace.search("s", turn=3) as search:
            search.stage("retrieve", "dense", [A, B], "similarity", 5.0)
            search.stage("retrieve", "lexical", [C, B])
            search.stage("fuse", "rrf", [B, A, C])
            search.result("rerank", "maxsim", [C, B], "similarity")
        assert current_trace() is trace
    assert current_trace() is None
    (step,) = trace.trajectory.steps
    assert [found.name for found in step.retrievals] == ["maxsim", "rrf", "dense", "lexical"]
    assert step.turn == 3 and step.retrievals[2].ms == 5.0 and step.retrievals[2].score_kind == "similarity"
    assert step.ms is not None and step.ms >= 0


def test_search_without_result_takes_its_last_stage_and_nothing_is_recorded_twice() -> None:
    recorder = Recorder()

    @recorder.retriever
    def inside(query: str) -> list[tuple[str, str]]:
        return [A, B]

    with recorder.trace("q") as trace:
        with trace.search("s") as search:
            search.stage("retrieve", "dense", inside("s"))
            search.stage("rerank", "cut", [B])
        with trace.search("only what was seen inside"):
            inside("t")
        with trace.search("nothing"):
            pass
    first, second, third = trace.trajectory.steps
    assert (ids(first), stages(first)) == ([("b",), ("a", "b")], ["rerank", "retrieve"])
    assert ids(second) == [("a", "b")] and second.outermost.query == "t"
    assert ids(third) == [()] and third.outermost.error is None


def test_a_failing_search_is_an_error_step_and_the_exception_goes_on() -> None:
    recorder = Recorder()
    with pytest.raises(RuntimeError, match="index\nis gone"), recorder.trace("q") as trace, trace.search("s") as search:
        search.stage("retrieve", "dense", [A])
        raise RuntimeError("index\nis gone")
    (step,) = trace.trajectory.steps
    assert step.outermost.error == "RuntimeError: index is gone" and step.outermost.ids == ()
    assert ids(step)[1] == ("a",)
    assert trace.trajectory.error == "RuntimeError: index is gone"
    assert recorder.trajectories == [trace.trajectory]


def test_nested_functions_are_stages_of_one_step() -> None:
    recorder = Recorder()

    @recorder.retriever
    def retrieve(query: str) -> list[tuple[str, str]]:
        return [A, B, C]

    @recorder.retriever(stage="rerank")
    def rerank(query: str, passages: list[Any]) -> list[Any]:
        return list(reversed(passages))

    @recorder.retriever
    def search(query: str) -> list[Any]:
        return rerank(query, retrieve(query))[:2]

    with recorder.trace("q") as trace:
        search("s")
    (step,) = trace.trajectory.steps
    assert ids(step) == [("c", "b"), ("c", "b", "a"), ("a", "b", "c")]
    assert stages(step) == ["filter", "rerank", "retrieve"]


def test_functions_called_one_after_the_other_are_one_step_too() -> None:
    recorder = Recorder()

    @recorder.retriever
    def retrieve(query: str) -> list[tuple[str, str]]:
        return [A, B, C]

    @recorder.retriever(stage="rerank")
    def rerank(query: str, passages: list[Any]) -> list[Any]:
        return [passages[2], passages[0]]

    @recorder.retriever  # no stage: told by what goes in and out
    def keep_first(passages: list[Any]) -> list[Any]:
        return passages[:1]

    with recorder.trace("q") as trace:
        keep_first(rerank("one", retrieve("one")))
        rerank("two", retrieve("two"))
        retrieve("three")
    one, two, three = trace.trajectory.steps
    assert (ids(one), stages(one)) == ([("c",), ("c", "a"), ("a", "b", "c")], ["filter", "rerank", "retrieve"])
    assert (ids(two), stages(two)) == ([("c", "a"), ("a", "b", "c")], ["rerank", "retrieve"])
    assert ids(three) == [("a", "b", "c")]


def test_a_reranker_whose_search_nobody_saw_brings_its_input_along() -> None:
    recorder = Recorder()

    @recorder.retriever(stage="rerank")
    def rerank(query: str, passages: list[Any]) -> list[Any]:
        return [passages[1]]

    with recorder.trace("q") as trace:
        rerank("s", [A, B])
    (step,) = trace.trajectory.steps
    assert (ids(step), stages(step)) == ([("b",), ("a", "b")], ["rerank", "retrieve"])


def test_a_reranker_that_loses_ids_gets_them_back_by_text() -> None:  # case C73 c
    recorder = Recorder()

    @recorder.retriever
    def retrieve(query: str) -> list[tuple[str, str]]:
        return [A, ("e", "A long passage about the harbour. And a second sentence about it.")]

    @recorder.retriever(stage="rerank")
    def rerank(query: str, passages: list[Any]) -> list[str]:
        return ["And a second sentence about it.", "Text of A."]

    with recorder.trace("q") as trace:
        rerank("s", retrieve("s"))
    (step,) = trace.trajectory.steps
    assert ids(step) == [("e", "a"), ("a", "e")]


def test_a_reranker_whose_ids_cannot_be_told_is_said_aloud() -> None:
    recorder = Recorder()

    @recorder.retriever
    def retrieve(query: str) -> list[tuple[str, str]]:
        return [A, B]

    @recorder.retriever(stage="rerank")
    def rerank(query: str, passages: list[Any]) -> list[str]:
        return ["rewritten beyond recognition"]

    with pytest.warns(UserWarning, match="1 passages with ids that it was not given"), recorder.trace("q") as trace:
        rerank("s", retrieve("s"))
    assert len(trace.trajectory.steps) == 1
    assert "rerank returned 1 passages" in trace.trajectory.meta["warnings"][0]


def test_a_failing_reranker_leaves_the_list_that_the_app_had() -> None:
    recorder = Recorder()

    @recorder.retriever
    def retrieve(query: str) -> list[tuple[str, str]]:
        return [A, B]

    @recorder.retriever(stage="rerank")
    def rerank(query: str, passages: list[Any]) -> list[Any]:
        raise ConnectionError("no re-ranker there")

    with recorder.trace("q") as trace:
        found = retrieve("s")
        with pytest.raises(ConnectionError):
            rerank("s", found)
    (step,) = trace.trajectory.steps
    assert step.outermost.ids == ("a", "b") and step.outermost.error is None
    assert step.retrievals[1].error == "ConnectionError: no re-ranker there"


def test_fusion_by_hand_joins_parallel_searches_and_leaves_turns_apart() -> None:
    with Recorder().trace("q") as trace:
        trace.step("x", [A, B], turn=0)
        trace.step("x", [C, D], turn=0)
        trace.step("x", [C, A], stage="fuse")
        trace.step("y", [D, B], turn=1)
        trace.step("z", [B, C], stage="rerank")  # out of two turns: no search
    first, second = trace.trajectory.steps
    assert ids(first) == [("c", "a"), ("a", "b"), ("c", "d")]
    assert ids(second) == [("d", "b")]
    assert [one["ids"] for one in trace.trajectory.meta["across_steps"]] == [["b", "c"]]


def test_async_functions_and_an_error_in_one() -> None:
    recorder = Recorder()

    @recorder.retriever
    async def retrieve(query: str) -> list[tuple[str, str]]:
        await asyncio.sleep(0)
        if query == "bad":
            raise ValueError("bad query")
        return [A]

    async def main() -> Trajectory:
        with recorder.trace("q") as trace:
            with pytest.raises(ValueError, match="bad query"):
                await retrieve("bad")
            await retrieve("good")
        return trace.trajectory

    bad, good = asyncio.run(main()).steps
    assert bad.outermost.error == "ValueError: bad query" and good.outermost.ids == ("a",)
    assert (bad.turn, good.turn) == (0, 1)


def test_the_app_gets_what_its_function_returned() -> None:
    recorder = Recorder()
    lazily = itertools.count()

    @recorder.retriever
    def odd(query: str) -> Any:
        return 5 if query == "number" else lazily

    with recorder.trace("q") as trace:
        assert odd("number") == 5
        assert next(odd("iterator")) == 0
    number, iterator = trace.trajectory.steps
    assert "expected a list of passages, got int" in str(number.outermost.error)
    assert "got an iterator" in str(iterator.outermost.error)
    assert odd("number") == 5  # outside of a trace nothing happens
