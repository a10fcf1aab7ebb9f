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
    Failure,
    ModelReply,
    ModelRequest,
    ParameterRefusedError,
    RateLimitError,
    TransientError,
    UnusableReplyError,
)
from ragkit.judge.faults import TOO_LONG
from ragkit.judge.ledger import Ledger, guess_tokens
from ragkit.judge.limits import Limits, Slots, backoff, pause
from ragkit.judge.replies import is_judge_refusal
from ragkit.judge.settings import JudgeSettings

T = TypeVar("T")
Read = Callable[[ModelReply], T]
_MOST_PARAMETERS = 12  # refused one after the other; more is a server that refuses everything
_SMALL_ROOM = 512
_QUOTED = re.compile(r"(?:, got|:) ['\"].{6,}", re.DOTALL)


class Room:
    """How many tokens of room a reply gets at first: more, once many ran out of it, so that not each is paid twice."""

    def __init__(self, first: int, largest: int) -> None:
        self.first = first
        self._largest = largest
        self._seen = self._truncated = 0

    def saw(self, room: int, truncated: bool) -> None:
        """One reply that had so much room."""
        if room < self.first:
            return
        self._seen += 1
        self._truncated += truncated
        if self._truncated >= 3 and 4 * self._truncated >= self._seen and 2 * self.first <= self._largest:
            self.first *= 2
            self._seen = self._truncated = 0


@dataclass(frozen=True)
class Asker:
    """All that a call needs of its run. `stopped` is asked before each request and while waiting."""

    connection: Connection
    slots: Slots
    limits: Limits
    ledger: Ledger
    settings: JudgeSettings
    stopped: Callable[[], JudgeError | None]
    room: Room

    async def ask(self, request: ModelRequest, metric: str, read: Read[T],
                  first: Callable[[], None] | None = None) -> tuple[ModelReply, T]:
        """The reply that `read` could use, and what it read. Raises CallError, or JudgeError when the run stops.

        `first` is called once, when the first request is about to be sent; what it raises is raised here.
        """
        asked_again = requests = 0
        current = request
        while True:
            reply = await self.deliver(current, metric, again=requests > 0, first=first if requests == 0 else None)
            requests += 1
            if reply.refusal:
                raise CallError(f"the judge refused: {reply.refusal[:200]}", reply.text or reply.refusal,
                                "refused by the judge")
            try:
                return reply, read(reply)
            except UnusableReplyError as error:
                problem = str(error)
            if reply.truncated:
                if current.max_tokens * 2 > self.settings.largest_max_tokens:
                    raise CallError(f"the reply was truncated at {current.max_tokens} tokens", reply.text, "truncated")
                current = replace(request, max_tokens=max(current.max_tokens * 2, self.room.first))
                continue
            if "{" not in reply.text and is_judge_refusal(reply.text):
                raise CallError("the judge refused", reply.text, "refused by the judge")
            if asked_again >= self.settings.reasks:
                times = f"{asked_again + 1} time{'s' if asked_again else ''}"
                raise CallError(f"unusable reply, asked {times}: {problem}", reply.text, "unusable reply")
            asked_again += 1
            current = _again(replace(request, max_tokens=current.max_tokens), reply.text, problem)

    async def deliver(self, request: ModelRequest, metric: str, *, again: bool = False,
                      first: Callable[[], None] | None = None) -> ModelReply:
        """A reply, whatever it says. Raises CallError where the server delivers none, JudgeError to stop the run."""
        failed = timed_out = refused = limited = 0
        waited = 0.0
        while True:
            try:
                return await self._send(request, metric, again=again, first=None if again else first)
            except ParameterRefusedError as error:
                refused += 1
                if refused > _MOST_PARAMETERS:
                    raise CallError(f"the server refuses one parameter after the other, last: {error}",
                                    kind="request rejected") from error
            except RateLimitError as error:
                delay = error.retry_after or backoff(limited, self.settings.backoff)
                limited += 1
                waited += delay
                if waited > self.settings.rate_limit_wait:
                    raise JudgeError(f"judge: {error}; it asks to wait for longer than "
                                     f"{self.settings.rate_limit_wait:g} s (rate_limit_wait), so the run was stopped; "
                                     "finished judgements are kept, run the same command again later") from error
                self.limits.gate.shut(delay)
            except TransientError as error:
                failed += 1
                timed_out += error.timed_out
                if failed >= self.settings.attempts or 2 * timed_out >= max(2, self.settings.attempts):
                    kind: Failure = ("unreachable" if error.unreachable else "timed out" if error.timed_out
                                     else "server error")
                    raise CallError(f"{error} ({failed} {'try' if failed == 1 else 'tries'})", kind=kind) from error
                await pause(backoff(failed - 1, self.settings.backoff), self._is_stopped)
            except CallError as error:
                if not (error.reason.startswith(TOO_LONG) and request.max_tokens > _SMALL_ROOM
                        and re.search(r"completion|max_tokens", error.reason)):
                    raise
                request = replace(request, max_tokens=_SMALL_ROOM)  # prompt and room together were too much
            again = True

    async def _send(self, request: ModelRequest, metric: str, *, again: bool,
                    first: Callable[[], None] | None) -> ModelReply:
        async with self.limits.slot(self.slots, guess_tokens(request.size), self._is_stopped):
            if first is not None:
                first()
            if self.settings.max_tokens <= request.max_tokens < self.room.first:
                request = replace(request, max_tokens=self.room.first)
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
            except TransientError as error:
                if error.answered or error.unreachable:
                    self.ledger.free(ticket)
                else:  # lost on the way: a budget must hold even where it was worked on
                    self.ledger.settle(ticket, request.size, None)
                raise
            except BaseException:
                self.ledger.free(ticket)
                raise
            self.ledger.settle(ticket, request.size, reply)
            self.room.saw(request.max_tokens, reply.truncated)
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
    fault = _QUOTED.sub("", problem)  # what it copied from a passage stays its own words, and is none of ours
    demand = f"That reply cannot be used: {fault}. Reply again with the requested JSON object and nothing else."
    return replace(request, messages=(*request.messages, *turn, ("user", demand)))
