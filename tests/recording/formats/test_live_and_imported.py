"""A real app recorded live, exported by OpenInference's instrumentor and as LangSmith runs: one and the same story."""

from __future__ import annotations

import json
import operator
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph")

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.tools import tool
from langchain_core.tools.retriever import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from ragkit.recording.formats import FORMATS
from ragkit.records.trajectory import Trajectory
from tests.support.exports import Seen, flat_runs, story, watch
from tests.support.recording_parts import (
    WordEmbedding,
    calls,
    chat,
    classic_retriever,
    create_agent,
    documents,
)

QUESTION = "In which town was the builder of the lighthouse at Norrby born?"
App = Callable[[dict[str, Any]], Any]


def retriever(k: int = 2) -> Any:
    store = InMemoryVectorStore(WordEmbedding())
    store.add_documents(documents())
    return store.as_retriever(search_kwargs={"k": k})


class Broken(BaseRetriever):
    """Fails, as a store does that is down."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        raise RuntimeError(f"no store for {query!r}")


class Nothing(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return []


class Announced(BaseRetriever):
    """Says that it has begun: of two searches at a time one has to be the first."""

    begun: Any

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        self.begun.set()
        return documents("d5 d3")


def words(found: list[Document]) -> str:
    return "\n\n".join(one.page_content for one in found)


def chain(searching: Any, answer: str = "In Vik.") -> App:
    prompt = ChatPromptTemplate.from_template("Answer from:\n{context}\n\nQuestion: {question}")
    app = {"context": searching, "question": RunnablePassthrough()} | prompt | chat(answer) | StrOutputParser()
    return lambda config: app.invoke(QUESTION, config)


def one_search() -> App:
    return chain(retriever() | words)


def nothing_found() -> App:
    return chain(Nothing() | words, "I do not know.")


def broken_store() -> App:
    return chain(Broken() | words)


def two_at_a_time() -> App:
    begun = threading.Event()
    second = RunnableLambda(lambda query: query if begun.wait(10) else "") | retriever(2)
    both = RunnableParallel(left=Announced(begun=begun), right=second)
    return chain(both | RunnableLambda(lambda found: words([*found["left"], *found["right"]])))


def fusion() -> App:
    ensemble = classic_retriever("EnsembleRetriever")(retrievers=[retriever(2), retriever(4)], weights=[0.5, 0.5])
    return chain(ensemble | words)


def agent(**options: Any) -> App:
    search = create_retriever_tool(retriever(), "search", "Searches the passages.", **options)
    used = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}
    script = chat(calls("lighthouse Norrby", "cheese Vik"), calls("Ada Lund born town Vik"),
                  AIMessage(content="In Vik.", usage_metadata=used))
    app = create_agent(script, [search])
    return lambda config: app.invoke({"messages": [("user", QUESTION)]}, config)


def agent_with_artifacts() -> App:
    return agent(response_format="content_and_artifact")


def artifacts_alone() -> App:
    @tool(response_format="content_and_artifact")
    def search(query: str) -> Any:
        """Searches somewhere that has no callbacks."""
        found = documents("d1 d2" if query == "one" else "d2")
        return words(found), found

    app = create_agent(chat(calls("one"), calls("two"), "In Vik."), [search])
    return lambda config: app.invoke({"messages": [("user", QUESTION)]}, config)


def broken_tool() -> App:
    @tool
    def lookup(query: str) -> str:
        """Fails."""
        raise RuntimeError("no such page")

    search = create_retriever_tool(retriever(), "search", "Searches the passages.")
    app = create_agent(chat(calls("Norrby"), calls("Vik", tool="lookup"), "In Vik."), [search, lookup])
    return lambda config: app.invoke({"messages": [("user", QUESTION)]}, config)


def no_search() -> App:
    app = create_agent(chat("In Vik."), [create_retriever_tool(retriever(), "search", "Searches.")])
    return lambda config: app.invoke({"messages": [("user", QUESTION)]}, config)


class State(TypedDict, total=False):
    question: str
    documents: list[Document]
    seen: Annotated[list[Document], operator.add]
    answer: str


def graph() -> App:
    """Retrieve, re-rank, drop, answer: each a node that returns a list of Documents."""
    model = chat("In Vik.")
    made = StateGraph(State)
    made.add_node("retrieve", lambda state: {"documents": retriever(4).invoke(state["question"])})
    made.add_node("rerank", lambda state: {"documents": state["documents"][::-1]})
    made.add_node("grade", lambda state: Command(update={"documents": state["documents"][:2]}, goto="generate"))
    made.add_node("generate", lambda state: {"answer": model.invoke(words(state["documents"])).content})
    for one, other in ((START, "retrieve"), ("retrieve", "rerank"), ("rerank", "grade"), ("generate", END)):
        made.add_edge(one, other)
    app = made.compile()
    return lambda config: app.invoke({"question": QUESTION}, config)


APPS = [one_search, nothing_found, broken_store, two_at_a_time, fusion, agent, agent_with_artifacts, artifacts_alone,
        broken_tool, no_search, graph]


def seen_of(app: App) -> Seen:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice to the user of the live recorder
        return watch(QUESTION, app)


def without_advice(trajectory: Trajectory) -> dict[str, Any]:
    return {key: value for key, value in story(trajectory).items() if key != "warnings"}


@pytest.mark.parametrize("make", APPS, ids=lambda make: make.__name__)
def test_the_export_tells_what_the_live_recorder_saw(make: Callable[[], App], tmp_path: Path) -> None:
    seen = seen_of(make())
    spans, runs = seen.write(tmp_path)
    for tool_name, path in (("openinference", spans), ("langsmith", runs)):
        (found,) = FORMATS[tool_name](path).trajectories
        assert story(found) == without_advice(seen.live), tool_name
        assert found.question_id == seen.live.question_id
        assert found.meta["source"]["format"] == tool_name


def test_the_order_of_spans_and_rows_says_nothing(tmp_path: Path) -> None:
    seen = seen_of(agent_with_artifacts())
    spans, runs = seen.write(tmp_path)
    spans.write_text("\n".join(sorted(seen.spans)), encoding="utf-8")
    rows = flat_runs(seen.runs)
    runs.write_text(json.dumps(rows), encoding="utf-8")
    for tool_name, path in (("openinference", spans), ("langsmith", runs)):
        (found,) = FORMATS[tool_name](path).trajectories
        assert story(found) == without_advice(seen.live), tool_name
    assert [step.turn for step in seen.live.steps] == [0, 0, 1]


def test_each_step_names_the_span_that_made_its_list(tmp_path: Path) -> None:
    seen = seen_of(agent())
    spans, runs = seen.write(tmp_path)
    queries = {span["context"]["span_id"].removeprefix("0x"): span["attributes"]["input.value"]
               for span in map(json.loads, seen.spans) if span["name"] == "VectorStoreRetriever"}
    by_run = {row["id"]: row["inputs"]["query"] for row in flat_runs(seen.runs) if row["run_type"] == "retriever"}
    for tool_name, path, known in (("openinference", spans, queries), ("langsmith", runs, by_run)):
        (found,) = FORMATS[tool_name](path).trajectories
        named = found.meta["source"]["spans"]
        assert {str(step.index): step.outermost.query for step in found.steps} == {
            step: known[span] for step, span in named.items()}
        assert len(set(named.values())) == 3
