"""Functions that carry the trace of the code that bound them: into raw threads, and into generators read by turns."""

from __future__ import annotations

import contextvars
import functools
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ragkit.recording.attribution import current_batch, current_log, is_bound, open_frame_var

F = TypeVar("F", bound=Callable[..., Any])


def bind(function: F) -> F:
    """The function inside the calling context; the function itself outside of any trace."""
    if current_log.get() is None and current_batch.get() is None:
        return function
    context = contextvars.copy_context()
    context.run(is_bound.set, True)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def bound_async(*args: Any, **kwargs: Any) -> Any:
            with _inside(context):
                return await function(*args, **kwargs)

        return bound_async  # type: ignore[return-value]

    @functools.wraps(function)
    def bound(*args: Any, **kwargs: Any) -> Any:
        own = context.copy()
        result = own.run(function, *args, **kwargs)
        if inspect.isgenerator(result):
            return _drive(own, result)
        return _drive_async(own, result) if inspect.isasyncgen(result) else result

    return bound  # type: ignore[return-value]


def _drive(context: contextvars.Context, generator: Generator[Any, Any, Any]) -> Iterator[Any]:
    """Each part is made in that context, whoever asks for it."""
    try:
        while True:
            try:
                part = context.run(next, generator)
            except StopIteration:
                return
            yield part
    finally:
        context.run(generator.close)


async def _drive_async(context: contextvars.Context, generator: AsyncGenerator[Any, Any]) -> AsyncIterator[Any]:
    try:
        while True:
            with _inside(context):
                try:
                    part = await anext(generator)
                except StopAsyncIteration:
                    return
            yield part
    finally:
        with _inside(context):
            await generator.aclose()


@contextmanager
def _inside(context: contextvars.Context) -> Iterator[None]:
    """A task has the context that it has; what of it says whose trace this is, is set for as long as it takes."""
    log, frame, batch = context.get(current_log), context.get(open_frame_var), context.get(current_batch)
    tokens = current_log.set(log), open_frame_var.set(frame), current_batch.set(batch), is_bound.set(True)
    try:
        yield
    finally:
        current_log.reset(tokens[0])
        open_frame_var.reset(tokens[1])
        current_batch.reset(tokens[2])
        is_bound.reset(tokens[3])
