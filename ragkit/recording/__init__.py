"""Watch an app run: traces, the LangChain hook, instrumented objects. Nothing here judges, scores or writes files."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragkit.recording.passages import as_passage, as_passages
    from ragkit.recording.recorder import Recorder
    from ragkit.recording.trace import Search, Trace, current_trace

__all__ = ["Recorder", "Search", "Trace", "as_passage", "as_passages", "current_trace"]

_HOMES = {
    "Recorder": "recorder",
    "Search": "trace",
    "Trace": "trace",
    "as_passage": "passages",
    "as_passages": "passages",
    "current_trace": "trace",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
