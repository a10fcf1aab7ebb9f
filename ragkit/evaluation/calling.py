"""How an app is called so that it cannot hold up or end the run: blocking ones in threads, async ones on one loop.

Both kinds of thread are daemons: an app that hangs must not keep the process from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Callable, Coroutine
from typing import Any

Call = Callable[[Any], Coroutine[Any, Any, Any]]


def call_blocking(function: Callable[[Any], Any]) -> Call:
    """An awaitable form of a blocking function; what it returns is awaited where it is awaitable itself."""

    async def run(given: Any) -> Any:
        relay = _Relay()
        context = contextvars.copy_context()
        threading.Thread(target=relay.settle_with, args=(lambda: context.run(function, given),), name="ragkit-app",
                         daemon=True).start()
        result = await relay.done
        return await call_async(lambda _: result)(None) if inspect.isawaitable(result) else result

    return run


def call_async(function: Callable[[Any], Any]) -> Call:
    """An awaitable form of an async function, run on the apps' own event loop: one that blocks it can be given up."""

    async def run(given: Any) -> Any:
        relay, loop = _Relay(), _app_loop()
        context = contextvars.copy_context()
        tasks: list[asyncio.Task[None]] = []

        async def work() -> None:
            try:
                value = await function(given)
            except BaseException as error:
                relay.fail(error)
            else:
                relay.succeed(value)

        loop.call_soon_threadsafe(lambda: tasks.append(loop.create_task(work(), context=context)))
        try:
            return await relay.done
        except asyncio.CancelledError:
            loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
            raise

    return run


class AppExit(Exception):  # noqa: N818 -- it says what the app did
    """The app raised what would end the process (SystemExit, KeyboardInterrupt), or gave up its own task."""


class _Relay:
    """Brings an outcome from another thread to the loop that waits for it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[Any] = self._loop.create_future()

    def settle_with(self, work: Callable[[], Any]) -> None:
        try:
            value = work()
        except BaseException as error:
            self.fail(error)
        else:
            self.succeed(value)

    def succeed(self, value: Any) -> None:
        self._later(self.done.set_result, value)

    def fail(self, error: BaseException) -> None:
        plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
        shown = error if plain else AppExit(f"the app raised {type(error).__name__}: {error}")
        self._later(self.done.set_exception, shown)

    def _later(self, setter: Callable[[Any], None], value: Any) -> None:
        def settle() -> None:
            if not self.done.done():
                setter(value)

        with contextlib.suppress(RuntimeError):  # the loop is gone: the run was given up
            self._loop.call_soon_threadsafe(settle)


_lock = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []


def _app_loop() -> asyncio.AbstractEventLoop:
    """The loop of all async apps of this process, started at the first call: an app's clients stay on one loop."""
    with _lock:
        if not _loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="ragkit-app-loop", daemon=True).start()
            _loops.append(loop)
        return _loops[0]
