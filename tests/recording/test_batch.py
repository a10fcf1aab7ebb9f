"""An app's own `.batch()` over many questions in one block: each root run belongs to the question that it asks."""

from __future__ import annotations

import asyncio
import re
import threading
import time
import warnings
from pathlib import Path
from typing import Any, TypedDict

import pytest

pytest.importorskip("langchain_core")

from langchain_core.documents import Document
from langchain_core.language_models.chat_models import SimpleChatModel
from langchain_core.messages import HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from ragkit.errors import DataError
from ragkit.recording import Recorder, current_trace
from ragkit.records.questions import Question
from ragkit.records.trajectory import Trajectory

QUESTIONS = [f"What does station {number} report?" for number in range(50)]
PROMPT = ChatPromptTemplate.from_template("{found}\n\nQuestion: {question}")


class Stations(BaseRetriever):
    """Gives one passage that names the query, after a moment that differs from query to query."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        time.sleep(0.0002 * (hash(query) % 7))
        if "fails" in query:
            raise ConnectionError(f"no index for {query}")
        return [Document(id=f"id of {query}", page_content=f"Passage about {query}")]


class Echo(SimpleChatModel):
    """Answers with the question at the end of its prompt."""

    @property
    def _llm_type(self) -> str:
        return "echo"

    def _call(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> str:
        return "To: " + str(messages[-1].content).rsplit("Question: ", 1)[-1]


def three_searches(given: Any) -> str:
    """Searches three times, one after the other, without handing any config on."""
    question = given["question"] if isinstance(given, dict) else given
    found = [Stations().invoke(f"{question} #{number}")[0].page_content for number in range(3)]
    return "\n".join(found)


async def three_searches_async(given: Any) -> str:
    question = given["question"] if isinstance(given, dict) else given
    found = await asyncio.gather(*(Stations().ainvoke(f"{question} #{number}") for number in range(3)))
    return "\n".join(one[0].page_content for one in found)


def chain() -> Any:
    search = RunnableLambda(three_searches, afunc=three_searches_async)
    return {"found": search, "question": RunnablePassthrough()} | PROMPT | Echo()


def check(trajectories: list[Trajectory], questions: list[str], turns: list[int] | None) -> None:
    assert [one.question for one in trajectories] == questions
    for one in trajectories:
        assert [step.outermost.query for step in one.steps] == [f"{one.question} #{number}" for number in range(3)]
        assert turns is None or [step.turn for step in one.steps] == turns
        assert one.answer == f"To: {one.question}"
        assert one.context is not None and len(one.context.ids) == 3
        assert "guessed" not in one.meta and one.error is None and (one.ms or 0) > 0


@pytest.mark.parametrize("way", ["batch", "abatch", "as completed", "map"])
def test_fifty_questions_with_three_searches_each(way: str) -> None:
    recorder, app = Recorder(), chain()
    with warnings.catch_warnings(action="error"), recorder.traces(QUESTIONS) as traces:
        if way == "batch":
            app.batch(QUESTIONS, config={"max_concurrency": 8})
        elif way == "abatch":
            asyncio.run(app.abatch(QUESTIONS))
        elif way == "as completed":
            list(app.batch_as_completed(QUESTIONS[::-1], config={"max_concurrency": 8}))
        else:
            app.map().invoke(QUESTIONS)
    assert recorder.orphans == 0
    check([trace.trajectory for trace in traces], QUESTIONS, None if way == "abatch" else [0, 1, 2])
    assert recorder.trajectories == [trace.trajectory for trace in traces]


class State(TypedDict, total=False):
    question: str
    found: str
    documents: list[Document]


def test_a_graph_in_batch_and_async() -> None:
    graphs = pytest.importorskip("langgraph.graph")

    async def search(state: State) -> State:
        return {"found": await three_searches_async(state)}

    recorder = Recorder()
    for node in (lambda state: {"found": three_searches(state)}, search):
        builder = graphs.StateGraph(State)
        builder.add_node("search", node)
        builder.add_edge(graphs.START, "search")
        inputs = [{"question": question} for question in QUESTIONS[:12]]
        with warnings.catch_warnings(action="ignore"), recorder.traces(QUESTIONS[:12]) as traces:
            app = builder.compile()
            asyncio.run(app.abatch(inputs)) if node is search else app.batch(inputs)
        for trace in traces:
            queries = [step.outermost.query for step in trace.trajectory.steps]
            assert queries == [f"{trace.question.text} #{number}" for number in range(3)]
    assert recorder.orphans == 0


@pytest.mark.parametrize(
    "shape",
    [
        lambda text: {"question": text, "k": 3},
        lambda text: {"history": QUESTIONS[:2], "question": f" {text}\n"},
        lambda text: {"messages": [("user", QUESTIONS[0]), ("ai", "…"), ("user", text)]},
        lambda text: {"messages": [HumanMessage(QUESTIONS[1]), HumanMessage(text)]},
        lambda text: f"Be brief. {text} Thank you.",
        lambda text: {"input": {"deep": [f"Q: {text}"]}},
    ],
)
def test_the_question_is_found_in_inputs_of_any_shape(shape: Any) -> None:
    recorder = Recorder()
    asked = QUESTIONS[:12]  # "station 1" stands inside "station 11": the longest wins
    app = RunnableLambda(lambda given: Stations().invoke(str(given))[0].page_content)
    with warnings.catch_warnings(action="ignore"), recorder.traces(asked) as traces:
        app.batch([shape(question) for question in reversed(asked)])
    for trace in traces:
        assert [step.outermost.query for step in trace.trajectory.steps] == [str(shape(trace.question.text))]
        assert "guessed" not in trace.trajectory.meta


def test_a_question_inside_a_longer_one_does_not_take_its_runs() -> None:
    recorder, questions = Recorder(), ["Who built it?", "Who built it? And when?"]
    app = RunnableLambda(lambda given: Stations().invoke(given))
    with warnings.catch_warnings(action="ignore"), recorder.traces(questions) as traces:
        app.batch([f"Be brief. {question}" for question in questions])
    assert [[step.outermost.query for step in trace.trajectory.steps] for trace in traces] == [
        [f"Be brief. {question}"] for question in questions]


def test_several_root_runs_of_plain_code_find_their_question_again() -> None:
    recorder, model = Recorder(), Echo()
    with recorder.traces(QUESTIONS[:6]) as traces:
        found = Stations().batch(QUESTIONS[:6])
        model.batch([f"{one[0].page_content}\nQuestion: {text}" for one, text in zip(found, QUESTIONS, strict=False)])
    for trace in traces:
        (step,) = trace.trajectory.steps
        assert step.outermost.query == trace.question.text and trace.trajectory.answer == f"To: {trace.question.text}"


def test_equal_questions_take_turns_and_a_question_nobody_asked_is_told() -> None:
    recorder = Recorder()
    with pytest.warns(UserWarning, match="no run asked this question"), recorder.traces(["a?", "a?", "b?"]) as traces:
        Stations().batch(["a?", "a?"])
    assert [len(trace.trajectory.steps) for trace in traces] == [1, 1, 0]
    assert [trace.trajectory.key for trace in traces][:2] == [(traces[0].question.id, 0), (traces[0].question.id, 1)]


def test_inputs_that_say_nothing_go_in_order_and_are_guesses() -> None:
    recorder = Recorder()
    app = RunnableLambda(lambda number: Stations().invoke(f"number {number}"))
    with warnings.catch_warnings(action="ignore"), recorder.traces(["one?", "two?"]) as traces:
        app.batch([1, 2], config={"max_concurrency": 1})
    queries = [[step.outermost.query for step in trace.trajectory.steps] for trace in traces]
    assert queries == [["number 1"], ["number 2"]]
    assert all(trace.trajectory.meta["guessed"] for trace in traces)


def test_a_stranger_among_told_ones_is_an_orphan() -> None:
    recorder = Recorder()
    with pytest.warns(UserWarning, match="left out"), recorder.traces(["one?", "two?"]) as traces:
        Stations().batch(["one?", "two?", "rewritten beyond recognition"])
    assert recorder.orphans == 1 and [len(trace.trajectory.steps) for trace in traces] == [1, 1]


def test_what_fails_stays_with_its_question() -> None:
    recorder = Recorder()
    with recorder.traces(["one?", "this fails?"]) as traces:
        answers = chain().batch(["one?", "this fails?"], return_exceptions=True)
    assert isinstance(answers[1], ConnectionError)
    good, bad = (trace.trajectory for trace in traces)
    assert good.error is None and len(good.steps) == 3
    assert bad.error == "ConnectionError: no index for this fails? #0" == bad.steps[0].outermost.error
    with pytest.raises(KeyError), recorder.traces(["never asked?", "asked?"]) as cut:
        Stations().batch(["asked?"])
        raise KeyError("own code")
    assert [trace.trajectory.error for trace in cut] == ["KeyError: 'own code'", None]


def test_direct_calls_of_a_store_and_current_trace_inside_the_runs() -> None:
    from langchain_core.vectorstores import InMemoryVectorStore

    from tests.support.recording_parts import WordEmbedding, documents

    store = InMemoryVectorStore(WordEmbedding())
    store.add_documents(documents())
    recorder = Recorder()

    def answer(question: str) -> str:
        found = store.similarity_search(question, k=2)
        trace = current_trace()
        assert trace is not None and trace.question.text == question
        trace.context(found[:1])
        return question

    with recorder.instrument(store), recorder.traces(QUESTIONS[:8]) as traces:
        assert current_trace() is None
        RunnableLambda(answer).batch(QUESTIONS[:8])
    for trace in traces:
        assert [step.outermost.query for step in trace.trajectory.steps] == [trace.question.text]
        assert trace.trajectory.context is not None and len(trace.trajectory.context.ids) == 1
    assert recorder.orphans == 0


def test_answers_by_hand_files_and_times(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "t.jsonl")
    questions = [Question("q1", "one?"), Question("q2", "two?")]
    begun = time.perf_counter()
    with recorder.traces(questions) as traces:
        for trace, answer in zip(traces, Stations().batch([one.text for one in questions]), strict=True):
            trace.answer(answer[0].page_content)
        time.sleep(0.2)
    assert [trace.trajectory.answer for trace in traces] == ["Passage about one?", "Passage about two?"]
    assert all(0 < (trace.trajectory.ms or 0) < (time.perf_counter() - begun) * 1000 - 200 for trace in traces)
    assert [line[:60].count('"q1"') for line in (tmp_path / "t.jsonl").read_text().splitlines()] == [1, 0]
    assert re.search("q2", (tmp_path / "t.jsonl").read_text())


def test_after_the_block_nothing_is_claimed_and_no_question_is_refused() -> None:
    recorder = Recorder()
    with warnings.catch_warnings(action="ignore"), recorder.traces(["one?"]) as traces:
        bound = recorder.bind(Stations().invoke)
    bound("one?")
    Stations().invoke("one?")
    assert traces[0].trajectory.steps == () and recorder.orphans == 0
    with pytest.raises(DataError, match="at least one question"):
        recorder.traces([])


def test_bind_carries_the_block_into_raw_threads() -> None:
    recorder = Recorder()
    with recorder.traces(["one?", "two?"]) as traces:
        for question in ("two?", "one?"):
            thread = threading.Thread(target=recorder.bind(Stations().invoke), args=(question,))
            thread.start()
            thread.join()
    assert [len(trace.trajectory.steps) for trace in traces] == [1, 1] and recorder.orphans == 0
