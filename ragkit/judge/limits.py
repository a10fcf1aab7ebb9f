"""How fast a judge may be asked: calls in flight, requests and tokens per minute, one gate for Retry-After."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any

from ragkit.errors import JudgeError


class Pace:
    """So much a minute, with a second's worth at once. None is no limit.

    A cost larger than what is left is taken on credit, and the next ones wait longer: no request is ever too large.
    """

    def __init__(self, per_minute: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = None if per_minute is None else max(per_minute, 1e-9) / 60
        self._clock = clock
        self._level = max(1.0, self._rate) if self._rate else 0.0
        self._room = self._level
        self._last = clock()

    def take(self, cost: float) -> float:
        """Takes `cost` and returns the seconds to wait before using it."""
        if self._rate is None:
            return 0.0
        now = self._clock()
        self._level = min(self._room, self._level + (now - self._last) * self._rate)
        self._last = now
        wait = max(0.0, (min(cost, self._room) - self._level) / self._rate)
        self._level -= cost
        return wait


class Gate:
    """Shut for all calls while the server asked to wait; a little spread when it opens, so that not all run at once."""

    def __init__(self) -> None:
        self._until = 0.0
        self._spread = 0.0

    def shut(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        if until > self._until:
            self._until, self._spread = until, min(1.0, 0.25 * seconds)

    def wait(self) -> float:
        left = self._until - time.monotonic()
        return left + random.uniform(0.0, self._spread) if left > 0 else 0.0


class Slots:
    """So many calls in flight, first come, first served, and the work that makes the calls, begun as slots come free.

    Belongs to one event loop.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._free = asyncio.Semaphore(count)
        self._waiting = 0
        self._few = asyncio.Event()
        self._few.set()

    async def __aenter__(self) -> None:
        self._queue(1)
        try:
            await self._free.acquire()
        finally:
            self._queue(-1)

    async def __aexit__(self, *error: object) -> None:
        self._free.release()

    def _queue(self, change: int) -> None:
        self._waiting += change
        if self._waiting <= self._count // 8:  # enough that a free slot never waits for the work behind it
            self._few.set()
        else:
            self._few.clear()

    async def in_turn(self, jobs: Iterable[Coroutine[Any, Any, None]]) -> None:
        """Does the jobs, each begun when few calls of those before it still wait for a slot.

        So what was begun first is finished first: an interrupted run has whole judgements, and no call of a chain
        stands in a queue behind the first calls of all the others. All are waited for before an error is raised: one
        that is no JudgeError, if there is one.
        """
        begun, waiting = list[asyncio.Task[None]](), iter(jobs)
        room = asyncio.Semaphore(2 * self._count)  # for jobs that wait for something else than a slot
        try:
            while True:
                await room.acquire()
                await self._few.wait()
                job = next(waiting, None)  # made only now: an interrupted run leaves none behind that was never begun
                if job is None:
                    break
                begun.append(asyncio.create_task(job))
                begun[-1].add_done_callback(lambda _: room.release())
                await asyncio.sleep(0)  # its calls get in line
            outcomes = await asyncio.gather(*begun, return_exceptions=True)
        except BaseException:
            for task in begun:
                task.cancel()
            raise
        errors = [outcome for outcome in outcomes if outcome is not None]
        if errors:
            raise min(errors, key=lambda error: isinstance(error, JudgeError))


class Limits:
    """The limits of one gateway. Times are shared between event loops; the slots belong to one run in one loop."""

    def __init__(self, rpm: float | None = None, tpm: float | None = None) -> None:
        self.requests = Pace(rpm)
        self.tokens = Pace(tpm)
        self.gate = Gate()

    async def ready(self, tokens: float, stopped: Callable[[], bool]) -> None:
        """Waits until a request of about so many tokens may be sent, or the run was stopped."""
        await pause(max(self.requests.take(1), self.tokens.take(tokens)), stopped)
        while (wait := self.gate.wait()) > 0 and not stopped():
            await pause(wait, stopped)

    @asynccontextmanager
    async def slot(self, slots: Slots, tokens: float, stopped: Callable[[], bool]) -> AsyncIterator[None]:
        """One of the calls in flight. The gate is looked at inside too: it may have shut while we waited for a slot."""
        async with slots:
            await self.ready(tokens, stopped)
            yield


async def pause(seconds: float, stopped: Callable[[], bool]) -> None:
    """Sleeps, but not on when the run is stopped."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not stopped():
        await asyncio.sleep(min(left, 0.25))


def backoff(attempt: int, first: float, largest: float = 30.0) -> float:
    """The wait after failed attempt number 0, 1, …: doubled each time, with jitter of a half."""
    return min(largest, first * 2.0**attempt) * random.uniform(0.5, 1.0)
