"""OpenInference spans -> trajectories: span JSON lines, OTLP JSON, and Phoenix' DataFrame of spans as parquet.

Ids are taken from where the instrumentor puts them: `document.id`, else the document in `output.value`, else the
document's metadata. Scores only from `document.score`; what kind of score that is, no span says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ragkit.errors import DataError, shown
from ragkit.recording.answers import content_text
from ragkit.recording.formats.attributes import at_path, hex_id, nested, otlp_spans
from ragkit.recording.formats.imported import Imported
from ragkit.recording.formats.reading import objects
from ragkit.recording.formats.spans import Span, SpanKind, imported
from ragkit.recording.formats.values import (
    Document,
    Message,
    counts,
    decode,
    first_line,
    from_json,
    messages_in,
    question_in,
    seconds,
)

_EXPECTED = "a span (context and attributes), a request with resourceSpans, or a row with context.span_id"
_KINDS: dict[str, SpanKind] = {
    "RETRIEVER": "retriever", "RERANKER": "reranker", "LLM": "llm", "TOOL": "tool", "CHAIN": "chain", "AGENT": "chain",
    "EMBEDDING": "chain", "GUARDRAIL": "evaluator", "EVALUATOR": "evaluator", "PROMPT": "chain",
}
_OWN_WORK = ("CHAIN", "AGENT", "TOOL", "PROMPT")  # kinds whose input and output are the app's; an embedding's are not


def read_openinference(path: Path) -> Imported:
    """The trajectories of a file of OpenInference spans, in any order, of one or many traces.

    The file is parquet (`client.spans.get_spans_dataframe().to_parquet(...)`), or JSON: `ReadableSpan.to_json` line by
    line or printed one after the other, OTLP requests, a list of spans. Spans of other kinds (a web framework's) only
    say what stands above what. A file without any OpenInference span, and a line that is no span, are DataErrors.
    """
    rows = _parquet_rows(path) if path.suffix == ".parquet" else _json_rows(path)
    spans: list[Span] = []
    others: dict[tuple[str, str], str | None] = {}
    for where, row in rows:
        span = _span(row, where)
        if span is None:
            others[hex_id(row.get("trace_id")) or "", hex_id(row.get("span_id")) or ""] = hex_id(row.get("parent_id"))
        else:
            spans.append(span)
    if not spans:
        raise DataError(f"{path}: expected spans with openinference.span.kind among their attributes, got "
                        + (f"{len(others)} spans without" if others else "no span"))
    for span in spans:  # up to the nearest span of OpenInference
        passed = set()
        while span.parent is not None and (span.trace_id, span.parent) in others and span.parent not in passed:
            passed.add(span.parent)
            span.parent = others[span.trace_id, span.parent]
    return imported(spans, "openinference")


def _json_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for where, value in objects(path, _EXPECTED):
        if "resourceSpans" in value or "resource_spans" in value:
            for row in otlp_spans(value):
                yield where, row
        elif isinstance(value.get("context"), Mapping) and isinstance(value.get("attributes"), Mapping):
            status = value.get("status")
            status = status if isinstance(status, Mapping) else {}
            yield where, {"status_message": status.get("description"), "status_code": status.get("status_code"),
                          **value, **value["context"]}
        elif "context.span_id" in value:
            yield where, _flat_row(value)
        else:
            raise DataError(f"{where}: expected {_EXPECTED}, got {shown(list(value))}")


def _parquet_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; expected Phoenix' spans as parquet") from None
    except (pyarrow.ArrowException, OSError) as error:
        why = first_line(error).replace(f" '{path}'", "")
        raise DataError(f"{path}: cannot be read as parquet ({why})") from None
    missing = [name for name in ("context.trace_id", "context.span_id", "parent_id") if name not in table.column_names]
    if missing:
        raise DataError(f"{path}: expected the columns of Phoenix' spans, missing are {', '.join(missing)}; the "
                        f"columns are {shown(table.column_names, 200)}")
    number = 0
    for batch in table.to_batches(256):  # not all texts of the file as Python objects at once
        for row in batch.to_pylist():
            yield f"{path} row {number}", _flat_row(_present(row))
            number += 1


def _present(value: Any) -> Any:
    """The value without what a table fills in: a column of structs gives each row the keys of all."""
    if isinstance(value, dict):
        return {key: _present(inner) for key, inner in value.items() if inner is not None}
    return [_present(inner) for inner in value] if isinstance(value, list) else value


def _flat_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of Phoenix' DataFrame: context.* and attributes.* are columns."""
    attributes = {name.removeprefix("attributes."): value for name, value in row.items()
                  if name.startswith("attributes.")}
    return {**row, "trace_id": row.get("context.trace_id"), "span_id": row.get("context.span_id"),
            "attributes": attributes or row.get("attributes") or {}}


def _span(row: Mapping[str, Any], where: str) -> Span | None:
    """The span of a row; None where it is none of OpenInference."""
    span_id, attributes = hex_id(row.get("span_id")), row.get("attributes")
    if span_id is None or not isinstance(attributes, Mapping):
        raise DataError(f"{where}: expected a span with an id and attributes, got {shown(dict(row))}")
    told = nested(attributes)
    kind = _kind(row, told)
    if kind not in _KINDS:
        return None
    inputs, outputs = _value(told, "input"), _value(told, "output")
    metadata = from_json(told.get("metadata"))
    span = Span(
        span_id,
        hex_id(row.get("trace_id")) or "",
        hex_id(row.get("parent_id")),
        _KINDS[kind],
        where,
        str(row.get("name") or ""),
        seconds(row.get("start_time")),
        seconds(row.get("end_time")),
        _error(row),
        dict(metadata) if isinstance(metadata, Mapping) else {},
    )
    if kind in _OWN_WORK:
        span.inputs, span.outputs = inputs, outputs
        span.call_id = at_path(told, "tool_call", "id")
    elif kind == "LLM":
        _read_model(span, told, inputs, outputs)
    elif kind == "RETRIEVER":
        span.query = question_in(inputs) or ""
        span.documents = _documents(at_path(told, "retrieval", "documents"), outputs)
    elif kind == "RERANKER":
        reranker = told.get("reranker")
        query = at_path(reranker, "query")
        span.query = query if isinstance(query, str) else question_in(inputs) or ""
        span.given = _documents(at_path(reranker, "input_documents"), None)
        span.documents = _documents(at_path(reranker, "output_documents"), outputs)
    return span


def _kind(row: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    """The kind, mended where the LangChain instrumentor takes all that has "agent" in its name for an AGENT."""
    kind = str(at_path(told, "openinference", "span", "kind") or row.get("span_kind") or "").upper()
    if kind in ("AGENT", "CHAIN") and at_path(told, "retrieval", "documents"):
        return "RETRIEVER"
    return "TOOL" if kind == "AGENT" and at_path(told, "tool", "name") else kind


def _value(told: Mapping[str, Any], side: str) -> Any:
    value = at_path(told, side, "value")
    return from_json(value) if at_path(told, side, "mime_type") == "application/json" else decode(value)


def _documents(listed: Any, output: Any) -> list[Document]:
    """The documents of a list of attributes, with what `output.value` knows of the same places beside it."""
    given = [at_path(one, "document") or {} for one in listed] if isinstance(listed, list) else []
    shown_too = output.get("documents") if isinstance(output, Mapping) else output
    known = [one for one in shown_too if isinstance(one, Document)] if isinstance(shown_too, list) else []
    if len(known) < len(given) or any(
        one.get("content") is not None and one["content"] != other.page_content
        for one, other in zip(given, known, strict=False)
    ):
        known = []  # another list, or one that was cut off
    given += [{}] * (len(known) - len(given))  # an empty document leaves no attribute
    return [_document(one, known[place] if known else Document("")) for place, one in enumerate(given)]


def _document(told: Mapping[str, Any], known: Document) -> Document:
    metadata, content, given = from_json(told.get("metadata")), told.get("content"), told.get("id")
    return Document(
        content if isinstance(content, str) else known.page_content,
        metadata if isinstance(metadata, Mapping) else known.metadata,
        str(given) if isinstance(given, str | int) and given != "" else known.id,
        told.get("score"),
    )


def _read_model(span: Span, told: Mapping[str, Any], inputs: Any, outputs: Any) -> None:
    """The prompt, the reply, its tool calls and its tokens."""
    model = told.get("llm")
    span.outputs = outputs if outputs is not None else at_path(model, "output_messages")
    asked = messages_in(inputs) or _messages(at_path(model, "input_messages"))
    span.messages = [(one.type, content_text(one.content)) for one in asked]
    if not asked:
        prompts = at_path(model, "prompts") or (inputs.get("prompts") if isinstance(inputs, Mapping) else None)
        prompts = prompts if isinstance(prompts, list) else [inputs]
        span.messages = [("human", text) for one in prompts
                         for text in [at_path(one, "prompt", "text") if isinstance(one, Mapping) else one]
                         if isinstance(text, str)]
    said = _generations(outputs) or _messages(at_path(model, "output_messages"))
    if said:
        span.reply, span.calls = content_text(said[0].content), said[0].tool_calls
    elif isinstance(outputs, str):
        span.reply = outputs
    tokens = at_path(model, "token_count")
    usage = counts(tokens, "prompt", "completion") if isinstance(tokens, Mapping) else {}
    cost = at_path(model, "cost", "total")
    span.usage = {**usage, "cost": cost} if isinstance(cost, int | float) else usage


def _generations(outputs: Any) -> list[Message]:
    batches = outputs.get("generations") if isinstance(outputs, Mapping) else None
    flat = [one for batch in batches or () for one in (batch if isinstance(batch, list) else [batch])]
    made = [one.get("message") or one.get("text") for one in flat if isinstance(one, Mapping)]
    return [one if isinstance(one, Message) else Message("ai", one) for one in made if isinstance(one, Message | str)]


def _messages(listed: Any) -> list[Message]:
    """Chat messages out of attributes."""
    found = []
    for told in (at_path(one, "message") for one in listed) if isinstance(listed, list) else ():
        if not isinstance(told, Mapping):
            continue
        parts = [at_path(part, "message_content", "text") for part in told.get("contents") or ()]
        content = told.get("content") or "".join(part for part in parts if isinstance(part, str))
        calls = [at_path(call, "tool_call") for call in told.get("tool_calls") or ()]
        made = tuple((str(call.get("id") or ""), str(at_path(call, "function", "name") or ""))
                     for call in calls if isinstance(call, Mapping))
        role = str(told.get("role") or "user")
        found.append(Message("ai" if role == "assistant" else role, content, made))
    return found


def _error(row: Mapping[str, Any]) -> str | None:
    """The exception that a span recorded, else what its status says; None where it did not fail."""
    if str(row.get("status_code")).upper().removeprefix("STATUS_CODE_") not in ("ERROR", "2"):
        return None
    for event in row.get("events") or () if isinstance(row.get("events"), list) else ():
        told = nested(event["attributes"]) if isinstance(event, Mapping) and event.get("attributes") else event
        exception = at_path(told, "exception")
        if isinstance(exception, Mapping) and exception.get("type"):
            name = str(exception["type"]).removeprefix("builtins.")
            text = " ".join(str(exception.get("message") or "").split())
            return f"{name}: {text}" if text else name
    return first_line(row.get("status_message") or "") or "failed"
