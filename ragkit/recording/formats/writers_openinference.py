"""Trajectories -> OpenInference spans, as `ReadableSpan.to_json` writes them: one JSON object a span.

A trajectory is a trace: a CHAIN, a RETRIEVER or RERANKER for each list, and an LLM where its context or usage is known.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ragkit.recording.formats.own import context_told, list_told
from ragkit.records.files import dumps
from ragkit.records.trajectory import Passage, Retrieval, Step, Trajectory

_SHORTEST = 0.001  # seconds, of what nobody timed
_TYPED = re.compile(r"(?P<type>[A-Za-z_][\w.]*): (?P<message>.*)", re.DOTALL)
_TOKENS = {"input_tokens": "llm.token_count.prompt", "output_tokens": "llm.token_count.completion",
           "cost": "llm.cost.total"}


def openinference_spans(trajectories: Iterable[Trajectory], variant: str, started: float) -> Iterator[dict[str, Any]]:
    """The spans of all trajectories, one trace after the other, each parent before what is beneath it.

    `started` (seconds since the epoch) is where time begins for what nobody timed; known times are kept as far as
    the order of turns and questions allows. Trace ids are made of variant, question and repeat, so that writing the
    same again gives the same. What OpenInference has no word for (stage, turn, kind of score, whether a list is
    ranked, which passages the context is) stands in the metadata under "ragkit".

    >>> step = Step(0, (Retrieval("retrieve", "Who?", (Passage("d1", "Ann"),)),))
    >>> [(one["name"], one["attributes"]["openinference.span.kind"])
    ...  for one in openinference_spans([Trajectory("q", "Who?", (step,), answer="Ann")], "base", 0.0)]
    [('base', 'CHAIN'), ('retrieve', 'RETRIEVER')]
    """
    clock = started
    for trajectory in trajectories:
        trace = _Trace(trajectory, variant, clock)
        yield from trace.spans
        clock = trace.clock + _SHORTEST


@dataclass
class _Trace:
    """The spans of one trajectory in the making; `clock` is the time of its last event."""

    trajectory: Trajectory
    variant: str
    clock: float
    spans: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        one = self.trajectory
        self.id = _digest([self.variant, one.question_id, one.repeat], 32)
        times = [found.started for step in one.steps for found in step.retrievals if found.started is not None]
        begin = self.clock = max([self.clock, *times[:1]])
        metadata = {"question_id": one.question_id, "repeat": one.repeat, "variant": self.variant}
        told = {"input.value": one.question, "input.mime_type": "text/plain", "metadata": dumps(metadata)}
        if one.answer is not None:
            told |= {"output.value": one.answer, "output.mime_type": "text/plain"}
        root = self._open(self.variant, "CHAIN", None, told)
        for turn in _turns(one.steps):
            self._turn(turn, root)
        if one.context is not None or one.usage:
            self._model(root)
        end = max(self.clock, begin + (one.ms or 0) / 1000)
        self._close(root, end, one.error)
        self.clock = end

    def _turn(self, steps: Sequence[Step], root: dict[str, Any]) -> None:
        """The searches of a turn run side by side: each begins before any of them ends."""
        known = [step.outermost.started for step in steps if step.outermost.started is not None]
        begin = max([self.clock + _SHORTEST, *known[:1]])
        ends = []
        for place, step in enumerate(steps):
            self.clock = begin + place * _SHORTEST / 10
            self._lists(step.retrievals, root["context"]["span_id"], _SHORTEST)
            ends.append(self.clock)
        self.clock = max(ends)

    def _lists(self, lists: Sequence[Retrieval], parent: str, least: float) -> None:
        """A list and those beneath it. One that was made of a single list comes after it; one of several, around."""
        own, groups = lists[0], _groups(lists[1:])
        if len(groups) == 1 and own.stage != "retrieve":
            self._lists(groups[0], parent, least)
            span = self._open(own.name or own.stage, "RERANKER", parent, {"reranker.query": own.query})
            span["attributes"] |= _documents("reranker.input_documents", groups[0][0].passages)
            span["attributes"] |= _documents("reranker.output_documents", own.passages)
        else:
            told = {"input.value": own.query, "input.mime_type": "text/plain"}
            span = self._open(own.name or own.stage, "RETRIEVER", parent, told)
            span["attributes"] |= _documents("retrieval.documents", own.passages)
            for group in groups:
                self._lists(group, span["context"]["span_id"], least)
        span["attributes"]["metadata"] = dumps(list_told(own))
        began = datetime.fromisoformat(span["start_time"]).timestamp()
        self.clock = max(self.clock + least, began + (own.ms or 0) / 1000)
        self._close(span, self.clock, own.error)

    def _model(self, root: dict[str, Any]) -> None:
        """What the answer was written from, and the answer. The passages of a set stand in a message each."""
        one, told = self.trajectory, dict[str, Any]()
        self.clock += _SHORTEST
        if one.context is not None:
            texts = [text for passage in one.context.passages if (text := _text(passage))]
            messages = ["\n\n".join(texts)] if one.context.ranked and texts else texts
            for place, (role, text) in enumerate([*(("system", text) for text in messages), ("user", one.question)]):
                told |= {f"llm.input_messages.{place}.message.role": role,
                         f"llm.input_messages.{place}.message.content": text}
            told["metadata"] = dumps(context_told(one.context))
        if one.answer is not None:
            told |= {"output.value": one.answer, "llm.output_messages.0.message.role": "assistant",
                     "llm.output_messages.0.message.content": one.answer}
        told |= {_TOKENS[name]: int(count) if name != "cost" else count for name, count in one.usage.items()
                 if name in _TOKENS and math.isfinite(count)}
        span = self._open("generate", "LLM", root["context"]["span_id"], told)
        self.clock += _SHORTEST
        self._close(span, self.clock, None)

    def _open(self, name: str, kind: str, parent: str | None, attributes: dict[str, Any]) -> dict[str, Any]:
        span_id = "0x" + _digest([self.id, len(self.spans)], 16)
        span: dict[str, Any] = {
            "name": name,
            "context": {"trace_id": f"0x{self.id}", "span_id": span_id, "trace_state": "[]"},
            "kind": "SpanKind.INTERNAL",
            "parent_id": parent,
            "start_time": _time(self.clock),
            "end_time": None,
            "status": {"status_code": "OK"},
            "attributes": {"openinference.span.kind": kind, **attributes},
            "events": [],
            "links": [],
            "resource": {"attributes": {"service.name": "ragkit", "openinference.project.name": self.variant},
                         "schema_url": ""},
        }
        self.spans.append(span)
        return span

    @staticmethod
    def _close(span: dict[str, Any], at: float, error: str | None) -> None:
        span["end_time"] = _time(at)
        if error is not None:
            span["status"] = {"status_code": "ERROR", "description": error}
            if typed := _TYPED.fullmatch(error):
                told = {"exception.type": typed["type"], "exception.message": typed["message"]}
                span["events"] = [{"name": "exception", "timestamp": _time(at), "attributes": told}]


def _turns(steps: Sequence[Step]) -> list[list[Step]]:
    turns: list[list[Step]] = []
    for step in steps:
        if turns and turns[-1][-1].turn == step.turn:
            turns[-1].append(step)
        else:
            turns.append([step])
    return turns


def _groups(lists: Sequence[Retrieval]) -> list[Sequence[Retrieval]]:
    """The lists beneath one, each with those beneath it: a search stands for itself, anything else was made of all
    that follows."""
    place = next((at for at, found in enumerate(lists) if found.stage != "retrieve"), len(lists))
    return [*([found] for found in lists[:place]), *([lists[place:]] if place < len(lists) else [])]


def _documents(prefix: str, passages: Sequence[Passage]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for place, passage in enumerate(passages):
        at = f"{prefix}.{place}.document"
        metadata = {**passage.metadata, **({} if passage.doc_id is None else {"doc_id": passage.doc_id})}
        told[f"{at}.id"] = passage.id
        if (text := _text(passage)) is not None:
            told[f"{at}.content"] = text
        if passage.score is not None and math.isfinite(passage.score):
            told[f"{at}.score"] = passage.score
        if metadata:
            told[f"{at}.metadata"] = dumps(metadata)
    return told


def _text(passage: Passage) -> str | None:
    """The text, else the hash of one that was left out."""
    return passage.metadata.get("text_hash") if passage.text is None else passage.text


def _digest(value: object, length: int) -> str:
    return hashlib.sha256(dumps(value).encode("utf-8")).hexdigest()[:length]


def _time(second: float) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
