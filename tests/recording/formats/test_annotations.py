"""Scores of imported traces go back to the spans and runs they belong to."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

import ragkit
from ragkit.recording.formats.annotations import annotation_rows, feedback_rows
from ragkit.recording.formats.langsmith import read_langsmith
from ragkit.recording.formats.matching import match
from ragkit.recording.formats.openinference import read_openinference
from ragkit.records.readers import load_dataset
from ragkit.records.trajectory import Trajectory
from tests.support.data import data_folder


def test_each_score_of_a_real_run_meets_its_span(tmp_path: Path) -> None:
    folder, gold = data_folder("otel_traces"), load_dataset(data_folder("hotpotqa_react_traces"))
    spans = {row["context"]["span_id"].removeprefix("0x"): row for row in map(json.loads, (
        folder / "openinference_spans.jsonl").read_text(encoding="utf-8").splitlines())}
    imported = match(read_openinference(folder / "openinference_spans.jsonl").trajectories, gold).trajectories
    result = ragkit.score(imported, gold, metrics=["recall"], out=tmp_path / "run")
    rows = list(annotation_rows(imported, result.scores.to_dict("records")))
    assert len(rows) == 48 + 20
    by_query = {}
    for row in rows:
        span, step = spans[row["span_id"]], row["metadata"]["step"]
        assert row["annotator_kind"] == "CODE" and row["name"] == "recall" and 0 <= row["result"]["score"] <= 1
        assert span["context"]["trace_id"] == "0x" + row["metadata"]["trace_id"]
        if step == "final":
            assert span["parent_id"] is None
        else:
            by_query[row["metadata"]["question_id"], step] = span["attributes"]["input.value"]
    assert by_query == {(one.question_id, str(step.index)): step.outermost.query for one in imported
                        for step in one.steps}
    json.dumps(rows, allow_nan=False)


def test_feedback_is_what_langsmiths_client_takes() -> None:
    langsmith = pytest.importorskip("langsmith")
    (found, *_) = read_langsmith(data_folder("otel_traces") / "langchain_runs.jsonl").trajectories
    scores = [{"variant": "base", "question_id": found.question_id, "repeat": 0, "step": step, "metric": "recall",
               "value": 0.5, "status": "scored", "reason": float("nan"), "labels": "judged", "judge": float("nan")}
              for step in ("1", "final", "7")]
    first, last = feedback_rows([found], scores)  # there is no step 7
    assert (first["run_id"], last["run_id"]) == (found.meta["source"]["spans"]["1"], found.meta["source"]["span_id"])
    assert first["trace_id"] == last["run_id"] and first["key"] == "recall (judged)" and first["comment"] is None
    assert set(first) <= set(inspect.signature(langsmith.Client.create_feedback).parameters)


def test_what_has_no_number_says_why_and_other_trajectories_give_no_row() -> None:
    source = {"format": "openinference", "trace_id": "t", "span_id": "root", "spans": {"0": "s0"}}
    ours, live = Trajectory("q", "?", meta={"source": source}), Trajectory("r", "?")
    failed = {"question_id": "q", "repeat": 0, "step": "final", "metric": "faithfulness", "value": float("nan"),
              "status": "failed", "reason": "time-out", "judge": "openai:gpt"}
    (row,) = annotation_rows([ours, live], [failed, failed | {"question_id": "r"}, failed | {"repeat": 1}])
    assert row["result"] == {"label": "failed", "explanation": "time-out"}
    assert row["annotator_kind"] == "LLM" and row["identifier"] == "ragkit:openai:gpt"
    assert list(feedback_rows([ours], [failed])) == []
