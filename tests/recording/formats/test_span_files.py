"""The same spans in every form that they are written down in: lines, printed, an array, OTLP, Phoenix' parquet."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ragkit.errors import DataError
from ragkit.recording.formats.attributes import nested
from ragkit.recording.formats.imported import holdings
from ragkit.recording.formats.langsmith import read_langsmith
from ragkit.recording.formats.matching import match
from ragkit.recording.formats.openinference import read_openinference
from ragkit.records.readers import load_dataset
from ragkit.records.trajectory import Passage, Retrieval, Step, Trajectory
from tests.support.data import data_folder
from tests.support.exports import story


@pytest.fixture(scope="module")
def spans() -> list[dict[str, Any]]:
    """The first 40 spans of the sample; some of their traces are whole, others lack their root."""
    lines = (data_folder("otel_traces") / "openinference_spans.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines[:40]]


@pytest.fixture(scope="module")
def stories(spans: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    path = tmp_path_factory.mktemp("lines") / "spans.jsonl"
    path.write_text("\n".join(map(json.dumps, spans)), encoding="utf-8")
    return told(path)


def told(path: Path) -> list[dict[str, Any]]:
    found = read_openinference(path).trajectories
    return [{**story(one), "trace": one.meta["source"]["trace_id"], "spans": one.meta["source"]["spans"],
             "metadata": one.meta["source"]["metadata"]} for one in found]


def test_the_sample_is_read_whole_and_both_tools_tell_the_same() -> None:
    folder = data_folder("otel_traces")
    spans = read_openinference(folder / "openinference_spans.jsonl")
    runs = read_langsmith(folder / "langchain_runs.jsonl")
    index = {row["trace_id"].removeprefix("0x"): row for row in map(
        json.loads, (folder / "index.jsonl").read_text(encoding="utf-8").splitlines())}
    held = holdings(spans.trajectories)
    assert (held.trajectories, held.searches, held.failed_searches) == (20, 48, 0)
    assert (held.without_id, held.without_score, held.passages) == (0, 192, 192)
    assert [story(one) for one in spans.trajectories] == [story(one) for one in runs.trajectories]
    for found in spans.trajectories:
        known = index[found.meta["source"]["trace_id"]]
        assert [step.outermost.query for step in found.steps] == known["queries"]
        assert [step.turn for step in found.steps] == list(range(len(known["queries"])))
        assert found.answer == known["logged_answer"]
    assert spans.notes == runs.notes == (
        "no retrieval scores in this file: the order of each list is all that is known of its ranking",)


def test_all_gold_is_retrieved_over_all_steps_in_15_of_20() -> None:
    gold = load_dataset(data_folder("hotpotqa_react_traces"))
    found = read_openinference(data_folder("otel_traces") / "openinference_spans.jsonl").trajectories
    joined = match(found, gold)
    assert joined.counts == {"text": 20}

    def complete(one: Trajectory) -> bool:
        return set(gold.qrels[one.question_id]) <= {name for step in one.steps for name in step.outermost.ids}

    assert sum(map(complete, joined.trajectories)) == 15


@pytest.mark.parametrize("form", ["printed", "array", "wrapped", "gzip"])
def test_json_in_any_form(form: str, spans: list[dict[str, Any]], stories: Any, tmp_path: Path) -> None:
    text = {"printed": "\n".join(json.dumps(row, indent=4) for row in spans), "array": json.dumps(spans, indent=1),
            "wrapped": json.dumps({"data": spans}), "gzip": "\n".join(map(json.dumps, spans))}[form]
    path = tmp_path / "spans.json"
    path.write_bytes(gzip.compress(text.encode()) if form == "gzip" else text.encode())
    assert told(path) == stories


def test_a_broken_value_among_printed_ones_is_refused_with_its_line(tmp_path: Path, spans: Any) -> None:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(spans[0], indent=1) + '\n{"name": \n nothing}', encoding="utf-8")
    line = json.dumps(spans[0], indent=1).count("\n") + 2
    with pytest.raises(DataError, match=rf"spans.json:{line}: expected JSON"):
        read_openinference(path)


@pytest.mark.parametrize("form", ["hex", "base64", "snake"])
def test_otlp(form: str, spans: list[dict[str, Any]], stories: Any, tmp_path: Path) -> None:
    path = tmp_path / "otlp.json"
    request = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [otlp(row, form) for row in spans]}]}]}
    text = json.dumps(request)
    if form == "snake":
        for camel, snake in (("resourceSpans", "resource_spans"), ("scopeSpans", "scope_spans"),
                             ("startTimeUnixNano", "start_time_unix_nano"), ("endTimeUnixNano", "end_time_unix_nano"),
                             ("traceId", "trace_id"), ("parentSpanId", "parent_span_id"), ("spanId", "span_id"),
                             ("stringValue", "string_value"), ("intValue", "int_value")):
            text = text.replace(f'"{camel}"', f'"{snake}"')
    path.write_text(text + "\n" + text, encoding="utf-8")  # a request a line; sent twice
    assert told(path) == stories


def test_otlp_as_the_real_exporter_encodes_it(tmp_path: Path) -> None:
    encoder = pytest.importorskip("opentelemetry.exporter.otlp.proto.common.trace_encoder")
    from google.protobuf.json_format import MessageToJson
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("app")
    with tracer.start_as_current_span("app", attributes={
            "openinference.span.kind": "CHAIN", "input.value": "Who?", "output.value": "Ada"}), \
            pytest.raises(ValueError), \
            tracer.start_as_current_span("search", attributes={
                "openinference.span.kind": "RETRIEVER", "input.value": "who", "retrieval.documents.0.document.id": "d1",
                "retrieval.documents.0.document.score": 0.5}):
        raise ValueError("after the search")
    path, lines = tmp_path / "otlp.json", tmp_path / "lines.jsonl"
    path.write_text(MessageToJson(encoder.encode_spans(exporter.get_finished_spans())), encoding="utf-8")
    lines.write_text("\n".join(one.to_json(indent=None) for one in exporter.get_finished_spans()), encoding="utf-8")
    assert told(path) == told(lines)
    (found,) = told(path)
    assert found["question"] == "Who?" and found["steps"][0][2][0][4] == "ValueError: after the search"


def otlp(row: dict[str, Any], form: str) -> dict[str, Any]:
    """A span as OTLP writes it: ids in hex (its own rule) or base64 (that of protobuf), numbers as strings."""
    from datetime import datetime

    def name(value: str | None) -> str:
        plain = (value or "").removeprefix("0x")
        return base64.b64encode(bytes.fromhex(plain)).decode() if form == "base64" else plain

    def nanos(text: str) -> str:
        whole = datetime.fromisoformat(text)
        return str(int(whole.timestamp()) * 10**9 + whole.microsecond * 1000)

    return {"traceId": name(row["context"]["trace_id"]), "spanId": name(row["context"]["span_id"]),
            "parentSpanId": name(row["parent_id"]), "name": row["name"], "kind": 1,
            "startTimeUnixNano": nanos(row["start_time"]), "endTimeUnixNano": nanos(row["end_time"]),
            "attributes": [{"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else
                            {"stringValue": value}} for key, value in row["attributes"].items()],
            "status": {"code": 1}}


@pytest.mark.parametrize("form", ["nested", "flat"])
def test_the_dataframe_of_phoenix(form: str, spans: list[dict[str, Any]], stories: Any, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    path = tmp_path / "spans.parquet"
    frame = pd.DataFrame([phoenix(row, form) for row in spans]).set_index("context.span_id", drop=form == "nested")
    for column in ("start_time", "end_time"):
        frame[column] = pd.to_datetime(frame[column], format="ISO8601", utc=True)
    frame.to_parquet(path)
    assert told(path) == stories


def phoenix(row: dict[str, Any], form: str) -> dict[str, Any]:
    """A row of `get_spans_dataframe`: lists and the metadata nested, in columns of their own."""
    told = dict(row["attributes"])
    metadata = json.loads(told.pop("metadata", "{}"))
    documents = nested(told).get("retrieval", {}).get("documents")
    columns: dict[str, Any] = {"metadata": metadata}
    if form == "nested" and documents:
        columns["retrieval.documents"] = [
            {f"document.{key}": json.loads(value) if key == "metadata" else value
             for key, value in one["document"].items()} for one in documents]
        told = {key: value for key, value in told.items() if not key.startswith("retrieval.documents")}
    columns.update(told)
    return {"name": row["name"], "span_kind": told["openinference.span.kind"],
            "parent_id": (row["parent_id"] or "").removeprefix("0x") or None, "start_time": row["start_time"],
            "end_time": row["end_time"], "status_code": "OK", "status_message": "", "events": [],
            "context.span_id": row["context"]["span_id"].removeprefix("0x"),
            "context.trace_id": row["context"]["trace_id"].removeprefix("0x"),
            **{f"attributes.{key}": value for key, value in columns.items()}}


def test_a_table_that_is_no_table_of_spans(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    path = tmp_path / "spans.parquet"
    pd.DataFrame({"a": [1]}).to_parquet(path)
    with pytest.raises(DataError, match=r"missing are context.trace_id, context.span_id, parent_id; the columns are"):
        read_openinference(path)
    path.write_bytes(b"no parquet")
    with pytest.raises(DataError, match="cannot be read as parquet"):
        read_openinference(path)
    with pytest.raises(DataError, match="no such file"):
        read_openinference(tmp_path / "none.parquet")


def test_a_time_that_is_none_is_said_with_its_line(spans: list[dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    path.write_text("\n".join(map(json.dumps, [*spans[:3], {**spans[3], "start_time": "yesterday"}, *spans[4:]])),
                    encoding="utf-8")
    (note,) = (note for note in read_openinference(path).notes if "time" in note)
    assert note.startswith(f"spans without a start that can be read as a time: 1, the first in {path}:4;")


def test_a_passage_has_a_score_where_any_list_of_its_step_gives_one() -> None:
    """A re-ranker without scores of its own, above a store with some: the file does hold retrieval scores."""
    lists = (Retrieval("rerank", "q", (Passage("b"), Passage("c"))),
             Retrieval("retrieve", "q", (Passage("a", score=0.9), Passage("b", score=0.5))))
    held = holdings([Trajectory("q", "?", (Step(0, lists),))])
    assert (held.passages, held.without_score) == (2, 1)
