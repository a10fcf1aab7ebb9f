"""The raw log of one trace: frames (lists as they were made, nested), runs and prompts. Whose trace an event belongs
to is decided in attribution.py."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from ragkit.errors import describe
from ragkit.records.trajectory import Passage, Retrieval, ScoreKind, Stage

FrameKind = Literal["retriever", "store", "function", "search", "step", "node", "tool", "compressor", "cross-encoder"]

_clock = itertools.count()


@dataclass(eq=False)
class Run:
    """One LangChain run inside a trace; `guessed` where its trace was guessed."""

    id: UUID
    parent: UUID | None
    kind: Literal["chain", "llm", "tool", "retriever"]
    name: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    inputs: Any = None
    guessed: bool = False
    call_id: str | None = None
    frame: Frame | None = None
    begun: float = field(default_factory=time.perf_counter)
    ended: float | None = None  # perf_counter; None: nobody said that it ended
    error: str | None = None
    abandoned: bool = False  # a stream that was closed before its end
    seq: int = field(default_factory=lambda: next(_clock))

    def close(self, error: BaseException | None = None) -> None:
        self.ended = time.perf_counter()
        if error is not None:
            self.error, self.abandoned = describe(error), isinstance(error, GeneratorExit)


@dataclass(eq=False)
class Prompt:
    """What a model was sent (role, text) and what it answered."""

    run_id: UUID
    messages: list[tuple[str, str]]
    output: str | None = None
    calls: tuple[tuple[str, str], ...] = ()  # (tool call id, tool name)
    seq: int = field(default_factory=lambda: next(_clock))


@dataclass(eq=False)
class Frame:
    """A list while it is being made. What opens while it is open stands beneath it."""

    log: Log
    kind: FrameKind
    name: str = ""
    query: str = ""
    stage: Stage | None = None  # None: told by structure
    parent: Frame | None = None
    run_id: UUID | None = None
    guessed: bool = False
    turn: int | None = None
    passages: tuple[Passage, ...] = ()
    inputs: tuple[Passage, ...] = ()  # what a re-ranker was given
    lists: tuple[Retrieval, ...] = ()  # stages given by hand, in the order they happened
    result: Retrieval | None = None  # of a search block: its outermost list
    score_kind: ScoreKind = "unknown"
    ranked: bool = True
    error: str | None = None
    ms: float | None = None
    ended: float | None = None  # perf_counter; None: it never ended (cancelled)
    children: list[Frame] = field(default_factory=list)
    started: float = field(default_factory=time.time)
    begun: float = field(default_factory=time.perf_counter)
    seq: int = field(default_factory=lambda: next(_clock))

    def ancestors(self) -> Iterator[Frame]:
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.parent

    def close(self, passages: tuple[Passage, ...] = (), error: BaseException | None = None) -> None:
        if self.ended is not None:
            return
        self.passages, self.ended = passages, time.perf_counter()
        self.ms = (self.ended - self.begun) * 1000 if self.ms is None else self.ms
        if error is not None:
            self.error = describe(error)


class Log:
    """Everything seen in one trace. Threads append to it; nothing is interpreted before the trace has ended."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.closed = False
        self.outer: Log | None = None  # the trace that was open around this one
        self.opened_in: UUID | None = None  # the run that it was opened in
        self.left_early = False  # the block that held it was closed from outside
        self.by_context = False  # something was given to it because the context said so, and nothing else did
        self.out_of_order = False  # another trace of the same context was opened in it and outlived it
        self.frames: list[Frame] = []  # the roots
        self.runs: dict[UUID, Run] = {}
        self.prompts: list[Prompt] = []
        self.outputs: list[tuple[str, Any]] = []  # outputs of root runs: (kind, value)
        self.failed_tools: list[tuple[str, str]] = []  # (name, error)
        self.usage: dict[str, float] = {}
        self.lock = threading.Lock()

    def clear(self) -> None:
        """Lets go of the app's own objects, once they have been read."""
        self.frames, self.prompts, self.outputs, self.runs = [], [], [], {}

    def lineage(self, run_id: UUID | None) -> Iterator[Run]:
        """The run and those above it, innermost first."""
        while run_id is not None and (run := self.runs.get(run_id)) is not None:
            yield run
            run_id = run.parent

    def roots(self) -> list[Run]:
        """The runs that no other run of this trace began."""
        return [run for run in self.runs.values() if run.parent not in self.runs]

    def abandon_open(self) -> None:
        """Models and whole chains that still run at the end of their trace were streams that nobody read to the end."""
        for run in self.runs.values():
            if run.ended is None and (run.kind == "llm" or run.parent not in self.runs):
                run.abandoned = True

    def add_usage(self, counts: dict[str, float]) -> None:
        with self.lock:
            for name, count in counts.items():
                self.usage[name] = self.usage.get(name, 0) + count
