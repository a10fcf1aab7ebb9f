"""The trace of a deepeval test case -> spans, of which the trajectory is made as of any other tool's."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ragkit.recording.formats.spans import Span, SpanKind, imported
from ragkit.records.readers.rows import is_list
from ragkit.records.trajectory import Trajectory

_KINDS: dict[str, SpanKind] = {"base_spans": "chain", "agent_spans": "chain", "llm_spans": "llm",
                               "retriever_spans": "retriever", "tool_spans": "tool"}
_TOKENS = {"input_token_count": "input_tokens", "output_token_count": "output_tokens"}


def traced(trace: Mapping[str, Any], question: str, where: str) -> Trajectory | None:
    """The trajectory of a trace in which this question was asked; None where the trace has no spans.

    What failed beneath a trace that has an output is a warning: the app got over it.
    """
    spans = list(_spans(trace, where))
    if not spans:
        return None
    known = {span.id for span in spans}
    above = Span("question", str(trace.get("uuid") or ""), None, "chain", where, inputs=question,
                 outputs=trace.get("output"), started=_seconds(_value(trace, "start_time")),
                 ended=_seconds(_value(trace, "end_time")))
    spans = [above, *(span if span.parent in known else replace(span, parent=above.id) for span in spans)]
    (seen,) = imported(spans, "deepeval").trajectories
    failed = [f"{span.name}: {span.error}" for span in spans if span.error and span.kind != "retriever"]
    has_output = trace.get("output") is not None
    warnings = [*seen.meta.get("warnings", ()), *(failed if has_output else ())]
    meta = {**seen.meta, **({"warnings": warnings} if warnings else {})}
    return replace(seen, error=None if has_output or not failed else failed[-1], answer=_answer(trace.get("output")),
                   meta=meta)


def _spans(trace: Mapping[str, Any], where: str) -> Iterator[Span]:
    for name, kind in _KINDS.items():
        for row in _value(trace, name) or ():
            inputs, outputs = row.get("input"), row.get("output")
            texts = _value(row, "retrieval_context")
            yield Span(
                id=str(row.get("uuid")), trace_id=str(trace.get("uuid") or ""), parent=_value(row, "parent_uuid"),
                kind=kind, where=where, name=str(row.get("name") or ""),
                started=_seconds(_value(row, "start_time")), ended=_seconds(_value(row, "end_time")),
                error=_error(row), metadata=dict(row.get("metadata") or {}), inputs=inputs, outputs=outputs,
                query=_query(inputs) if kind == "retriever" else "",
                documents=(outputs if is_list(outputs) else texts or ()) if kind == "retriever" else (),
                messages=_messages(inputs) if kind == "llm" else [],
                reply=_answer(outputs) if kind == "llm" else None, usage=_usage(row),
            )


def _value(row: Mapping[str, Any], name: str) -> Any:
    """A value under its name in snake case or in camel case."""
    first, *rest = name.split("_")
    return row.get(name, row.get(first + "".join(part.title() for part in rest)))


def _error(row: Mapping[str, Any]) -> str | None:
    if row.get("error"):
        return str(row["error"])
    return "failed" if row.get("status") == "ERRORED" and not row.get("output") else None


def _seconds(text: Any) -> float | None:
    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError):
        return None


def _query(inputs: Any) -> str:
    if isinstance(inputs, Mapping):
        return next((inputs[key] for key in ("query", "input", "question") if isinstance(inputs.get(key), str)), "")
    return inputs if isinstance(inputs, str) else ""


def _messages(inputs: Any) -> list[tuple[str, str]]:
    if isinstance(inputs, str):
        return [("user", inputs)]
    rows = inputs if isinstance(inputs, list) else []
    return [(str(row.get("role") or ""), str(row.get("content") or "")) for row in rows if isinstance(row, Mapping)]


def _answer(output: Any) -> str | None:
    if isinstance(output, Mapping):
        output = next((output[key] for key in ("answer", "content", "output", "response")
                       if isinstance(output.get(key), str)), None)
    return output if isinstance(output, str) else None


def _usage(row: Mapping[str, Any]) -> dict[str, float]:
    counts = {name: _value(row, given) for given, name in _TOKENS.items()}
    return {name: float(count) for name, count in counts.items() if isinstance(count, int | float)}
