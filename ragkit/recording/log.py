"""The raw log of one trace: frames (lists as they were made, nested) and runs, and whose trace an event belongs to."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from ragkit.errors import describe
from ragkit.records.trajectory import Passage, Retrieval, ScoreKind, Stage

FrameKind = Literal["retriever", "store", "function", "search", "step", "node", "tool", "compressor", "cross-encoder"]

# Process-wide on purpose: a callback or a raw thread has to find the trace that it belongs to. Nothing is kept here
# once a trace has ended.
current_log: ContextVar[Log | None] = ContextVar("ragkit_trace", default=None)
open_frame_var: ContextVar[Frame | None] = ContextVar("ragkit_frame", default=None)
_live: list[Log] = []
_live_lock = threading.Lock()
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
    seq: int = field(default_factory=lambda: next(_clock))


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
        self.opened = next(_clock)
        self.closed = False
        self.frames: list[Frame] = []  # the roots
        self.runs: dict[UUID, Run] = {}
        self.prompts: list[Prompt] = []
        self.outputs: list[tuple[str, Any]] = []  # outputs of root runs: (kind, value)
        self.failed_tools: list[tuple[str, str]] = []  # (name, error)
        self.usage: dict[str, float] = {}
        self.lock = threading.Lock()

    def go_live(self) -> None:
        with _live_lock:
            _live.append(self)

    def end(self) -> None:
        with _live_lock:
            self.closed = True
            if self in _live:
                _live.remove(self)

    def clear(self) -> None:
        """Lets go of the app's own objects, once they have been read."""
        self.frames, self.prompts, self.outputs, self.runs = [], [], [], {}

    def lineage(self, run_id: UUID | None) -> Iterator[Run]:
        """The run and those above it, innermost first."""
        while run_id is not None and (run := self.runs.get(run_id)) is not None:
            yield run
            run_id = run.parent

    def add_usage(self, counts: dict[str, float]) -> None:
        with self.lock:
            for name, count in counts.items():
                self.usage[name] = self.usage.get(name, 0) + count


def ambient_run() -> UUID | None:
    """The LangChain run that the calling code stands in (a tool, a node, a lambda), where there is one."""
    config_module = sys.modules.get("langchain_core.runnables.config")
    if config_module is None:
        return None
    config = config_module.var_child_runnable_config.get()
    run_id = getattr((config or {}).get("callbacks"), "parent_run_id", None)
    return run_id if isinstance(run_id, UUID) else None


def log_of(run_id: UUID) -> Log | None:
    """The live trace in which this run was begun."""
    with _live_lock:
        return next((log for log in _live if run_id in log.runs), None)


def locate(parent_run: UUID | None, is_list: bool) -> tuple[Log | None, bool]:
    """Whose event is this: (log, guessed). A known parent run or the contextvar say it; a raw thread is guessed for
    the one live trace; with several, or after its own trace has ended, a list is an orphan: counted, never mixed."""
    with _live_lock:
        live = list(_live)
    if not live:
        return None, False
    mine = current_log.get()
    by_run = None if parent_run is None else log_of(parent_run)
    if by_run is not None and parent_run is not None:
        run = by_run.runs[parent_run]
        # A trace opened inside that run (an app that traces itself) is nearer than the run.
        if mine is None or mine.closed or mine.opened <= run.seq:
            return by_run, run.guessed
    if mine is not None and not mine.closed:
        return mine, False
    if mine is None and len(live) == 1:
        return live[0], True
    if is_list:
        for recorder in {id(log.owner.recorder): log.owner.recorder for log in live}.values():
            recorder.count_orphan()
    return None, False


def open_frame(
    kind: FrameKind, name: str, query: str, stage: Stage | None = None, parent_run: UUID | None = None
) -> Frame | None:
    """A new frame at its place beneath the frames that are open around it; None outside of any trace."""
    parent_run = parent_run or ambient_run()
    log, guessed = locate(parent_run, is_list=True)
    if log is None:
        return None
    above = next((run.frame for run in log.lineage(parent_run) if run.frame is not None), None)
    around = open_frame_var.get()
    while around is not None and (around.log is not log or around.ended is not None):
        around = around.parent
    # A retriever may call another without handing its callbacks on: then only the context knows.
    parent = around if around is not None and (above is None or above in around.ancestors()) else above
    frame = Frame(log, kind, name, query, stage, parent, parent_run, guessed)
    with log.lock:
        (log.frames if parent is None else parent.children).append(frame)
    return frame
