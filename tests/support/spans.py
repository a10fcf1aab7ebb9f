"""OpenInference spans written by hand, for what no app at hand exports: re-rankers, judges, other frameworks' spans."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def span(
    span_id: str, kind: str | None, begin: float, end: float | None, parent: str | None = None, trace: str = "t1",
    error: str | None = None, **attributes: Any,
) -> dict[str, Any]:
    """A span as `ReadableSpan.to_json` writes it; `_` in the attributes' names stands for a dot, `__` for itself."""
    told = {name.replace("__", "\0").replace("_", ".").replace("\0", "_"): value for name, value in attributes.items()}
    if kind:
        told["openinference.span.kind"] = kind
    status = {"status_code": "ERROR", "description": error} if error else {"status_code": "OK"}
    return {"name": f"{kind or 'http'} {span_id}", "context": {"trace_id": trace, "span_id": span_id},
            "parent_id": parent, "start_time": _time(begin), "end_time": None if end is None else _time(end),
            "status": status, "attributes": told, "events": []}


def documents(prefix: str, *ids: str, **scores: float) -> dict[str, Any]:
    """Attributes of a list of documents, with ids, texts that hold them, and the scores that are given."""
    told: dict[str, Any] = {}
    for place, one in enumerate(ids):
        told[f"{prefix}.{place}.document.id"] = one
        told[f"{prefix}.{place}.document.content"] = f"The text of {one}, which is long enough."
        if one in scores:
            told[f"{prefix}.{place}.document.score"] = scores[one]
    return told


def with_documents(row: dict[str, Any], prefix: str, *ids: str, **scores: float) -> dict[str, Any]:
    row["attributes"].update(documents(prefix, *ids, **scores))
    return row


def search(span_id: str, begin: float, end: float, query: str, ids: Sequence[str], **more: Any) -> dict[str, Any]:
    """A RETRIEVER span; `more` is of the span (parent, trace, error)."""
    row = span(span_id, "RETRIEVER", begin, end, more.pop("parent", "root"), **more)
    row["attributes"]["input.value"] = query
    return with_documents(row, "retrieval.documents", *ids)


def root(question: str, answer: str = "42", **more: Any) -> dict[str, Any]:
    return span(more.pop("span_id", "root"), "CHAIN", 0, 100, input_value=question, output_value=answer, **more)


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _time(second: float) -> str:
    return datetime.fromtimestamp(1_790_000_000 + second, UTC).isoformat().replace("+00:00", "Z")
