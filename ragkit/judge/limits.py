"""How fast a judge may be asked: calls in flight, requests and tokens per minute, one gate for Retry-After."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


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
    async def slot(self, slots: asyncio.Semaphore, tokens: float, stopped: Callable[[], bool]) -> AsyncIterator[None]:
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
