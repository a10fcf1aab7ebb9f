"""The spans of one question -> its trajectory: they fill the log that the live recorder fills, and its assembler reads
it. So a trace that was exported gives what recording the same app live gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from ragkit.errors import DataError
from ragkit.recording.assemble import assemble
from ragkit.recording.context import ADVICE
from ragkit.recording.fold import order_stage
from ragkit.recording.formats.own import context_of, mark
from ragkit.recording.formats.spans import Span, Tree
from ragkit.recording.langchain import lists_of, query_in
from ragkit.recording.log import Frame, FrameKind, Log, Prompt, Run
from ragkit.recording.passages import as_passages, documents_in
from ragkit.recording.recorder import Recorder
from ragkit.recording.trace import Trace
from ragkit.records.aliases import alias_generated
from ragkit.records.questions import Question
from ragkit.records.trajectory import Passage, Stage, Step, Trajectory

_KINDS: dict[str, Any] = {"llm": "llm", "tool": "tool", "retriever": "retriever"}


class Replayed(Trace):
    """A trace whose log is filled from spans. What the live recorder advises its user to do is not said."""

    def __init__(self, question: Question) -> None:
        super().__init__(Recorder(), question, 0)

    def warn(self, text: str | BaseException) -> None:
        """Keeps a warning with the trajectory; nothing is said, and no advice is kept."""
        if text not in ADVICE and str(text) not in self.warnings:
            self.warnings.append(str(text))


def replay(tree: Tree, question: Question, tool: str) -> Trajectory:
    """The trajectory of one question, with `meta["source"]`: format, trace_id, span_id (its first root), metadata of
    the roots, and `spans`, the span behind the list of each step by the step's index."""
    trace = Replayed(question)
    replayer = _Replayer(trace.log)
    for at, begins, span, above in _events(tree):
        if begins:
            replayer.begin(span, above, at)
        else:
            replayer.end(span, at)
    first = tree.roots[0]
    trace.error = next((root.error for root in tree.roots
                        if root.error and (root.kind == "chain" or len(tree.roots) == 1)), None)
    ends = [root.ended for root in tree.roots if root.ended is not None]
    if first.started is not None and ends:
        trace.ms = (max(ends) - first.started) * 1000
    trace.log.closed = True
    trace.manual_context = next((told for span, _ in tree.walk() if span.kind == "llm" and (
        told := context_of(span.metadata, question.text, replayer.passages()))), None)
    found = alias_generated(assemble(trace))
    metadata = {key: value for root in reversed(tree.roots) for key, value in root.metadata.items()}
    source = {"format": tool, "trace_id": tree.trace_id, "span_id": first.id, "metadata": metadata,
              "spans": {str(step.index): replayer.span_of(step) for step in found.steps}}
    return replace(found, meta={**found.meta, "source": source})


def _events(tree: Tree) -> list[tuple[float, bool, Span, Span | None]]:
    """(time, whether it begins, span, the one above): what a recorder would have been told, in that order. Where the
    clock shows the same time, what is beneath begins after and ends before; nothing begins before what is above it."""
    events: list[tuple[float, bool, Span, Span | None]] = []
    begun: dict[str, float] = {}
    open_spans: list[tuple[Span, Span | None]] = []

    def leave(until: Span | None) -> None:
        while open_spans and open_spans[-1][0] is not until:
            span, above = open_spans.pop()
            if span.is_finished:
                events.append((max(span.ended or 0.0, begun[span.id]), False, span, above))

    for span, above in tree.walk():
        leave(above)
        least = begun[above.id] if above is not None else 0.0
        begun[span.id] = max(span.started if span.started is not None else least, least)
        events.append((begun[span.id], True, span, above))
        open_spans.append((span, above))
    leave(None)
    return sorted(events, key=lambda event: event[0])  # stable


class _Replayer:
    """Does to the log what the callbacks do (recording/langchain.py), at the times that the spans tell."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._runs: dict[str, Run] = {}
        self._prompts: dict[str, Prompt] = {}
        self._judging: set[UUID] = set()
        self._frames: list[tuple[Frame, Span]] = []

    def begin(self, span: Span, above: Span | None, at: float) -> None:
        parent = self._runs[above.id].id if above is not None else None
        run = Run(UUID(int=len(self._runs) + 1), parent, _KINDS.get(span.kind, "chain"), span.name, span.metadata,
                  span.inputs, call_id=span.call_id)
        self._runs[span.id] = self.log.runs[run.id] = run
        if span.kind in ("retriever", "reranker"):
            if span.kind == "reranker":
                self._add_between(span, parent, at)
            stage: Stage | None = "rerank" if span.kind == "reranker" else None
            run.frame = Frame(self.log, "compressor" if stage else "retriever", span.name, span.query, stage,
                              self._frame_above(parent), parent, started=at, begun=at)
            mark(run.frame, span.metadata)
            self._add(run.frame, span)
        elif span.kind == "evaluator":
            self._judging.add(run.id)
        elif span.kind == "llm" and self._answers(run):
            self._prompts[span.id] = Prompt(run.id, span.messages)
            self.log.prompts.append(self._prompts[span.id])

    def end(self, span: Span, at: float) -> None:
        run = self._runs[span.id]
        run.ended, run.error = at, span.error
        if run.frame is not None:
            self._close(run.frame, span, at)
        elif span.error is not None:
            if span.kind == "tool":
                self.log.failed_tools.append((span.name, span.error))
        elif span.kind == "llm":
            self._end_model(span, run)
        elif span.kind == "tool":
            artifact = getattr(span.outputs, "artifact", None)
            found = span.outputs if artifact is None else artifact
            run.call_id = run.call_id or getattr(span.outputs, "tool_call_id", None)
            if documents_in(found) or (isinstance(found, list) and not found):
                self._late("tool", span, run, found, at)
        elif span.kind == "chain":
            if run.parent is None:
                self.log.outputs.append(("chain", span.outputs))
            for inputs, documents in lists_of(self.log, run, span.outputs):
                self._late("node", span, run, documents, at).inputs = as_passages(inputs)

    def passages(self) -> Iterator[Passage]:
        """All that stands in some list."""
        return (passage for frame, _ in self._frames for passage in frame.passages)

    def span_of(self, step: Step) -> str | None:
        """The span that made the step's list, known by when it began; by its name and query where several did."""
        made = step.outermost
        at_once = [(frame.name == made.name and frame.query == made.query, span.id) for frame, span in self._frames
                   if frame.started == made.started]
        return max(at_once, key=lambda one: one[0])[1] if at_once else None

    def _answers(self, run: Run) -> bool:
        """Not a judge at work, and not the inside of a model that is a span of its own."""
        return not any(above.id in self._judging or above.kind == "llm" for above in self.log.lineage(run.parent))

    def _end_model(self, span: Span, run: Run) -> None:
        prompt = self._prompts.get(span.id)
        if prompt is None:
            return
        prompt.output, prompt.calls = span.reply, span.calls
        self.log.add_usage(dict(span.usage))
        if run.parent is None:
            self.log.outputs.append(("llm", span.reply))

    def _frame_above(self, run_id: UUID | None) -> Frame | None:
        return next((run.frame for run in self.log.lineage(run_id) if run.frame is not None), None)

    def _add(self, frame: Frame, span: Span) -> None:
        (self.log.frames if frame.parent is None else frame.parent.children).append(frame)
        self._frames.append((frame, span))

    def _close(self, frame: Frame, span: Span, at: float) -> None:
        frame.ended, frame.error = at, span.error
        if span.started is not None and span.ended is not None:
            frame.ms = (span.ended - span.started) * 1000
        if span.error is not None:
            return
        try:
            frame.passages, frame.inputs = as_passages(span.documents), as_passages(span.given)
        except DataError as error:
            frame.error = str(error)

    def _add_between(self, span: Span, parent: UUID | None, at: float) -> None:
        """The list that a re-ranker was given, where it is none that was seen but is made of those (fused, say)."""
        try:
            passages = as_passages(span.given)
        except DataError:  # said of the re-ranker itself
            return
        given = [passage.id for passage in passages]
        seen = [[passage.id for passage in other.passages] for other, _ in self._frames]
        if not given or given in seen or not set(given) <= {one for ids in seen for one in ids}:
            return
        single = next((ids for ids in reversed(seen) if set(given) <= set(ids)), None)
        stage = "fuse" if single is None else order_stage(given, single)
        self._add(Frame(self.log, "function", f"input of {span.name}", span.query, stage, self._frame_above(parent),
                        parent, passages=passages, started=at, begun=at, ended=at), span)

    def _late(self, kind: FrameKind, span: Span, run: Run, documents: Sequence[Any], at: float) -> Frame:
        """A list that is known only once its run has ended."""
        frame = Frame(self.log, kind, run.name, query_in(run.inputs), None, self._frame_above(run.id), run.id,
                      passages=as_passages(documents), started=at, begun=at, ended=at)
        self._add(frame, span)
        return frame
