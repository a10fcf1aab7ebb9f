"""What may be shared of confidential texts: their hashes, in reports and errors. Trajectory files do it themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from ragkit.records.questions import text_id
from ragkit.records.trajectory import Trajectory
from ragkit.report.data import ListView, PassageView, QuestionView, ReportData, ScoreView, StepView

_T = TypeVar("_T")
_SECRET = re.compile(r"(?i)(api|access|private|subscription)[_-]?key|token|secret|passw|credential|authorization")
_TEXTS = {  # which fields of a view hold text of the app, the data set or a judge
    PassageView: ("text",),
    ListView: ("error",),
    StepView: ("query", "error"),
    ScoreView: ("verdicts", "raw"),
    QuestionView: ("text", "answer", "references", "statements", "error", "warnings", "flags"),
}


def without_texts(data: ReportData) -> ReportData:
    """The report with a hash in the place of every question, passage, answer, verdict and message."""
    return replace(data, worst=tuple(_stripped(view) for view in data.worst))


def without_secrets(value: Any) -> Any:
    """Plain data with the value of every key that names a secret, and the password of every address, blotted out.

    >>> without_secrets({"api_key": "sk-1", "url": "http://me:pw@host/v1", "k": 3})
    {'api_key': '***', 'url': 'http://***@host/v1', 'k': 3}
    """
    if isinstance(value, Mapping):
        return {key: "***" if _SECRET.search(str(key)) and isinstance(inner, str) else without_secrets(inner)
                for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_secrets(item) for item in value]
    return re.sub(r"(?<=//)[^/@\s]+@", "***@", value) if isinstance(value, str) else value


def without_messages(trajectory: Trajectory) -> Trajectory:
    """The trajectory with the type of each error alone, and warnings as hashes: their words may quote a text."""
    steps = tuple(
        replace(step, retrievals=tuple(replace(r, error=_type_only(r.error)) for r in step.retrievals))
        for step in trajectory.steps
    )
    meta = dict(trajectory.meta)
    if meta.get("warnings"):
        meta["warnings"] = [text_id(str(warning)) for warning in meta["warnings"]]
    return replace(trajectory, error=_type_only(trajectory.error), steps=steps, meta=meta)


def _type_only(error: str | None) -> str | None:
    if error is None:
        return None
    match = re.match(r"[A-Za-z_][\w.]*", error)
    return f"{match.group(0) if match else 'error'}: {text_id(error)}"


def _stripped(value: _T) -> _T:
    """A view with its text fields hashed, and the views inside it likewise."""
    changes: dict[str, Any] = {}
    for entry in fields(value):  # type: ignore[arg-type]
        inner = getattr(value, entry.name)
        if entry.name in _TEXTS.get(type(value), ()):
            changes[entry.name] = _hashed(inner)
        elif isinstance(inner, tuple) and inner and is_dataclass(inner[0]):
            changes[entry.name] = tuple(_stripped(view) for view in inner)
        elif is_dataclass(inner) and not isinstance(inner, type):
            changes[entry.name] = _stripped(inner)
    return replace(value, **changes)  # type: ignore[type-var]


def _hashed(value: Any) -> Any:
    if isinstance(value, str):
        return text_id(value) if value else value
    return tuple(_hashed(item) for item in value) if isinstance(value, tuple) else value
