"""The trace of one question: what the user says by hand, and the finished trajectory. Assembling is in assemble.py."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ragkit.errors import DataError, describe
from ragkit.recording.attribution import ambient_run, current_log, end, enter, go_live, leave, open_frame_var, told
from ragkit.recording.attribution import open_frame as _open_frame
from ragkit.recording.log import Frame, Log
from ragkit.recording.passages import as_passages
from ragkit.records.aliases import alias_generated
from ragkit.records.questions import Question, text_id
from ragkit.records.trajectory import Retrieval, ScoreKind, Stage, Trajectory

if TYPE_CHECKING:
    from ragkit.recording.recorder import Recorder


def current_trace() -> Trace | None:
    """The trace that the calling code runs in, told by the context (also in tasks and threads that carry it on) or by
    the LangChain run around it (in a block of `Recorder.traces`); None outside of any, or once it has ended.

    >>> current_trace() is None
    True
    """
    log, _ = told(ambient_run())
    return None if log is None else log.owner


class Search:
    """One search of an own pipeline, stage by stage; made by `Trace.search`. `result` gives the outermost list."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._last = time.perf_counter()

    def stage(
        self,
        stage: Stage,
        name: str,
        passages: Any,
        score_kind: ScoreKind = "unknown",
        ms: float | None = None,
        query: str | None = None,
    ) -> None:
        """A list beneath the outermost one, in the order they happen. `ms` is milliseconds, by default the time since
        the block or the stage before it; `query` where it differs from the search's own."""
        self._frame.lists += (self._retrieval(stage, name, passages, score_kind, ms, query),)

    def result(
        self,
        stage: Stage,
        name: str,
        passages: Any,
        score_kind: ScoreKind = "unknown",
        ms: float | None = None,
        query: str | None = None,
    ) -> None:
        """The list that the app got. Without it the last stage is taken for it."""
        self._frame.result = self._retrieval(stage, name, passages, score_kind, ms, query)

    def _retrieval(
        self, stage: Stage, name: str, passages: Any, score_kind: ScoreKind, ms: float | None, query: str | None
    ) -> Retrieval:
        now = time.perf_counter()
        taken, self._last = (now - self._last) * 1000, now
        return Retrieval(
            stage,
            self._frame.query if query is None else query,
            as_passages(passages),
            name,
            started=time.time() - taken / 1000,
            ms=taken if ms is None else ms,
            score_kind=score_kind,
        )


class Trace:
    """What is seen while the app answers one question; made by `Recorder.trace`, used as a context manager.

    What LangChain's callbacks and instrumented objects tell is recorded without a word. The methods are for what
    they cannot see. An exception in the block is kept in `trajectory.error` and raised again.
    """

    def __init__(self, recorder: Recorder, question: str | Question, repeat: int) -> None:
        if isinstance(question, str):
            if not question.strip():
                raise DataError("trace: expected a question, got an empty text")
            question = Question(text_id(question), question)
        if not isinstance(question, Question):
            raise DataError(f"trace: expected a Question or its text, got {type(question).__name__}")
        self.recorder = recorder
        self.question = question
        self.repeat = repeat
        self.log = Log(self)
        self.manual_context: Retrieval | None = None
        self.manual_answer: str | None = None
        self.error: str | None = None
        self.ms: float | None = None
        self.warnings: list[str] = []
        self.notices: list[str] = []
        self._begun: float | None = None
        self._frame_around: Frame | None = None
        self._finished: Trajectory | None = None

    def __enter__(self) -> Trace:
        self.begin()
        self._frame_around = open_frame_var.get()
        enter(self.log)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        leave(self.log, self._frame_around)
        self.finish(error)

    def begin(self) -> None:
        """Opens the trace without making it the one of the calling context (as a `with` block does)."""
        if self._begun is not None:
            raise DataError(f"trace: question {self.question.id!r} is being traced or was; make a new trace")
        self._begun = time.perf_counter()
        go_live(self.log)

    def finish(self, error: BaseException | None = None, ms: float | None = None) -> None:
        """Closes the trace and hands its trajectory to the recorder. A stream that its reader left is no failure."""
        from ragkit.recording.assemble import assemble

        self.ms = (time.perf_counter() - (self._begun or 0.0)) * 1000 if ms is None else ms
        end(self.log)
        self.log.left_early = isinstance(error, GeneratorExit)
        if error is not None and not self.log.left_early:
            self.error = describe(error)
        if self.error is None:
            self.log.abandon_open()
        self._finished = alias_generated(assemble(self))  # as a reader of its file does
        self.log.clear()
        self._frame_around = None
        self.recorder.keep(self._finished)

    def step(
        self,
        query: str,
        passages: Any,
        stage: Stage = "retrieve",
        name: str = "",
        score_kind: ScoreKind = "unknown",
        turn: int | None = None,
        ms: float | None = None,
        stages: Sequence[Retrieval] = (),
    ) -> None:
        """A search that was made by hand: its query, the list that came back, and the `stages` beneath it.

        An empty list is a search that found nothing, and stays visible. A list of stage rerank, filter or fuse
        without `stages`, made of passages found before, is kept as the outermost list of the step it was made from.
        Steps with the same `turn` ran in parallel; `ms` is milliseconds.
        """
        checked = Retrieval(stage, query, as_passages(passages), name, score_kind=score_kind)
        frame = self._manual_frame("step", name, query, stage)
        frame.turn, frame.ms, frame.score_kind, frame.lists = turn, ms, score_kind, tuple(stages)
        frame.close(checked.passages)
        if ms is None:
            frame.ms = None  # nobody measured it

    @contextmanager
    def search(self, query: str, turn: int | None = None, name: str = "") -> Iterator[Search]:
        """One search of an own pipeline: `search.stage(…)` for each list on the way, `search.result(…)` for the last.

        What callbacks and instrumented objects see inside the block is not recorded a second time; it counts only
        where the block itself gives no list. An exception makes it a failed step.
        """
        frame = self._manual_frame("search", name, query, None)
        frame.turn = turn
        tokens = (current_log.set(self.log), open_frame_var.set(frame))  # the log too: this may be a raw thread
        try:
            yield Search(frame)
        except BaseException as error:
            frame.close(error=error)
            raise
        finally:
            current_log.reset(tokens[0])
            open_frame_var.reset(tokens[1])
            frame.close()

    def context(self, passages: Any, ranked: bool = True) -> None:
        """The passages that the answer is written from, where the app rewrites them or shows no prompt. An empty list
        says "from nothing". `ranked=False` where their order means nothing (several searches one after the other)."""
        self._open()
        found = as_passages(passages)
        self.manual_context = Retrieval("context", self.question.text, found, ranked=ranked, source="manual")

    def answer(self, output: Any) -> None:
        """The app's answer, where it is not the output of a chain or model that was seen. The last call counts.

        `output` is a text, or what the app returned: a message, a state with messages, a mapping with a usual key.
        """
        from ragkit.recording.answers import answer_text

        self._open()
        text = answer_text(output)
        if text is None:
            raise DataError("trace.answer: expected a text, a message, or an output with messages or the key answer, "
                            f"got {type(output).__name__}")
        self.manual_answer = text

    def usage(self, **counts: float) -> None:
        """Adds to what the app used: input_tokens, output_tokens, cost, or any name of your own."""
        self._open()
        self.log.add_usage(counts)

    def warn(self, text: str | BaseException) -> None:
        """Keeps a warning with the trajectory (meta["warnings"]) and says it once per recorder."""
        text = describe(text) if isinstance(text, BaseException) else str(text)
        if text not in self.warnings:
            self.warnings.append(text)
        self.recorder.say(text)

    @property
    def trajectory(self) -> Trajectory:
        """The finished trajectory; a DataError before the `with` block has ended."""
        if self._finished is None:
            raise DataError(f"trace: question {self.question.id!r} has not ended; read trajectory after the with block")
        return self._finished

    @property
    def meta(self) -> Mapping[str, Any]:
        """What was noticed so far, as it will stand in `trajectory.meta`."""
        pairs = {"warnings": tuple(self.warnings), "notices": tuple(self.notices)}
        return {key: value for key, value in pairs.items() if value}

    def _open(self) -> None:
        if self.log.closed or self._begun is None:
            state = "has ended" if self.log.closed else "has not begun (use it in a with statement)"
            raise DataError(f"trace: question {self.question.id!r} {state}")

    def _manual_frame(self, kind: Any, name: str, query: str, stage: Stage | None) -> Frame:
        self._open()
        token = None if current_log.get() is self.log else current_log.set(self.log)  # called from a raw thread
        by_context = self.log.by_context
        try:
            frame = _open_frame(kind, name, query, stage)
        finally:
            self.log.by_context = by_context  # here it is the caller who says so
            if token is not None:
                current_log.reset(token)
        if frame is None or frame.log is not self.log:
            frame = Frame(self.log, kind, name, query, stage)
            self.log.frames.append(frame)
        return frame
