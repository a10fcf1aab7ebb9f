"""LangSmith's runs -> trajectories: nested ones (child_runs) and the flat rows of `list_runs`, as JSON lines or array.

Ids are taken from the documents or their metadata; documents that a tracer wrote as Python prints them are read, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ragkit.errors import DataError, shown
from ragkit.recording.answers import content_text
from ragkit.recording.formats.imported import Imported
from ragkit.recording.formats.reading import objects
from ragkit.recording.formats.spans import Span, SpanKind, imported
from ragkit.recording.formats.values import Message, counts, decode, first_line, messages_in, question_in, seconds

_EXPECTED = "a run with id and run_type"
_KINDS: dict[str, SpanKind] = {"llm": "llm", "tool": "tool", "retriever": "retriever"}


def read_langsmith(path: Path) -> Imported:
    """The trajectories of a file of LangSmith runs, in any order, of one or many traces.

    A run is told by `run_type` and stands beneath `parent_run_id`, or in `child_runs` of the one above; where neither
    is given, `dotted_order` says it. A line that is no run is a DataError. LangSmith keeps no retrieval score.
    """
    spans = [_span(row, where) for top, run in objects(path, _EXPECTED) for where, row in _flat(run, top)]
    if not spans:
        raise DataError(f"{path}: expected {_EXPECTED}, got no run")
    return imported(spans, "langsmith")


def _flat(run: Mapping[str, Any], where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The run and all those in it."""
    waiting: list[tuple[Any, Mapping[str, Any] | None]] = [(run, None)]
    while waiting:
        one, above = waiting.pop()
        if not isinstance(one, Mapping) or not one.get("id") or "run_type" not in one:
            got = shown(list(one) if isinstance(one, Mapping) else one)
            raise DataError(f"{where}: expected {_EXPECTED}, got {got}")
        if above is not None:
            one = {**one, "parent_run_id": one.get("parent_run_id") or above["id"],
                   "trace_id": one.get("trace_id") or above.get("trace_id") or above["id"]}
        yield where, one
        children = one.get("child_runs")
        waiting.extend((child, one) for child in reversed(children if isinstance(children, list) else []))


def _span(run: Mapping[str, Any], where: str) -> Span:
    path = [part[-36:] for part in str(run.get("dotted_order") or "").split(".") if part]  # <time>Z<run id>.…
    parent = run.get("parent_run_id") or (path[-2] if len(path) > 1 else None)
    trace_id = run.get("trace_id") or (path[0] if path else None) or (run["id"] if parent is None else "")
    extra = run.get("extra")
    metadata = extra.get("metadata") if isinstance(extra, Mapping) else None
    metadata = dict(metadata) if isinstance(metadata, Mapping) else {}
    if run.get("reference_example_id"):
        metadata.setdefault("reference_example_id", str(run["reference_example_id"]))
    ended = run.get("end_time")
    span = Span(
        str(run["id"]),
        str(trace_id),
        None if parent is None else str(parent),
        _KINDS.get(str(run["run_type"]).lower(), "chain"),
        where,
        str(run.get("name") or ""),
        seconds(run.get("start_time")),
        seconds(ended),
        first_line(run["error"]) if run.get("error") else None,
        metadata,
    )
    if str(run["run_type"]).lower() == "embedding":
        return span
    inputs, outputs = decode(run.get("inputs")), decode(run.get("outputs"))
    if span.kind == "llm":
        _read_model(span, run, inputs, outputs)
        return span
    span.inputs, span.outputs = _unwrapped(inputs, "input"), _unwrapped(outputs, "output")
    if span.kind == "retriever":
        span.query = question_in(inputs) or ""
        found = outputs.get("documents") if isinstance(outputs, Mapping) else None
        span.documents = span.outputs if found is None else found
        if span.outputs is None or span.outputs == {}:
            span.documents = ()
    return span


def _unwrapped(values: Any, key: str) -> Any:
    """What the app gave where it was no mapping, and LangSmith put it under one key."""
    return values[key] if isinstance(values, Mapping) and list(values) == [key] else values


def _read_model(span: Span, run: Mapping[str, Any], inputs: Any, outputs: Any) -> None:
    """The prompt, the reply, its tool calls and its tokens."""
    span.outputs = outputs
    span.messages = [(one.type, content_text(one.content)) for one in messages_in(inputs)]
    if not span.messages and isinstance(inputs, Mapping):
        prompts = inputs.get("prompts") or [inputs.get("prompt") or question_in(inputs)]
        span.messages = [("human", text) for text in prompts if isinstance(text, str)]
    said = _said(outputs)
    if said is not None:
        span.reply, span.calls = content_text(said.content), said.tool_calls
    told = outputs if isinstance(outputs, Mapping) else {}
    for usage, names in (
        (said.usage if said else None, ("input_tokens", "output_tokens")),
        (told.get("usage_metadata"), ("input_tokens", "output_tokens")),
        (told.get("usage"), ("prompt_tokens", "completion_tokens")),
        ((told.get("llm_output") or {}).get("token_usage"), ("prompt_tokens", "completion_tokens")),
        (run, ("prompt_tokens", "completion_tokens")),
    ):
        if not span.usage and isinstance(usage, Mapping):
            span.usage = counts(usage, *names)
    cost = run.get("total_cost")
    with suppress(TypeError, ValueError):
        span.usage = {**span.usage, "cost": float(cost)} if cost is not None else span.usage


def _said(outputs: Any) -> Message | None:
    """The first reply: of generations (LangChain), of choices (OpenAI), a message, or a text."""
    if isinstance(outputs, Message):
        return outputs
    if not isinstance(outputs, Mapping):
        return Message("ai", outputs) if isinstance(outputs, str) else None
    for key in ("generations", "choices"):
        flat = outputs.get(key)
        while isinstance(flat, list) and flat:
            flat = flat[0]
        if isinstance(flat, Mapping):
            message = flat.get("message")
            text = flat.get("text")
            return message if isinstance(message, Message) else Message("ai", text if isinstance(text, str) else "")
    found = messages_in(outputs) or messages_in(outputs.get("output"))
    if found:
        return found[-1]
    text = outputs.get("output")
    return Message("ai", text) if isinstance(text, str) else None
