"""One block over many questions, for an app's own `.batch()`: each root run goes to the question that it asks."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from ragkit.errors import DataError
from ragkit.recording.attribution import Claims, current_batch, current_log, open_frame_var
from ragkit.recording.langchain import query_in
from ragkit.recording.log import Log

if TYPE_CHECKING:
    from ragkit.recording.trace import Trace

_DEEPEST = 6  # how far into an input texts are looked for
_NEVER_ASKED = "no run asked this question: inside `with recorder.traces(questions)` run the app's own .batch on them"


class Traces(Sequence["Trace"]):
    """The traces of one block, in the order of the questions; made by `Recorder.traces`.

    Whose a root run is, is told by its input: the question's text is one of the texts in it, or stands inside one.
    Equal questions take turns. Where no input holds any of them, the root runs go to the questions in order, one each,
    flagged as guesses; a single one that cannot be told is an orphan.
    """

    def __init__(self, traces: Sequence[Trace]) -> None:
        if not traces:
            raise DataError("traces: expected at least one question, got none")
        self._traces = tuple(traces)
        self._lock = threading.Lock()
        self._runs_of = dict.fromkeys((trace.log for trace in self._traces), 0)
        self._by_text: dict[str, list[Log]] = {}
        for trace in self._traces:
            self._by_text.setdefault(_squeezed(trace.question.text), []).append(trace.log)
        self._told = False  # whether a text said it
        self._tokens: tuple[Token[Log | None], Token[Any], Token[Claims | None]] | None = None

    def __len__(self) -> int:
        return len(self._traces)

    @overload
    def __getitem__(self, at: int) -> Trace: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Trace]: ...
    def __getitem__(self, at: int | slice) -> Trace | Sequence[Trace]:
        return self._traces[at]

    def __enter__(self) -> Traces:
        for trace in self._traces:
            trace.begin()
        self._tokens = (current_log.set(None), open_frame_var.set(None), current_batch.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._tokens is not None:
            with suppress(ValueError):  # left in another context than it was entered in
                current_log.reset(self._tokens[0])
                open_frame_var.reset(self._tokens[1])
                current_batch.reset(self._tokens[2])
        for trace in self._traces:
            roots = trace.log.roots()
            last = roots[-1] if roots else None
            if last is not None and last.error is not None and not last.abandoned:
                trace.error = last.error
            if last is None and error is None:
                trace.warn(_NEVER_ASKED)
            unanswered = last is None or last.ended is None
            ends = [run.ended for run in roots if run.ended is not None]
            ms = (max(ends) - roots[0].begun) * 1000 if ends else None
            trace.finish(error if unanswered else None, ms)

    def claim(self, asked: Any) -> tuple[Log | None, bool]:
        """(log, guessed) of a root run with these inputs; (None, False) for a run over several of the questions,
        whose own children are then the roots."""
        items = asked if isinstance(asked, list | tuple) else ()
        each = (next(_texts_in(one), "") for one in items if isinstance(one, str) or _is_input(one))
        if len(self._by_text.keys() & set(each)) > 1:
            return None, False
        with self._lock:
            logs = self._asked_for(list(_texts_in(asked)))
            self._told = self._told or bool(logs)
            left = logs or [log for log, runs in self._runs_of.items() if not self._told and runs == 0]
            left = [log for log in left if not log.closed]
            if not left:
                return None, False
            log = min(left, key=self._runs_of.__getitem__)  # the first of those with the fewest
            self._runs_of[log] += 1
        return log, not logs

    def _asked_for(self, texts: Sequence[str]) -> Sequence[Log]:
        for text in texts:
            if text in self._by_text:
                return self._by_text[text]
        held = [(len(question), question) for text in texts for question in self._by_text if question in text]
        return self._by_text[max(held)[1]] if held else ()


def _texts_in(asked: Any, depth: int = 0) -> Iterator[str]:
    """The texts of an input, the likeliest to be the question first: a usual key, then the last message."""
    if isinstance(asked, str):
        yield _squeezed(asked)
        return
    if depth > _DEEPEST:
        return
    if isinstance(asked, Mapping):
        if depth == 0 and (named := query_in({key: asked.get(key) for key in ("query", "question", "input")})):
            yield _squeezed(named)
        for value in asked.values():
            yield from _texts_in(value, depth + 1)
    elif isinstance(asked, list | tuple):
        for value in reversed(asked):
            yield from _texts_in(value, depth + 1)
    elif asked is not None:
        inner = getattr(asked, "content", None)
        yield from _texts_in(vars(asked) if inner is None and hasattr(asked, "__dict__") else inner, depth + 1)


def _is_input(value: Any) -> bool:
    """Whether this is the input of one of several runs, and not a message of a conversation."""
    return isinstance(value, Mapping) and "content" not in value


def _squeezed(text: str) -> str:
    return " ".join(text.split())
