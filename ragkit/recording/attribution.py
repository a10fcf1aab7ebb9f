"""Whose trace is it: told by the run above, the context, or what a root run is asked; else a guess, or an orphan."""

from __future__ import annotations

import sys
import threading
from contextvars import ContextVar
from typing import Any, Protocol
from uuid import UUID

from ragkit.recording.log import Frame, FrameKind, Log
from ragkit.records.trajectory import Stage


class Claims(Protocol):
    """A block over many questions (batch.py), which knows whose a root run is by what it is asked."""

    def claim(self, asked: Any) -> tuple[Log | None, bool]:
        """(log, guessed) of a root run with these inputs."""


# Process-wide on purpose: a callback or a raw thread has to find the trace that it belongs to. Nothing is kept here
# once a trace has ended.
current_log: ContextVar[Log | None] = ContextVar("ragkit_trace", default=None)
current_batch: ContextVar[Claims | None] = ContextVar("ragkit_batch", default=None)
open_frame_var: ContextVar[Frame | None] = ContextVar("ragkit_frame", default=None)
is_bound: ContextVar[bool] = ContextVar("ragkit_bound", default=False)  # the context was carried here on purpose
_live: list[Log] = []
_live_lock = threading.Lock()


def is_live() -> bool:
    """Whether any trace is open in this process. Where none is, watching costs no more than this."""
    return bool(_live)


def go_live(log: Log) -> None:
    """Events may be given to this trace from now on."""
    with _live_lock:
        _live.append(log)


def end(log: Log) -> None:
    """No event is given to this trace any more."""
    with _live_lock:
        log.closed = True
        if log in _live:
            _live.remove(log)


def enter(log: Log) -> None:
    """Makes it the trace of the calling context."""
    log.outer, log.opened_in = _open_one(current_log.get()), ambient_run()
    current_log.set(log)
    open_frame_var.set(None)


def leave(log: Log, frame: Frame | None) -> None:
    """Gives the context back to the trace around it, with the frame that was open there. A trace that is left in
    another context than it was entered in changes nothing there; generators that are read by turns may leave the outer
    one first, and then it is not sure which of the two was meant by what the context alone told."""
    here = current_log.get()
    if here is log:
        current_log.set(_open_one(log.outer))
        open_frame_var.set(frame)
        return
    inside = []
    while here is not None and here is not log:
        inside.append(here)
        here = here.outer
    if here is log and any(one.by_context for one in inside):
        for one in (log, *inside):
            one.out_of_order = True


def _open_one(log: Log | None) -> Log | None:
    while log is not None and log.closed:
        log = log.outer
    return log


def ambient_run() -> UUID | None:
    """The LangChain run that the calling code stands in (a tool, a node, a lambda), where there is one."""
    config_module = sys.modules.get("langchain_core.runnables.config")
    if config_module is None:
        return None
    config = config_module.var_child_runnable_config.get()
    run_id = getattr((config or {}).get("callbacks"), "parent_run_id", None)
    return run_id if isinstance(run_id, UUID) else None


def log_of(run_id: UUID | None) -> Log | None:
    """The live trace in which this run was begun."""
    if run_id is None:
        return None
    with _live_lock:
        for log in _live:
            if run_id in log.runs:
                return log
    return None


def told(parent_run: UUID | None) -> tuple[Log | None, bool]:
    """(log, guessed) by what is known for sure: the run above, or the context. A trace that was opened inside that run
    (an app that traces itself) is nearer than the run."""
    mine = current_log.get()
    if mine is not None and mine.closed:
        mine = None
    by_run = log_of(parent_run)
    if by_run is None or parent_run is None:
        return mine, False
    nearer = mine is not None and mine is not by_run and mine.opened_in is not None
    if nearer and mine is not None and any(run.id == mine.opened_in for run in by_run.lineage(parent_run)):
        return mine, False
    return by_run, by_run.runs[parent_run].guessed


def locate(parent_run: UUID | None, is_list: bool, asked: Any = None) -> tuple[Log | None, bool]:
    """Whose event is this: (log, guessed). `asked` are the inputs of a run that may be a root.

    A raw thread is guessed for the one live trace; with several, or after its own trace has ended, a list is an
    orphan: counted, never mixed."""
    if not _live:
        return None, False
    log, guessed = told(parent_run)
    if log is not None:
        if parent_run not in log.runs and not is_bound.get():
            log.by_context = True
        return log, guessed
    batch = current_batch.get()
    if batch is not None and asked is not None:
        log, guessed = batch.claim(asked)
        if log is not None:
            return log, guessed
    with _live_lock:
        live = list(_live)
    if current_log.get() is None and len(live) == 1:
        return live[0], True
    if is_list:
        for recorder in {id(log.owner.recorder): log.owner.recorder for log in live}.values():
            recorder.count_orphan()
    return None, False


def open_frame(
    kind: FrameKind,
    name: str,
    query: str,
    stage: Stage | None = None,
    parent_run: UUID | None = None,
    asked: Any = None,
) -> Frame | None:
    """A new frame at its place beneath the frames that are open around it; None outside of any trace."""
    parent_run = parent_run or ambient_run()
    log, guessed = locate(parent_run, is_list=True, asked=asked)
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
