"""One model call until it delivers or is given up: waiting, trying again, asking again. Stores nothing.

Three things are told apart: the server failed (the same request again), the server asked to wait (all calls wait), the
reply is unusable (the judge is asked again, and shown what was wrong with its reply).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from ragkit.errors import JudgeError
from ragkit.judge.calls import (
    CallError,
    Connection,
    ModelReply,
    ModelRequest,
    ParameterRefusedError,
    RateLimitError,
    TransientError,
    UnreachableError,
    UnusableReplyError,
)
from ragkit.judge.faults import TOO_LONG
from ragkit.judge.ledger import Ledger, guess_tokens
from ragkit.judge.limits import Limits, backoff, pause
from ragkit.judge.replies import is_judge_refusal
from ragkit.judge.settings import JudgeSettings

T = TypeVar("T")
Read = Callable[[ModelReply], T]
_MOST_PARAMETERS = 12  # refused one after the other; more is a server that refuses everything
_SMALL_ROOM = 512


@dataclass(frozen=True)
class Asker:
    """All that a call needs of its run. `stopped` is asked before each request and while waiting."""

    connection: Connection
    slots: asyncio.Semaphore
    limits: Limits
    ledger: Ledger
    settings: JudgeSettings
    stopped: Callable[[], JudgeError | None]

    async def ask(self, request: ModelRequest, metric: str, read: Read[T]) -> tuple[ModelReply, T]:
        """The reply that `read` could use, and what it read. Raises CallError, or JudgeError when the run stops."""
        asked_again = 0
        current = request
        while True:
            reply = await self.deliver(current, metric, again=current is not request)
            if reply.refusal:
                raise CallError(f"the judge refused: {reply.refusal[:200]}", raw=reply.text or reply.refusal)
            try:
                return reply, read(reply)
            except UnusableReplyError as error:
                problem = str(error)
            if reply.truncated:
                if current.max_tokens * 2 > self.settings.largest_max_tokens:
                    raise CallError(f"the reply was truncated at {current.max_tokens} tokens", raw=reply.text)
                current = replace(request, max_tokens=current.max_tokens * 2)
                continue
            if "{" not in reply.text and is_judge_refusal(reply.text):
                raise CallError("the judge refused", raw=reply.text)
            if asked_again >= self.settings.reasks:
                raise CallError(f"unusable reply, asked {asked_again + 1} times: {problem}", raw=reply.text)
            asked_again += 1
            current = _again(replace(request, max_tokens=current.max_tokens), reply.text, problem)

    async def deliver(self, request: ModelRequest, metric: str, *, again: bool = False) -> ModelReply:
        """A reply, whatever it says. Raises CallError where the server delivers none, JudgeError to stop the run."""
        failed = timed_out = refused = limited = 0
        waited = 0.0
        while True:
            try:
                return await self._send(request, metric, again=again)
            except ParameterRefusedError as error:
                refused += 1
                if refused > _MOST_PARAMETERS:
                    raise CallError(f"the server refuses one parameter after the other, last: {error}") from error
            except RateLimitError as error:
                delay = error.retry_after
                delay = backoff(limited, self.settings.backoff) if delay is None else delay
                limited += 1
                waited += delay
                if waited > self.settings.rate_limit_wait:
                    limit = f"{self.settings.rate_limit_wait:g} s"
                    raise CallError(f"rate limited for more than {limit}: {error}") from error
                self.limits.gate.shut(delay)
            except TransientError as error:
                failed += 1
                timed_out += error.timed_out
                if failed >= self.settings.attempts or 3 * timed_out >= max(3, self.settings.attempts):
                    kind = UnreachableError if error.unreachable else CallError
                    raise kind(f"{error} ({failed} tries)") from error
                await pause(backoff(failed - 1, self.settings.backoff), self._is_stopped)
            except CallError as error:
                if not (error.reason.startswith(TOO_LONG) and request.max_tokens > _SMALL_ROOM
                        and re.search(r"completion|max_tokens", error.reason)):
                    raise
                request = replace(request, max_tokens=_SMALL_ROOM)  # prompt and room together were too much
            again = True

    async def _send(self, request: ModelRequest, metric: str, *, again: bool) -> ModelReply:
        async with self.limits.slot(self.slots, guess_tokens(request.size), self._is_stopped):
            ticket = await self._admitted(request)
            self.ledger.count("calls", metric)
            if again:
                self.ledger.count("retried", metric)
            try:
                async with asyncio.timeout(self.settings.timeout):
                    reply = await self.connection.send(request)
            except TimeoutError as error:
                self.ledger.settle(ticket, request.size, None)
                raise TransientError(f"no answer within {self.settings.timeout:g} s", timed_out=True) from error
            except BaseException:
                self.ledger.free(ticket)
                raise
            self.ledger.settle(ticket, request.size, reply)
            self._look_at(request, reply)
            return reply

    async def _admitted(self, request: ModelRequest) -> int:
        while True:
            error = self.stopped()
            if error is not None:
                raise error
            ticket = self.ledger.admit(request.size, request.max_tokens)
            if ticket is not None:
                return ticket
            await asyncio.sleep(0.02)  # the budget is held by calls in flight

    def _look_at(self, request: ModelRequest, reply: ModelReply) -> None:
        fewest = sum(len(text) for _, text in request.messages) / 10  # no text has ten characters a token
        if reply.tokens_in is not None and reply.tokens_in < fewest and fewest > 200:
            self.ledger.warnings["the server saw far fewer tokens than were sent: it cuts long prompts silently"] += 1

    def _is_stopped(self) -> bool:
        return self.stopped() is not None


def _again(request: ModelRequest, reply: str, problem: str) -> ModelRequest:
    shown = reply.strip()[:4000]
    turn: tuple[tuple[str, str], ...] = (("assistant", shown),) if shown else ()
    demand = f"That reply cannot be used: {problem}. Reply again with the requested JSON object and nothing else."
    return replace(request, messages=(*request.messages, *turn, ("user", demand)))
