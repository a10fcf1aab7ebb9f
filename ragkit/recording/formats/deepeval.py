"""Files that deepeval writes: test runs (JSON, with traces) and data sets of goldens (JSON, JSON Lines, CSV)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragkit.errors import DataError, shown
from ragkit.recording.formats.deepeval_trace import traced
from ragkit.recording.formats.flat import answered, dataset_of, number, passages_of, row_notes
from ragkit.recording.formats.imported import Imported, numbered
from ragkit.records.files import read_json
from ragkit.records.questions import text_id
from ragkit.records.readers.rows import Row, is_missing
from ragkit.records.readers.tables import read_table
from ragkit.records.readers.written import written
from ragkit.records.trajectory import Passage, Retrieval, Step, Trajectory

_EXPECTED = "expected a test run of deepeval ({testCases: […]}), or goldens with input or scenario"
_SOURCED = re.compile(r"deepeval_source=(?P<source>.*?),deepeval_context=(?P<text>.*)", re.DOTALL)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DELIMITER = "|"


def read_deepeval(path: Path) -> Imported:
    """Test cases and goldens as trajectories. `retrieval_context` is what the answer was written from.

    Where a test case has a trace, its retriever spans are the steps; else the retrieval context is one search. A
    conversation has a step for each answer with a retrieval context. `expected_output` is the reference, `context` the
    gold texts. Scores of deepeval are kept in `meta["source"]["scores"]`. Goldens without an output are questions.
    """
    rows, joined = _rows(path)
    trajectories: list[Trajectory] = []
    gold: list[Row] = []
    for where, row in rows:
        source = {"format": "deepeval", "trace_id": None, "metadata": _metadata(row), "scores": _scores(row)}
        talk = "turns" in row or "scenario" in row
        one = _talk(row, where, source) if talk else _case(row, where, source)
        gold.append((where, {"id": one.question_id, "question": one.question, "gold_texts": _texts(row.get("context")),
                             "reference": row.get("expected_outcome" if talk else "expected_output")}))
        if one.steps or one.answer is not None or one.error is not None:
            trajectories.append(one)
    dataset, notes = dataset_of(gold, path)
    if not trajectories and dataset is None:
        raise DataError(f"{path}: no row holds an output, a retrieval context or an expected output; {_EXPECTED}")
    kept = numbered(trajectories)
    if joined:
        notes.append("deepeval joins contexts with | in CSV and JSON Lines, so a text that holds | falls in pieces; "
                     "its JSON keeps them apart")
    return Imported(kept, dataset, (*row_notes(kept, len(rows)), *notes))


def _rows(path: Path) -> tuple[list[Row], bool]:
    """The rows with names in snake case, and whether lists in them were joined to one text."""
    if path.suffix.lower() != ".json":
        rows: list[Row] = [(where, _snake(row)) for where, row in read_table(path)]
        joined = any(_DELIMITER in str(row.get(name) or "") for _, row in rows
                     for name in ("context", "retrieval_context") if isinstance(row.get(name), str))
        return rows, joined
    value = read_json(path)
    if isinstance(value, dict) and "testCases" not in value:
        value = next((inner for inner in value.values() if isinstance(inner, dict) and "testCases" in inner), value)
    if isinstance(value, dict):
        value = [*(value.get("testCases") or []), *(value.get("conversationalTestCases") or [])] or value
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        keys = f"an object with the keys {', '.join(list(value)[:6])}" if isinstance(value, dict) else shown(value)
        raise DataError(f"{path}: {_EXPECTED}, got {keys}")
    return [(f"{path}: [{place}]", _snake(row)) for place, row in enumerate(value)], False


def _snake(row: Mapping[str, Any]) -> dict[str, Any]:
    return {_CAMEL.sub("_", str(name)).lower(): value for name, value in row.items()}


def _case(row: Mapping[str, Any], where: str, source: dict[str, Any]) -> Trajectory:
    asked, answer = row.get("input"), row.get("actual_output")
    if not isinstance(asked, str) or not asked.strip():
        raise DataError(f"{where}: expected an input (the question), got {shown(asked)}")
    contexts = _contexts(row.get("retrieval_context"), where)
    flat = answered(text_id(asked), asked, contexts, None if is_missing(answer) else str(answer), source)
    if not isinstance(row.get("trace"), Mapping):
        return flat
    seen = traced(row["trace"], asked, where)
    if seen is None:
        return flat
    known = {key: value for key, value in seen.meta["source"].items() if key != "span_id"}  # the root is made up here
    told = {**known, **source, "trace_id": row["trace"].get("uuid")}
    return replace(seen, question_id=flat.question_id, question=asked, steps=seen.steps or flat.steps,
                   context=flat.context or seen.context, answer=flat.answer if flat.answer is not None else seen.answer,
                   meta={**seen.meta, "source": told})


def _talk(row: Mapping[str, Any], where: str, source: dict[str, Any]) -> Trajectory:
    """A conversation: each answer with a retrieval context is a step, asked with what the person had just said."""
    turns = row.get("turns")
    if isinstance(turns, str) and (spelled := written(turns)) is not None:
        turns = spelled
    if not is_missing(turns) and not (isinstance(turns, list) and all(isinstance(turn, Mapping) for turn in turns)):
        raise DataError(f"{where}: turns: expected a list of {{role, content}}, got {shown(turns)}")
    steps: list[Step] = []
    asked: list[str] = []
    answer, context = None, None
    for place, turn in enumerate(map(_snake, turns or ())):
        said = str(turn.get("content") or "")
        if turn.get("role") == "user":
            asked.append(said)
            continue
        passages = _contexts(turn.get("retrieval_context"), f"{where}: turns[{place}]")
        answer, context = said, None
        if passages is not None:
            found = Retrieval("retrieve", asked[-1] if asked else "", passages, turn=len(steps))
            steps.append(Step(len(steps), (found,), turn=len(steps)))
            context = Retrieval("context", found.query, passages, source="manual")
    question = next((text for text in (*asked, row.get("scenario")) if isinstance(text, str) and text.strip()), None)
    if question is None:
        raise DataError(f"{where}: expected a turn of the user or a scenario, got neither")
    if asked[1:]:
        source["metadata"] = {**source["metadata"], "later_messages": asked[1:]}
    return Trajectory(text_id(question), question, tuple(steps), context, answer, meta={"source": source})


def _contexts(value: Any, where: str) -> tuple[Passage, ...] | None:
    texts = _texts(value)
    return None if texts is None else passages_of([_sourced(text) for text in texts], None,
                                                  f"{where}: retrieval_context")


def _texts(value: Any) -> list[Any] | None:
    """A list, or the texts that deepeval joins to one cell of CSV and JSON Lines."""
    if is_missing(value):
        return None
    return value.split(_DELIMITER) if isinstance(value, str) else list(value)


def _sourced(context: Any) -> Any:
    """A context with its source, as deepeval writes it down, as an object with both."""
    if isinstance(context, Mapping) and "context" in context:
        return {"text": context["context"], "source": context.get("source")}
    match = _SOURCED.fullmatch(context) if isinstance(context, str) else None
    return context if match is None else {"text": match["text"], "source": match["source"]}


def _metadata(row: Mapping[str, Any]) -> dict[str, Any]:
    metadata = row.get("additional_metadata", row.get("metadata"))
    metadata = written(metadata) if isinstance(metadata, str) else metadata
    name = {} if is_missing(row.get("name")) else {"name": row["name"]}
    return {**name, **metadata} if isinstance(metadata, Mapping) else name


def _scores(row: Mapping[str, Any]) -> dict[str, float | None]:
    metrics = row.get("metrics_data")
    rows = metrics if isinstance(metrics, list) else []
    return {str(one["name"]): number(one.get("score")) for one in rows if isinstance(one, Mapping) and "name" in one}
