"""The Recorder: opens traces, keeps or writes what they saw, and wraps what callbacks cannot reach."""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ragkit.errors import DataError
from ragkit.recording.attribution import is_live, open_frame, open_frame_var
from ragkit.recording.passages import as_passage, as_passages
from ragkit.recording.trace import Trace
from ragkit.records.questions import Question
from ragkit.records.trajectory import Passage, Retrieval, Stage, Trajectory

if TYPE_CHECKING:
    from ragkit.recording.batch import Traces

F = TypeVar("F", bound=Callable[..., Any])


class Recorder:
    """Watches an app answer questions. With `path` each finished trace is appended to that file and none is kept.

    `orphans` counts the lists that could be given to no trace: made by a thread that carries no context while several
    questions were running, or after their question had ended. `bind` mends it.

    >>> recorder = Recorder()
    >>> with recorder.trace("Who wrote it?") as trace:
    ...     trace.step("author", [("d7", "Ada wrote it.")])
    ...     trace.context([("d7", "Ada wrote it.")])
    ...     trace.answer("Ada")
    >>> trace.trajectory.steps[0].outermost.ids, trace.trajectory.answer
    (('d7',), 'Ada')
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.orphans = 0
        self._kept: list[Trajectory] = []
        self._repeats: dict[str, int] = {}
        self._said: set[str] = set()
        self._undo: dict[int, tuple[Any, Callable[[], None]]] = {}
        self._lock = threading.Lock()

    def trace(self, question: str | Question, repeat: int | None = None) -> Trace:
        """A context manager that watches one question, also around `await`. The id of a bare text is its text_id.

        `repeat` counts the times that a question is asked; by default the next number that this recorder has not
        used for it, so that asking again never writes the same key twice.
        """
        from ragkit.recording.langchain import install_hook

        install_hook()
        trace = Trace(self, question, repeat or 0)
        with self._lock:
            following = self._repeats.get(trace.question.id, 0)
            if repeat is None:
                trace.repeat = following
            elif isinstance(repeat, bool) or not isinstance(repeat, int) or repeat < 0:
                raise DataError(f"trace: expected repeat >= 0, got {repeat!r}")
            self._repeats[trace.question.id] = max(following, trace.repeat + 1)
        return trace

    def traces(self, questions: Sequence[str | Question]) -> Traces:
        """A context manager that watches many questions at once, for an app's own `.batch()`, `.abatch()` or `.map()`:
        one trace a question, each root run given to the question that it asks. Plain functions open a `trace` each."""
        from ragkit.recording.batch import Traces

        return Traces([self.trace(question) for question in questions])

    @property
    def trajectories(self) -> list[Trajectory]:
        """The finished trajectories in the order they ended; empty where they are written to `path` instead."""
        with self._lock:
            return list(self._kept)

    def save(self, path: str | Path) -> None:
        """Writes all kept trajectories to a JSON Lines file. A recorder with a path has already written its own."""
        if self.path is not None:
            raise DataError(f"save: this recorder writes each trace to {self.path} as it ends and keeps none")
        from ragkit.records.files import write_trajectories

        write_trajectories(Path(path), self.trajectories)

    @overload
    def retriever(self, function: F, /) -> F: ...
    @overload
    def retriever(self, /, *, stage: Stage | None = None, name: str | None = None) -> Callable[[F], F]: ...
    def retriever(self, function: Any = None, /, *, stage: Stage | None = None, name: str | None = None) -> Any:
        """Decorates a function, sync or async, that returns a list of passages; its first text argument is the query.

        What it calls (another decorated function, a LangChain retriever) stands beneath it in the same step. With
        stage rerank, filter or fuse a function that is called after a search is kept in the step of that search.
        Without a stage it is told by structure: a plain search retrieves.
        """
        if stage is not None:
            Retrieval(stage)  # an unknown stage is refused here, not after the first question

        def decorate(inner: F) -> F:
            return wrap_function(inner, stage, name or str(getattr(inner, "__name__", "retriever")))

        return decorate if function is None else decorate(function)

    def instrument(self, obj: Any) -> Instrumented:
        """Watches one object: a vector store (direct calls, scores), a document compressor, a CrossEncoder, a raw
        Chroma collection, or a LangChain retriever (the stores and compressors inside it). Twice is harmless.

        Undone by `uninstrument(obj)`, or at the end of `with recorder.instrument(obj):`. DataError for anything else.
        """
        from ragkit.recording.instrument import patch

        with self._lock:
            if id(obj) not in self._undo:
                self._undo[id(obj)] = (obj, patch(obj))
        return Instrumented(self, obj)

    def uninstrument(self, obj: Any) -> None:
        """Gives the object its own methods back; nothing happens where it was not instrumented."""
        with self._lock:
            _, undo = self._undo.pop(id(obj), (None, None))
        if undo is not None:
            undo()

    def bind(self, function: F) -> F:
        """Carries the trace of the calling code into a raw thread: `Thread(target=recorder.bind(work))`,
        `pool.submit(recorder.bind(work), …)`, and into a generator that is read by turns: `recorder.bind(app.stream)`.
        Sync or async; outside of any trace the function comes back as it is."""
        from ragkit.recording.binding import bind

        return bind(function)

    def keep(self, trajectory: Trajectory) -> None:
        """Takes a finished trajectory in: into memory, or to the end of the file."""
        with self._lock:
            if self.path is None:
                self._kept.append(trajectory)
                return
            from ragkit.records.files import append_trajectory

            append_trajectory(self.path, trajectory)

    def say(self, text: str) -> None:
        """A Python warning, once per recorder and text, at the line of the app (its `with` block, where one ends)."""
        with self._lock:
            known = text in self._said
            self._said.add(text)
        if not known:
            level, frame = 1, inspect.currentframe()
            while frame is not None and str(frame.f_globals.get("__name__")).startswith("ragkit."):
                level, frame = level + 1, frame.f_back
            warnings.warn(text, stacklevel=max(1, level - 1) if frame is None else level)

    def count_orphan(self) -> None:
        """One more list that belongs to no trace for sure."""
        with self._lock:
            self.orphans += 1
        self.say(
            "a search was left out (recorder.orphans counts them): it ran after its question had ended, or in a thread "
            "that does not say to which of several questions it belongs; mend the latter with recorder.bind(function)"
        )


class Instrumented:
    """What `Recorder.instrument` gives back: a context manager whose end undoes it."""

    def __init__(self, recorder: Recorder, obj: Any) -> None:
        self._recorder = recorder
        self._obj = obj

    def __enter__(self) -> Any:
        return self._obj

    def __exit__(self, *error: object) -> None:
        self._recorder.uninstrument(self._obj)


def wrap_function(inner: F, stage: Stage | None, name: str) -> F:
    """The function with a frame around each call."""

    def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        values = [*args, *kwargs.values()]
        frame = open_frame("function", name, next((value for value in values if isinstance(value, str)), ""), stage)
        if frame is not None:
            frame.inputs = next((found for value in values if (found := _given_passages(value))), ())
        return frame

    if inspect.iscoroutinefunction(inner):

        @functools.wraps(inner)
        async def watched_async(*args: Any, **kwargs: Any) -> Any:
            if not is_live():
                return await inner(*args, **kwargs)
            with framed(begin(args, kwargs)) as end:
                return end(await inner(*args, **kwargs))

        return watched_async  # type: ignore[return-value]

    @functools.wraps(inner)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if not is_live():
            return inner(*args, **kwargs)
        with framed(begin(args, kwargs)) as end:
            return end(inner(*args, **kwargs))

    return watched  # type: ignore[return-value]


@contextmanager
def framed(frame: Any, read: Callable[[Any], tuple[Passage, ...]] = as_passages) -> Iterator[Callable[[Any], Any]]:
    """Runs a block inside the frame; the block passes its result through the function it is given. A result that
    cannot be read as passages is the app's own business: the app gets it, the step says why it holds no list."""
    if frame is None:
        yield lambda result: result
        return
    token = open_frame_var.set(frame)

    def end(result: Any) -> Any:
        try:
            if hasattr(result, "__next__"):
                raise DataError("expected a list of passages, got an iterator, which only the app may read")
            frame.close(read(result))
        except DataError as error:
            frame.close(error=error)
        return result

    try:
        yield end
    except BaseException as error:
        frame.close(error=error)
        raise
    finally:
        open_frame_var.reset(token)


def _given_passages(value: Any) -> tuple[Passage, ...]:
    if not isinstance(value, list | tuple) or not value or isinstance(value[0], str):
        return ()
    try:
        return tuple(as_passage(item) for item in value)
    except DataError:
        return ()
