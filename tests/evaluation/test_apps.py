"""What counts as an app, and how its answer is found."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda

from ragkit.errors import DataError
from ragkit.evaluation.apps import App, answer_text, load_app
from ragkit.evaluation.calling import AppExit
from ragkit.records.questions import Question

QUESTION = Question("q1", "Who?")


class Callable_:
    def __call__(self, question: str) -> str:
        return question.upper()


async def coroutine(question: str) -> str:
    await asyncio.sleep(0)
    return question.upper()


@pytest.mark.parametrize("target", [str.upper, Callable_(), coroutine, RunnableLambda(str.upper)])
def test_every_form_of_app_answers(target: Any) -> None:
    assert asyncio.run(App(target).answer(QUESTION)) == "WHO?"


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("a", "a"),
        (None, None),
        (AIMessage("a"), "a"),
        (AIMessage([{"type": "text", "text": "a"}, "b"]), "ab"),
        ({"messages": [HumanMessage("q"), AIMessage("a")]}, "a"),
        ({"answer": "a", "context": []}, "a"),
        ({"result": AIMessage("a")}, "a"),
    ],
)
def test_the_answer_is_found_in_what_apps_return(result: Any, expected: str | None) -> None:
    assert answer_text(result) == expected


def test_an_unknown_form_of_answer_says_so() -> None:
    with pytest.raises(DataError, match="give to_answer"):
        answer_text({"foo": 1})
    with pytest.raises(DataError, match="got int; give to_answer"):
        answer_text(3)


def test_to_input_and_to_answer_are_used() -> None:
    app = App(lambda given: {"n": len(given["q"])}, lambda q: {"q": q.text}, lambda out: str(out["n"]))
    assert asyncio.run(app.answer(QUESTION)) == "4"


def test_stop_iteration_of_an_app_comes_through_as_an_error() -> None:
    def broken(_: str) -> str:
        raise StopIteration("over")

    with pytest.raises(AppExit, match="StopIteration: over"):
        asyncio.run(App(broken).answer(QUESTION))


def test_apps_are_loaded_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_rag_app.py").write_text(
        "def build(suffix='!'):\n    return lambda question: question + suffix\n"
        "def answer(question):\n    return 'direct'\n"
        "def broken():\n    raise ValueError('no index')\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    assert load_app("my_rag_app:build", {"suffix": "?"})("a") == "a?"
    assert load_app("my_rag_app:build")("a") == "a!"
    assert load_app("my_rag_app:answer")("a") == "direct"  # an app itself, not a builder
    with pytest.raises(DataError, match=r"building it failed: ValueError: no index"):
        load_app("my_rag_app:broken")
    with pytest.raises(DataError, match=r"has no 'absent'; it has build, answer, broken"):
        load_app("my_rag_app:absent")
    with pytest.raises(DataError, match="cannot import no_such_module"):
        load_app("no_such_module:build")
