"""Asking an app: errors, time-outs, retries, resume, concurrency. Every app here is real code that misbehaves."""

import asyncio
import threading
import time
from pathlib import Path

import pytest

from ragkit.evaluation.apps import App
from ragkit.evaluation.record import RecordSettings, record
from ragkit.recording import current_trace
from ragkit.records.files import read_trajectories
from ragkit.records.questions import Question
from ragkit.records.trajectory import Trajectory

QUESTIONS = [Question(f"q{i}", f"question {i}") for i in range(6)]


def ask(target: object, path: Path | None = None, **settings: float) -> list[Trajectory]:
    return asyncio.run(record(App(target), QUESTIONS, RecordSettings(**settings), path))  # type: ignore[arg-type]


def searching(question: str) -> str:
    trace = current_trace()
    assert trace is not None
    trace.step(question, [f"passage for {question}"])
    return question


def test_what_each_question_did_stays_with_it_under_concurrency() -> None:
    def slow(question: str) -> str:
        time.sleep(0.01)
        return searching(question)

    found = ask(slow, concurrency=6)
    assert [t.question_id for t in found] == [q.id for q in QUESTIONS]
    for trajectory, question in zip(found, QUESTIONS, strict=True):
        assert trajectory.answer == question.text
        assert [p.text for p in trajectory.steps[0].outermost.passages] == [f"passage for {question.text}"]


def test_an_app_that_raises_costs_one_question() -> None:
    def app(question: str) -> str:
        if question.endswith("3"):
            raise ValueError("no index")
        return question

    found = ask(app)
    assert [t.error for t in found if t.error] == ["ValueError: no index"]
    assert found[3].answer is None and found[4].answer == "question 4"


def test_an_app_that_hangs_is_given_up_and_blocks_nothing() -> None:
    never = threading.Event()

    def app(question: str) -> str:
        if question.endswith("1"):
            never.wait()
        return question

    started = time.monotonic()
    found = ask(app, timeout=0.3, concurrency=1)
    assert time.monotonic() - started < 5
    assert found[1].error is not None and "no answer within 0.3 s" in found[1].error
    assert [t.answer for t in found].count(None) == 1
    never.set()


def test_the_apps_own_timeout_error_keeps_its_words() -> None:
    async def app(question: str) -> str:
        raise TimeoutError("the vector store took too long")

    assert "the vector store took too long" in str(ask(app)[0].error)


def test_a_rate_limit_of_the_app_is_waited_for() -> None:
    class RateLimitError(Exception):
        response = type("Response", (), {"status_code": 429, "headers": {"retry-after": "0.01"}})

    calls: dict[str, int] = {}

    def app(question: str) -> str:
        calls[question] = calls.get(question, 0) + 1
        if calls[question] < 3:
            raise RateLimitError("slow down")
        return question

    found = ask(app, retries=3)
    assert all(t.error is None and t.answer == t.question for t in found)
    assert set(calls.values()) == {3}
    assert all(t.error for t in ask(app, retries=0)) is False  # all were answered above: the counts went on


def test_only_what_is_missing_or_failed_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "trajectories.jsonl"
    asked: list[str] = []

    def app(question: str) -> str:
        asked.append(question)
        if question.endswith("2") and len(asked) <= 6:
            raise ValueError("once")
        return question

    first = ask(app, path, concurrency=1)
    assert first[2].error is not None
    assert read_trajectories(path)[2].error is not None
    again = ask(app, path, concurrency=1)
    assert asked[6:] == ["question 2"]
    assert all(t.error is None for t in again)
    assert [t.key for t in read_trajectories(path)] == [(q.id, 0) for q in QUESTIONS]


def test_a_torn_last_line_of_a_killed_run_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "trajectories.jsonl"
    ask(str.upper, path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]) + lines[3][:40])
    asked: list[str] = []

    def app(question: str) -> str:
        asked.append(question)
        return question

    assert len(ask(app, path)) == 6
    assert sorted(asked) == ["question 3", "question 4", "question 5"]
    assert len(read_trajectories(path)) == 6


def test_repeats_are_asked_each_on_their_own() -> None:
    found = ask(str.upper, repeats=2)
    assert [t.key for t in found][:4] == [("q0", 0), ("q0", 1), ("q1", 0), ("q1", 1)]


@pytest.mark.parametrize("leaving", [SystemExit(0), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()])
@pytest.mark.parametrize("kind", ["async", "sync"])
def test_an_app_that_wants_to_leave_costs_one_question(leaving: BaseException, kind: str) -> None:
    def leave(question: str) -> str:
        if question.endswith("2"):
            raise leaving
        return question

    async def leave_async(question: str) -> str:
        return leave(question)

    found = ask(leave_async if kind == "async" else leave)
    assert [t.answer for t in found] == [None if i == 2 else f"question {i}" for i in range(6)]
    assert type(leaving).__name__ in str(found[2].error)


def test_an_async_app_that_blocks_its_loop_is_given_up() -> None:
    never = threading.Event()

    async def blocking(question: str) -> str:
        never.wait(5)
        return question

    started = time.monotonic()
    found = asyncio.run(record(App(blocking), QUESTIONS[:1], RecordSettings(timeout=0.3)))
    assert time.monotonic() - started < 3
    assert "no answer within 0.3 s" in str(found[0].error)
    never.set()


def test_async_apps_share_one_loop_between_questions() -> None:
    loops: set[int] = set()

    async def app(question: str) -> str:
        loops.add(id(asyncio.get_running_loop()))
        await asyncio.sleep(0)
        return searching(question)

    found = ask(app, concurrency=6)
    assert len(loops) == 1
    assert [t.steps[0].outermost.query for t in found] == [q.text for q in QUESTIONS]
