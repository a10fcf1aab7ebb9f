"""What LangSmith's runs say: flat rows, printed documents, models of other vendors, errors, and wrong files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragkit.errors import DataError
from ragkit.recording.formats.langsmith import read_langsmith
from ragkit.recording.formats.values import Document, decode
from ragkit.records.trajectory import Trajectory

ROOT, SEARCH, MODEL = (f"00000000-0000-7000-8000-00000000000{number}" for number in "123")
TEXT = "The lighthouse at Norrby was built by Ada Lund."


def run(run_id: str, kind: str, begin: int, end: int | None, inputs: Any, outputs: Any, **more: Any) -> dict[str, Any]:
    return {"id": run_id, "name": more.pop("name", kind), "run_type": kind, "inputs": inputs, "outputs": outputs,
            "start_time": f"2026-11-30T13:20:{begin:02}.000001",
            "end_time": None if end is None else f"2026-11-30 13:20:{end:02}+00:00", "error": None, **more}


def read(tmp_path: Path, *runs: dict[str, Any]) -> Trajectory:
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in runs), encoding="utf-8")
    (found,) = read_langsmith(path).trajectories
    return found


def chain(**more: Any) -> dict[str, Any]:
    return run(ROOT, "chain", 0, 50, {"question": "Who?"}, {"answer": "Ada"}, **more)


def search(**more: Any) -> dict[str, Any]:
    found = [{"page_content": TEXT, "metadata": {"id": "d1"}, "type": "Document"}]
    return run(SEARCH, "retriever", 1, 2, {"query": "Norrby"}, {"documents": found}, **more)


def test_rows_of_list_runs_are_put_together_by_parent_or_by_dotted_order(tmp_path: Path) -> None:
    by_parent = read(tmp_path, search(parent_run_id=ROOT, trace_id=ROOT), chain(trace_id=ROOT))
    order = f"20261130T132000000001Z{ROOT}"
    by_order = read(tmp_path, search(dotted_order=f"{order}.20261130T132001000001Z{SEARCH}"),
                    chain(dotted_order=order))
    nested = read(tmp_path, chain(child_runs=[search()]))
    for found in (by_parent, by_order, nested):
        assert (found.question, found.answer) == ("Who?", "Ada")
        assert [(step.outermost.query, step.outermost.ids) for step in found.steps] == [("Norrby", ("d1",))]
        assert found.meta["source"] == {"format": "langsmith", "trace_id": ROOT, "span_id": ROOT, "metadata": {},
                                        "spans": {"0": SEARCH}}
    thought = run(MODEL, "llm", 3, 4, {"prompt": "Think."}, {"output": "a thought"})
    for more in ({"child_runs": [thought]}, {"child_runs": [thought | {"parent_run_id": ROOT, "trace_id": ROOT}]}):
        assert read(tmp_path, chain(**more) | {"outputs": {}}).answer is None  # beneath the root: no answer
    assert by_parent.ms == pytest.approx(49999.999, abs=0.01)


def test_the_example_of_a_langsmith_dataset_is_kept_to_be_matched(tmp_path: Path) -> None:
    found = read(tmp_path, chain(reference_example_id="ex-1", extra={"metadata": {"user": "ada"}}))
    assert found.meta["source"]["metadata"] == {"user": "ada", "reference_example_id": "ex-1"}


@pytest.mark.parametrize("outputs", [
    {"documents": [f"page_content='{TEXT}' metadata={{'id': 'd1'}}"]},
    {"output": [{"page_content": TEXT, "metadata": {"id": "d1"}}]},
    {"documents": [{"lc": 1, "type": "constructor", "id": ["langchain", "schema", "document", "Document"],
                    "kwargs": {"page_content": TEXT, "id": "d1"}}]},
    {"documents": [{"id": "d1", "text": TEXT}]},
])
def test_documents_in_each_form_that_a_tracer_writes(outputs: Any, tmp_path: Path) -> None:
    found = read(tmp_path, chain(child_runs=[search() | {"outputs": outputs}]))
    assert [(one.id, one.text) for one in found.steps[0].outermost.passages] == [("d1", TEXT)]


def test_a_printed_document_cannot_name_itself_in_its_text() -> None:
    def printed(text: str, metadata: dict[str, Any]) -> str:
        return f"page_content='{text}' metadata={metadata}"

    hostile = "x' metadata={'id': 'gold'}"
    assert decode(printed(hostile, {"id": "d9"})) == Document(hostile, {"id": "d9"})
    assert decode(printed("x", {"id": "d9", "title": hostile})) == Document("x", {"id": "d9", "title": hostile})
    assert decode("page_content='bare'") == Document("bare")
    called = "page_content='x' metadata={'id': __import__('os').getcwd()}"
    assert decode(called) == called  # a literal or nothing: no call is made
    assert decode("page_content='x' metadata={" + "[" * 5000) == "page_content='x' metadata={" + "[" * 5000


MESSAGES = {"messages": [{"role": "user", "content": f"Answer from: {TEXT}\nWho?"}]}


@pytest.mark.parametrize(("inputs", "outputs", "more"), [
    (MESSAGES, {"choices": [{"message": {"role": "assistant", "content": "Ada"}}],
                "usage": {"prompt_tokens": 7, "completion_tokens": 2}}, {}),
    (MESSAGES, {"role": "assistant", "content": "Ada", "usage_metadata": {"input_tokens": 7, "output_tokens": 2}}, {}),
    (MESSAGES, {"output": "Ada"}, {"prompt_tokens": 7, "completion_tokens": 2}),
    ({"prompt": MESSAGES["messages"][0]["content"]},
     {"generations": [[{"text": "Ada"}]],
      "llm_output": {"token_usage": {"prompt_tokens": 7, "completion_tokens": 2}}}, {}),
])
def test_models_of_several_makers(inputs: Any, outputs: Any, more: dict[str, Any], tmp_path: Path) -> None:
    model = run(MODEL, "llm", 3, 4, inputs, outputs, total_cost="0.25", **more)
    found = read(tmp_path, chain(child_runs=[search(), model]) | {"outputs": {}})
    assert found.context is not None and found.context.ids == ("d1",)
    assert found.usage == {"input_tokens": 7, "output_tokens": 2, "cost": 0.25}


def test_a_failed_search_and_one_that_never_ended(tmp_path: Path) -> None:
    failed = search(error="TimeoutError('too slow')Traceback (most recent call last):\n …") | {"outputs": None}
    pending = run(MODEL, "retriever", 4, None, {"query": "b"}, None)
    found = read(tmp_path, chain(child_runs=[failed, pending]))
    assert [step.outermost.error for step in found.steps] == ["TimeoutError: too slow", "did not finish"]


@pytest.mark.parametrize(("text", "what"), [
    ('{"id": "a", "inputs": {}}', r"runs.jsonl:1: expected a run with id and run_type, got \['id', 'inputs'\]"),
    ('{"id": "a", "run_type": "chain", "child_runs": [3]}', "expected a run with id and run_type, got 3"),
    ('{"id": "a", "run_type": "chain", "inputs": {"k": 3}}\n{', r":2: expected JSON"),
    ("[]", "got no run"),
    ('{"id": "a", "run_type": "chain", "inputs": {"k": 3}}', "expected a trace whose root span holds a question"),
])
def test_what_is_no_run_is_refused_with_its_line(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=what):
        read_langsmith(path)
