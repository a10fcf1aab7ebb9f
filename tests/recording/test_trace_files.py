"""What traces leave: context and answer by hand, files, repeats, errors, and calls that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragkit.errors import DataError
from ragkit.recording import Recorder
from ragkit.records.files import read_trajectories
from ragkit.records.questions import text_id
from ragkit.records.trajectory import Step

A, B, C, D = ("a", "Text of A."), ("b", "Text of B."), ("c", "Text of C."), ("d", "Text of D.")


def ids(step: Step) -> list[tuple[str, ...]]:
    return [found.ids for found in step.retrievals]


def test_context_answer_usage_by_hand() -> None:
    with Recorder().trace("q") as trace:
        trace.step("s", [A, B])
        trace.context([B, A], ranked=False)
        trace.answer("first")
        trace.answer("second")
        trace.usage(input_tokens=3, cost=0.5)
        trace.usage(input_tokens=4)
    trajectory, context = trace.trajectory, trace.trajectory.context
    assert context is not None
    assert (context.ids, context.ranked, context.source) == (("b", "a"), False, "manual")
    assert trajectory.answer == "second" and trajectory.usage == {"input_tokens": 7, "cost": 0.5}


def test_an_unknown_context_is_said_once_with_the_line_that_mends_it() -> None:
    recorder = Recorder()
    with pytest.warns(UserWarning, match=r"current_trace\(\)\.context\(passages\)") as caught:
        for question in ("one", "two"):
            with recorder.trace(question) as trace:
                trace.step("s", [A])
                trace.answer("x")
    assert len(caught) == 1
    assert trace.trajectory.context is None and trace.trajectory.meta["warnings"]


def test_bad_calls() -> None:
    recorder = Recorder()
    with pytest.raises(DataError, match="empty text"):
        recorder.trace("  ")
    with pytest.raises(DataError, match="a Question or its text"):
        recorder.trace(3)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="repeat >= 0"):
        recorder.trace("q", repeat=-1)
    trace = recorder.trace("q")
    with pytest.raises(DataError, match="has not begun"):
        trace.step("s", [])
    with trace:
        with pytest.raises(DataError, match="has not ended"):
            _ = trace.trajectory
        with pytest.raises(DataError, match="expected a list of passages"):
            trace.step("s", "a text")
        with pytest.raises(DataError, match="expected a stage"):
            trace.step("s", [A], stage="sort")  # type: ignore[arg-type]
        with pytest.raises(DataError, match="expected a text"):
            trace.answer(5)  # type: ignore[arg-type]
    assert trace.trajectory.steps == ()
    with pytest.raises(DataError, match="has ended"):
        trace.step("s", [A])
    with pytest.raises(DataError, match="make a new trace"), trace:
        pass


def test_asking_again_is_the_next_repeat() -> None:
    recorder = Recorder()
    for _ in range(2):
        with recorder.trace("q"):
            pass
    with recorder.trace("q", repeat=5):
        pass
    with recorder.trace("q"):
        pass
    assert [one.repeat for one in recorder.trajectories] == [0, 1, 5, 6]


def test_a_path_takes_each_trace_as_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "trajectories.jsonl"
    recorder = Recorder(path)
    for number, question in enumerate(("one", "zwei 知")):
        with recorder.trace(question) as trace:
            trace.step("s", [A])
        assert len(path.read_text(encoding="utf-8").splitlines()) == number + 1
    assert recorder.trajectories == []
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [row["question"] for row in rows] == ["one", "zwei 知"]
    with pytest.raises(DataError, match="keeps none"):
        recorder.save(tmp_path / "other.jsonl")


def test_save(tmp_path: Path) -> None:
    from ragkit.records.files import read_trajectories

    recorder = Recorder()
    with recorder.trace("q") as trace:
        trace.step("s", [A])
        trace.context([A])
    recorder.save(tmp_path / "t.jsonl")
    (again,) = read_trajectories(tmp_path / "t.jsonl")
    assert again.steps[0].outermost.ids == ("a",) and again.context is not None
    assert again.context.source == "manual"


class Speechless(RuntimeError):
    """As an error of a vendor whose text is made of what is missing by then."""

    def __str__(self) -> str:
        raise AttributeError("no message")


def test_an_error_that_cannot_be_put_in_words_breaks_no_trace() -> None:
    told = "Speechless: (its message cannot be shown)"
    recorder = Recorder()
    with pytest.raises(Speechless), recorder.trace("q") as trace:
        with pytest.raises(Speechless), trace.search("s"):
            raise Speechless
        trace.step("t", [A])
        raise Speechless
    assert recorder.trajectories == [trace.trajectory]
    assert trace.trajectory.error == trace.trajectory.steps[0].outermost.error == told
    assert ids(trace.trajectory.steps[1]) == [("a",)]


def test_an_exception_may_be_a_warning() -> None:
    recorder = Recorder()
    with pytest.warns(UserWarning), recorder.trace("q") as trace:
        trace.step("t", [A])
        trace.warn(ValueError("cut\noff"))
        trace.warn(Speechless())
    assert trace.trajectory.meta["warnings"] == ("ValueError: cut off", "Speechless: (its message cannot be shown)")


def test_metadata_that_cannot_be_put_in_words_breaks_no_file(tmp_path: Path) -> None:
    class Mute:
        def __str__(self) -> str:
            raise AttributeError("no message")

        def model_dump(self) -> Any:
            raise ValueError("circular")

    with Recorder(tmp_path / "t.jsonl").trace("q") as trace:
        trace.step("t", [{"id": "a", "text": "t", "metadata": {"odd": Mute(), "fine": 1}}])
    (row,) = (json.loads(line) for line in (tmp_path / "t.jsonl").read_text(encoding="utf-8").splitlines())
    assert row["steps"][0]["retrievals"][0]["passages"][0]["metadata"] == {"odd": "(Mute)", "fine": 1}


def test_a_trace_has_the_same_ids_in_memory_and_out_of_its_file(tmp_path: Path) -> None:
    made = text_id("Text of A.")
    recorder = Recorder(tmp_path / "t.jsonl")
    with recorder.trace("q") as trace:
        trace.step("s", ["Text of A."])
        trace.step("t", [A])
        trace.context([(made, None)])
    (again,) = read_trajectories(tmp_path / "t.jsonl")
    for one in (trace.trajectory, again):
        assert one.context is not None
        assert [*(step.outermost.ids for step in one.steps), one.context.ids] == [("a",)] * 3


def test_an_answer_may_be_what_the_app_returned() -> None:
    from langchain_core.messages import AIMessage, HumanMessage

    recorder = Recorder()
    for output in ("a", AIMessage("a"), {"messages": [HumanMessage("q"), AIMessage("a")]}, {"answer": "a"}):
        with recorder.trace("q") as trace:
            trace.answer(output)
        assert trace.trajectory.answer == "a"
    with pytest.raises(DataError, match="got dict"), recorder.trace("q") as trace:
        trace.answer({"documents": []})
