"""Files of deepeval, as its release 4.3.1 writes them: goldens in three forms, conversations, test runs with traces."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from ragkit.errors import DataError
from ragkit.evaluation.evaluate import score
from ragkit.recording.formats import FORMATS, Imported
from ragkit.records.questions import text_id
from tests.support.data import data_folder

ROME, OSLO = "Rome lies on the Tiber.", "Oslo, \"the capital\", lies on a fjord."
GOLDENS: list[dict[str, Any]] = [
    {"input": "Who?", "actual_output": "Ann", "expected_output": "Ann B", "context": [ROME, OSLO], "name": "g1",
     "retrieval_context": [OSLO, f"deepeval_source=s.pdf,deepeval_context={ROME}"], "comments": None,
     "source_file": "f.txt", "token_cost": None, "additional_metadata": {"k": 1}, "expectations": None},
    {"input": "When?", "actual_output": None, "expected_output": "x", "retrieval_context": None, "context": None,
     "name": None, "comments": None, "source_file": None, "token_cost": None, "additional_metadata": None,
     "expectations": None},
]
TURNS = [{"role": "user", "content": "Hi?", "user_id": None, "retrieval_context": None},
         {"role": "assistant", "content": "Yes", "user_id": None, "retrieval_context": [ROME]},
         {"role": "user", "content": "And Oslo?", "user_id": None, "retrieval_context": None},
         {"role": "assistant", "content": "A fjord", "user_id": None, "retrieval_context": [OSLO]}]
TALK = {"scenario": "Somebody asks.", "turns": TURNS, "expected_outcome": "told", "context": [ROME, OSLO], "name": None,
        "additional_metadata": None}


def save(kind: str, folder: Path, rows: list[dict[str, Any]]) -> Path:
    """As EvaluationDataset.save_as writes goldens: lists are joined with | in all but JSON, objects are JSON."""
    path = folder / f"goldens.{kind}"
    if kind == "json":
        path.write_text(json.dumps(rows, indent=4, ensure_ascii=False), encoding="utf-8")
        return path
    flat = [{name: "|".join(value) if name.endswith("context") and value else value for name, value in row.items()}
            for row in rows]
    if kind == "jsonl":
        path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in flat) + "\n", encoding="utf-8")
        return path
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(flat[0])
        writer.writerows([json.dumps(value) if isinstance(value, list | dict) else value for value in row.values()]
                         for row in flat)
    return path


def read(path: Path) -> Imported:
    return FORMATS["deepeval"](path)


@pytest.mark.parametrize("kind", ["json", "jsonl", "csv"])
def test_goldens(tmp_path: Path, kind: str) -> None:
    found = read(save(kind, tmp_path, GOLDENS))
    (one,) = found.trajectories
    assert (one.question, one.answer) == ("Who?", "Ann")
    assert [(p.text, p.doc_id) for p in one.steps[0].outermost.passages] == [(OSLO, None), (ROME, "s.pdf")]
    assert one.context is not None and one.context.passages == one.steps[0].outermost.passages
    assert one.meta["source"]["metadata"] == {"name": "g1", "k": 1}
    assert found.dataset is not None
    first, second = found.dataset.questions
    assert [gold.text for gold in first.gold_texts] == [ROME, OSLO] and first.answers == ("Ann B",)
    assert second.text == "When?" and second.answers == ("x",) and not second.gold_texts
    assert "1 of 2 rows are questions alone: no answer, no contexts" in found.notes
    assert any(note.startswith("deepeval joins contexts with |") for note in found.notes) == (kind != "json")
    metrics = score(found.trajectories, found.dataset, metrics=["recall"]).summary["metrics"]
    assert metrics["recall"]["mean"] == 1.0


@pytest.mark.parametrize("kind", ["json", "jsonl", "csv"])
def test_a_conversation_has_a_step_for_each_answer(tmp_path: Path, kind: str) -> None:
    found = read(save(kind, tmp_path, [TALK]))
    (one,) = found.trajectories
    assert (one.question, one.answer) == ("Hi?", "A fjord")
    assert [(step.turn, step.outermost.query, step.outermost.passages[0].text) for step in one.steps] == [
        (0, "Hi?", ROME), (1, "And Oslo?", OSLO)]
    assert one.context is not None and [passage.text for passage in one.context.passages] == [OSLO]
    assert one.meta["source"]["metadata"] == {"later_messages": ["And Oslo?"]}
    assert found.dataset is not None and found.dataset.questions[0].answers == ("told",)


def test_a_scenario_without_turns_is_a_question(tmp_path: Path) -> None:
    found = read(save("json", tmp_path, [{**TALK, "turns": None}]))
    assert found.trajectories == () and found.dataset is not None
    assert found.dataset.questions[0].text == "Somebody asks."


def run_file(folder: Path, case: dict[str, Any]) -> Path:
    path = folder / "run.json"
    path.write_text(json.dumps({"testCases": [case], "conversationalTestCases": []}), encoding="utf-8")
    return path


def span(kind: str, number: int, **more: Any) -> dict[str, Any]:
    return {"uuid": f"s{number}", "name": f"{kind}{number}", "status": "SUCCESS", "type": kind, "parentUuid": "s0",
            "startTime": f"2026-05-12T03:01:0{number}.000Z", "endTime": f"2026-05-12T03:01:0{number}.500Z", **more}


def test_retriever_spans_are_the_steps_in_the_order_of_their_start(tmp_path: Path) -> None:
    trace = {
        "uuid": "t", "startTime": "2026-05-12T03:01:00.000Z", "endTime": "2026-05-12T03:01:09.000Z", "input": "?",
        "output": None, "status": "ERRORED", "agentSpans": [{**span("agent", 0), "parentUuid": None}],
        "retrieverSpans": [
            span("retriever", 3, input="second", status="ERRORED", error="ValueError: gone"),
            span("retriever", 1, input="first", output=[{"score": 0.5, "text": ROME, "id": "r"}], topK=1)],
        "llmSpans": [span("llm", 5, input=[{"role": "user", "content": f"Use: {ROME}"}], output=None, status="ERRORED",
                          error="RateLimitError: slow down")],
    }
    found = read(run_file(tmp_path, {"name": "c", "input": "Where?", "metricsData": [{"name": "Faith", "score": None}],
                                     "trace": trace}))
    (one,) = found.trajectories
    assert [(step.outermost.query, step.outermost.ids, step.outermost.error) for step in one.steps] == [
        ("first", ("r",), None), ("second", (), "ValueError: gone")]
    assert one.steps[0].outermost.passages[0].score == 0.5
    assert one.question == "Where?" and one.answer is None and one.error == "llm5: RateLimitError: slow down"
    assert one.meta["source"]["trace_id"] == "t" and one.meta["source"]["scores"] == {"Faith": None}
    assert one.ms == pytest.approx(9000)


def test_a_case_without_a_trace_is_one_search(tmp_path: Path) -> None:
    case = {"name": "c", "input": "Where?", "actualOutput": "There", "expectedOutput": "There, too", "context": [ROME],
            "retrievalContext": [OSLO, {"source": "s", "context": ROME}]}
    found = read(run_file(tmp_path, case))
    (one,) = found.trajectories
    assert one.steps[0].outermost.ids == (text_id(OSLO), text_id(ROME)) and one.answer == "There"
    assert found.dataset is not None and found.dataset.questions[0].answers == ("There, too",)


@pytest.mark.parametrize(("text", "told"), [
    ('{"testCases": []}', "got an object with the keys testCases"),
    ('[{"input": ""}]', "[0]: expected an input (the question)"),
    ('[{"input": "a"}]', "no row holds an output"),
    ('[{"turns": "x"}]', "expected a list of {role, content}"),
    ('[{"turns": []}]', "expected a turn of the user or a scenario"),
    ('[{"input": "a", "retrieval_context": [1]}]', "[0]: retrieval_context: passage: expected"),
])
def test_what_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read(tmp_path / "x.json")
    assert told in str(caught.value) and "x.json" in str(caught.value) and "\n" not in str(caught.value)


def test_the_real_test_run() -> None:
    found = read(data_folder("tool_formats/deepeval") / "test_run_sample.json")
    (one,) = found.trajectories
    assert [(step.outermost.name, [p.score for p in step.outermost.passages]) for step in one.steps] == [
        ("knowledge_base_lookup", [0.93, 0.87, 0.71])]
    assert one.answer == "{...}" and one.error is None and found.dataset is None
    assert one.meta["warnings"] == [
        "synthesize_answer: openai.RateLimitError: Rate limit exceeded for gpt-4o (tier 1)."]
    assert one.meta["source"]["scores"] == {"Answer Relevancy": 0.92, "Faithfulness": 0.45}
