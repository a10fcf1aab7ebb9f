"""Scores -> rows for the tool that a trace came from: Phoenix' span annotations, LangSmith's feedback. No writing here.

Where a trajectory came from stands in its `meta["source"]`: `trace_id`, `span_id` (the root span or run), and `spans`,
the span of each step's outermost list by the step's index ("0", "1", …; JSON has no other keys).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ragkit.records.trajectory import Trajectory

Row = Mapping[str, Any]


def annotation_rows(trajectories: Iterable[Trajectory], scores_rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """A row for each score whose span is known, as Phoenix' `POST /v1/span_annotations` takes them in its `data`.

    `scores_rows` are rows of the scores table as mappings (`frame.to_dict("records")`). A score of a step goes to the
    span that made its list, one at the end to the root span. `name` is the metric, with " (judged)" where its
    relevance labels were. An undefined or failed score has no number: its `label` is the status, its `explanation`
    the reason. Scores of trajectories from other places (recorded live, another format) give no row.

    >>> source = {"format": "openinference", "trace_id": "28a5", "span_id": "71", "spans": {"0": "ff"}}
    >>> row = {"question_id": "q", "repeat": 0, "step": "0", "metric": "recall", "value": 0.5, "status": "scored"}
    >>> found = next(annotation_rows([Trajectory("q", "?", meta={"source": source})], [row]))
    >>> found["span_id"], found["name"], found["result"]
    ('ff', 'recall', {'score': 0.5})
    """
    for source, span, row in _placed("openinference", trajectories, scores_rows):
        told = {"score": _value(row), "label": _label(row), "explanation": _text(row, "reason")}
        yield {
            "span_id": span,
            "name": _name(row),
            "annotator_kind": "LLM" if _text(row, "judge") else "CODE",
            "result": {key: value for key, value in told.items() if value is not None},
            "metadata": {"trace_id": source.get("trace_id"), **_whence(row)},
            "identifier": _identifier(row),
        }


def feedback_rows(trajectories: Iterable[Trajectory], scores_rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """The same as keyword arguments of LangSmith's `Client.create_feedback`, by the id of the run.

    `key` is the metric, `score` its value, `value` the status of a score that has none, `comment` its reason.

    >>> source = {"format": "langsmith", "trace_id": "r1", "span_id": "r1", "spans": {}}
    >>> row = {"question_id": "q", "repeat": 0, "step": "final", "metric": "recall", "value": None,
    ...        "status": "undefined", "reason": "no gold"}
    >>> found = next(feedback_rows([Trajectory("q", "?", meta={"source": source})], [row]))
    >>> found["run_id"], found["key"], found["score"], found["value"], found["comment"]
    ('r1', 'recall', None, 'undefined', 'no gold')
    """
    for source, span, row in _placed("langsmith", trajectories, scores_rows):
        yield {
            "run_id": span,
            "trace_id": source.get("trace_id"),
            "key": _name(row),
            "score": _value(row),
            "value": _label(row),
            "comment": _text(row, "reason"),
            "source_info": {"identifier": _identifier(row), **_whence(row)},
        }


def _placed(
    name: str, trajectories: Iterable[Trajectory], scores_rows: Iterable[Row]
) -> Iterator[tuple[Mapping[str, Any], str, Row]]:
    """(source of the trajectory, span of the score, score) of each row that belongs to a span of this format."""
    sources = {one.key: source for one in trajectories
               if isinstance(source := one.meta.get("source"), Mapping) and source.get("format") == name}
    for row in scores_rows:
        source = sources.get((str(row["question_id"]), int(row["repeat"])))
        if source is None:
            continue
        spans = source.get("spans")
        step = str(row["step"])
        span = source.get("span_id") if step == "final" else spans.get(step) if isinstance(spans, Mapping) else None
        if isinstance(span, str) and span:
            yield source, span, row


def _name(row: Row) -> str:
    return f"{row['metric']} (judged)" if row.get("labels") == "judged" else str(row["metric"])


def _value(row: Row) -> float | None:
    value = row.get("value")
    if row.get("status", "scored") != "scored" or value is None or math.isnan(value):
        return None
    return float(value)


def _label(row: Row) -> str | None:
    return None if row.get("status", "scored") == "scored" else str(row["status"])


def _text(row: Row, name: str) -> str | None:
    """A text of the row; a table says NaN where there is none."""
    value = row.get(name)
    return value if isinstance(value, str) and value else None


def _whence(row: Row) -> dict[str, Any]:
    return {"question_id": str(row["question_id"]), "repeat": int(row["repeat"]), "step": str(row["step"]),
            "variant": _text(row, "variant"), "labels": _text(row, "labels"), "judge": _text(row, "judge")}


def _identifier(row: Row) -> str:
    """The same for the same score of the same variant, so that sending it again replaces it."""
    return ":".join(["ragkit", *(part for part in (_text(row, "variant"), _text(row, "judge")) if part)])
