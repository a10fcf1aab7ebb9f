"""Spans of any tool -> trajectories: which spans are one question, and what of them to keep. Replaying is in replay.py.

A reader turns its file into `Span`s and calls `imported`. What a span means is decided by the live recorder's rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ragkit.errors import DataError
from ragkit.recording.formats.imported import Imported, holdings, numbered, score_notes
from ragkit.recording.formats.values import question_in
from ragkit.records.questions import Question, text_id

SpanKind = Literal["chain", "llm", "tool", "retriever", "reranker", "evaluator"]


@dataclass(eq=False)
class Span:
    """One unit of work of an app. Values are decoded (formats/values.py), times are seconds since the epoch.

    `inputs` and `outputs` are as the app saw them; `documents` is the list of a retriever or re-ranker, `given` what a
    re-ranker was given; `messages` (role, text), `reply`, `calls` (id, tool) and `usage` belong to a model; `call_id`
    is the model's call that a tool answers. `error` says why it failed; `ended` is None where it never ended.
    """

    id: str
    trace_id: str
    parent: str | None
    kind: SpanKind
    where: str
    name: str = ""
    started: float | None = None
    ended: float | None = None
    error: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    inputs: Any = None
    outputs: Any = None
    query: str = ""
    documents: Any = ()
    given: Any = ()
    messages: list[tuple[str, str]] = field(default_factory=list)
    reply: str | None = None
    calls: tuple[tuple[str, str], ...] = ()
    usage: Mapping[str, float] = field(default_factory=dict)
    call_id: str | None = None

    @property
    def is_finished(self) -> bool:
        """Whether it came to an end, well or not; not every export tells when."""
        return self.ended is not None or self.error is not None or self.outputs is not None or bool(self.documents)


@dataclass(frozen=True)
class Tree:
    """The spans of one question: the roots, and the spans beneath each span, both in order of start."""

    trace_id: str
    roots: tuple[Span, ...]
    beneath: Mapping[str, Sequence[Span]]

    def walk(self) -> Iterator[tuple[Span, Span | None]]:
        """(span, the one above it) from the roots down; each span stands before those beneath it."""
        waiting: list[tuple[Span, Span | None]] = [(root, None) for root in reversed(self.roots)]
        while waiting:
            span, above = waiting.pop()
            yield span, above
            waiting.extend((child, span) for child in reversed(self.beneath.get(span.id, ())))


def imported(spans: Iterable[Span], tool: str) -> Imported:
    """The trajectories of all questions in the spans, in order of their start, and notes on what could not be used.

    A trace is one question. One whose roots are several chains with questions of their own (an evaluation loop inside
    a span) holds several. The question id is `question_id` in the root's metadata, else the question's text_id. A
    trace without a question text at its root is left out and counted; if there is no other, that is a DataError.
    """
    from ragkit.recording.formats.replay import replay

    found, without, split = [], [], 0
    traces = _by_trace(spans)
    untimed = [span for some in traces.values() for span in some if span.started is None]
    for trace_id, some in traces.items():
        trees = _questions(_tree(trace_id, some))
        split += len(trees) > 1
        for tree in trees:
            text = _question(tree)
            if text is None:
                without.append(tree)
                continue
            question = Question(_question_id(tree) or text_id(text), text)
            found.append((_start(tree.roots[0]), replay(tree, question, tool)))
    if not found:
        where = without[0].roots[0].where if without else "the file"
        raise DataError(f"{where}: expected a trace whose root span holds a question, got "
                        + (f"{len(without)} without one (the input of a root is a text, messages, or has the key "
                           "question, query or input)" if without else "no span"))
    trajectories = numbered(one for _, one in sorted(found, key=lambda pair: pair[0]))
    notes = score_notes(holdings(trajectories))
    if without:
        notes.append(f"{len(without)} traces without a question at their root were left out; the first is "
                     f"{without[0].trace_id or '(no id)'} ({without[0].roots[0].where})")
    if untimed:
        notes.append(f"spans without a start that can be read as a time: {len(untimed)}, the first in "
                     f"{untimed[0].where}; they stand before the others of their trace, in the order of the file")
    if split:
        notes.append(f"{split} traces hold several questions; each root chain is one of them")
    return Imported(trajectories, None, tuple(notes))


def _by_trace(spans: Iterable[Span]) -> dict[str, list[Span]]:
    """The spans of each trace; of a span that stands twice (sent again once it had ended) the last one that ended."""
    traces: dict[str, dict[str, Span]] = {}
    for span in spans:
        known = traces.setdefault(span.trace_id, {})
        if span.id not in known or span.ended is not None:
            known[span.id] = span
    return {trace_id: list(known.values()) for trace_id, known in traces.items()}


def _start(span: Span) -> float:
    return span.started or 0.0


def _tree(trace_id: str, spans: Sequence[Span]) -> Tree:
    known = {span.id for span in spans}
    beneath: dict[str, list[Span]] = {}
    roots = []
    for span in sorted(spans, key=_start):  # stable: without times the order of the file
        if span.parent in known and span.parent != span.id:
            beneath.setdefault(str(span.parent), []).append(span)
        else:
            roots.append(span)
    tree = Tree(trace_id, tuple(roots), beneath)
    reached = sum(1 for _ in tree.walk())
    if reached < len(spans):
        raise DataError(f"{spans[0].where}: {len(spans) - reached} spans of trace {trace_id} stand above themselves; "
                        "expected parents without a circle")
    return tree


def _questions(tree: Tree) -> list[Tree]:
    """The tree itself, or one for each root chain where those asked different questions and searched for them."""
    alone = [replace(tree, roots=(root,)) for root in tree.roots]
    texts = {question_in(one.roots[0].inputs) for one in alone}
    if len(alone) < 2 or None in texts or len(texts) < len(alone):
        return [tree]
    searching = sum(any(span.kind == "retriever" for span, _ in one.walk()) for one in alone)
    chains = all(root.kind == "chain" for root in tree.roots)
    return alone if chains and searching > 1 else [tree]


def _question(tree: Tree) -> str | None:
    """The first text that a root was asked: of a chain, else of a search, else of a model or tool."""
    for kinds in (("chain",), ("retriever", "reranker"), ("llm",)):
        for root in tree.roots:
            if root.kind not in kinds:
                continue
            asked = [text for role, text in root.messages if role in ("human", "user")]
            text = root.query or (asked[-1] if root.kind == "llm" and asked else question_in(root.inputs))
            if text and text.strip():
                return text
    return None


def _question_id(tree: Tree) -> str | None:
    given = next((root.metadata["question_id"] for root in tree.roots if "question_id" in root.metadata), None)
    return str(given) if isinstance(given, str | int) and not isinstance(given, bool) and given != "" else None
