"""The one path of every model call: store, single flight, limits, retries, budget, ledger. Knows no metric's prompts.

A gateway may be used from any event loop, again and again: what is bound to a loop lives in a `running()` block.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ragkit.errors import BudgetExceeded, JudgeError
from ragkit.judge.attempts import Asker, Room
from ragkit.judge.calls import (
    SYSTEM_MESSAGE,
    Backend,
    CallError,
    ModelReply,
    ModelRequest,
    TransientError,
    UnusableReplyError,
)
from ragkit.judge.keys import CallKeys, digest
from ragkit.judge.limits import Limits, Slots, pause
from ragkit.judge.prices import open_account
from ragkit.judge.replies import Schema, read_reply
from ragkit.judge.settings import JudgeSettings
from ragkit.judge.store import JudgementStore

Check = Callable[[Any], None]
"""Raises UnusableReplyError where a read reply is no answer to what was asked (a wrong count of verdicts, say)."""

_LOST_AFTER = 8  # calls in a row that could not reach the server at all, or had no answer in time
_LOOK_AGAIN = 0.1  # seconds until it is looked whether another process has its answer
_ALIVE = 5.0  # seconds between two signs of life for the claims


@dataclass(frozen=True, slots=True)
class Reply:
    """A usable reply: `data` fits the schema. `source`: asked now, found in the store, or shared with another call."""

    data: Any
    text: str
    source: Literal["asked", "stored", "pooled"]


@dataclass
class _Run:
    """What belongs to one event loop."""

    asker: Asker
    stack: AsyncExitStack
    alive: asyncio.Task[None]
    flights: dict[str, asyncio.Task[Reply]] = field(default_factory=dict)
    users: int = 0

    @property
    def slots(self) -> Slots:
        return self.asker.slots


class _ElsewhereError(Exception):
    """Another process asks this very question now, or has just got its answer."""


class Gateway:
    """Asks one model. `ledger` says what it cost; `stopped` is the error that ended the run, if one did.

    Keys of stored replies hold the model, the endpoint, the parameters as asked, both messages, the schema and the
    replicate number, so that nothing is answered by another model, and "ask three times" asks three times.
    """

    def __init__(self, backend: Backend, settings: JudgeSettings | None = None, fingerprint: str | None = None) -> None:
        self.backend = backend
        self.settings = settings or JudgeSettings()
        self.store = JudgementStore(self.settings.store)
        self.account = open_account(self.settings, backend.name, backend.where, self.store.keep_spending)
        self.limits = Limits(self.settings.rpm, self.settings.tpm)
        self.room = Room(self.settings.max_tokens, self.settings.largest_max_tokens)
        self.stopped: JudgeError | None = None
        self._keys = CallKeys(fingerprint or digest({"format": 1, "system": SYSTEM_MESSAGE, **backend.identity}))
        self._runs: dict[asyncio.AbstractEventLoop, _Run] = {}
        self._lost = 0
        self._answered = False

    @property
    def name(self) -> str:
        """What the report calls the judge: its model."""
        return self.backend.name

    @property
    def fingerprint(self) -> str:
        """A hash of all that makes this judge's verdicts its own: model, endpoint, parameters, system message."""
        return self._keys.identity

    def call_key(self, prompt: str, schema: Schema | None, replicate: int) -> str:
        return self._keys.of(prompt, schema, replicate)

    async def complete(self, prompt: str, schema: Schema | None, *, metric: str = "other", replicate: int = 0,
                       check: Check | None = None) -> Reply:
        """The model's answer to a prompt, as JSON that fits `schema` (or as text where that is None).

        Raises CallError where the model does not deliver, JudgeError (BudgetExceeded) where the run has to stop.
        """
        key = self.call_key(prompt, schema, replicate)

        def read(reply: ModelReply) -> Any:
            if schema is None:
                return reply.text
            data = read_reply(reply.text, schema)
            if check is not None:
                check(data)
            return data

        stored = self._from_store(key, read)
        if stored is not None:
            self.account.count("stored", metric)
            return stored
        if self.stopped is not None:
            raise self.stopped
        if self.settings.frozen:
            raise CallError("frozen: not in the store, and no new call is allowed", kind="not in the store")
        async with self.running() as run:
            flight = run.flights.get(key)
            if flight is None:
                request = ModelRequest((("system", SYSTEM_MESSAGE), ("user", prompt)), schema, self.settings.max_tokens)
                flight = asyncio.create_task(self._fly(run, key, request, metric, read))
                run.flights[key] = flight
                flight.add_done_callback(lambda _: run.flights.pop(key, None))
                return await _result(flight)
            reply = await _result(flight)
            self.account.count("pooled", metric)
            return Reply(reply.data, reply.text, "pooled")

    def _from_store(self, key: str, read: Callable[[ModelReply], Any]) -> Reply | None:
        found = self.store.reply(key)
        if found is None:
            return None
        try:
            return Reply(read(found), found.text, "stored")
        except UnusableReplyError:  # kept by a version that was content with less
            return None

    async def _fly(self, run: _Run, key: str, request: ModelRequest, metric: str,
                   read: Callable[[ModelReply], Any]) -> Reply:
        try:
            while True:
                try:
                    reply, data = await run.asker.ask(request, metric, read, lambda: self._claim(key, read))
                    break
                except _ElsewhereError:
                    stored = self._from_store(key, read)
                    if stored is not None:
                        self.account.count("stored", metric)
                        return stored
                    await pause(_LOOK_AGAIN, lambda: self.stopped is not None)
            self._lost, self._answered = 0, True
            if not self.store.keep_reply(key, self.name, metric, reply):
                stored = self._from_store(key, read)
                if stored is not None:  # both were asked: one answer for both
                    return replace(stored, source="asked")
                self.store.keep_reply(key, self.name, metric, reply, replace=True)
        except JudgeError as error:
            self.stopped = self.stopped or error
            raise
        except CallError as error:
            self.account.count("failed", metric)
            self.account.failures[error.kind] += 1
            self._note_lost(error)
            raise
        finally:
            self.store.claims.release(key)
        return Reply(data, reply.text, "asked")

    def _claim(self, key: str, read: Callable[[ModelReply], Any]) -> None:
        """Right before sending: is the question ours to ask? Raises _ElsewhereError where another process has it."""
        if self.store.path is None:
            return
        if not self.store.claims.take(key) or self._from_store(key, read) is not None:
            raise _ElsewhereError

    def _note_lost(self, error: CallError) -> None:
        """A server that is gone, or never in time, is not asked a thousand times."""
        if error.kind not in ("unreachable", "timed out"):
            return
        self._lost += 1
        if self._lost >= _LOST_AFTER and self.stopped is None:
            mend = "start the server" if error.kind == "unreachable" else "give it more time or fewer calls at a time"
            self.stopped = JudgeError(f"judge {self.name}: {error.reason}; {self._lost} calls in a row were lost, so "
                                      f"the run was stopped; finished judgements are kept, {mend} and run the same "
                                      "command again")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[_Run]:
        """Keeps the connection open for the calls inside. Blocks may nest and overlap; the last one closes it."""
        loop = asyncio.get_running_loop()
        run = self._runs.get(loop)
        if run is None:
            stack = AsyncExitStack()
            connection = await stack.enter_async_context(self.backend.connect())
            slots = Slots(self.settings.concurrency)
            run = _Run(Asker(connection, slots, self.limits, self.account, self.settings, lambda: self.stopped,
                             self.room), stack, alive=loop.create_task(self._stay_alive()))
            opened, run = run, self._runs.setdefault(loop, run)
            if run is not opened:  # another call opened one while this one waited
                opened.alive.cancel()
                await stack.aclose()
        run.users += 1
        try:
            yield run
        finally:
            run.users -= 1
            if run.users == 0:
                self._runs.pop(loop, None)
                run.alive.cancel()
                for flight in list(run.flights.values()):
                    flight.cancel()
                await run.stack.aclose()

    async def _stay_alive(self) -> None:
        while True:
            await asyncio.sleep(_ALIVE)
            self.store.claims.refresh()

    async def check(self, *, ask: bool = True) -> None:
        """Before any work: does the judge answer? JudgeError says what, where, and how to mend it.

        An endpoint's list of models is looked at first, which costs nothing; where that leaves a doubt, one tiny
        request is made (and counted), unless `ask` is False. Nothing is sent where no new call is allowed (`frozen`).
        """
        if self.settings.frozen or self._answered:
            return
        request = ModelRequest((("user", "Reply with the digit 1."),), None, 256)
        try:
            async with self.running() as run:
                if await _probed(run.asker) or not ask:
                    return
                await replace(run.asker, settings=replace(self.settings, attempts=2)).deliver(request, "check")
        except BudgetExceeded as error:  # whoever judges next is told, and what is judged already is shown
            self.stopped = self.stopped or error
            return
        except CallError as error:
            hint = ("is the server running, and is the URL right?" if error.kind == "unreachable"
                    else "nothing was judged; try again, or name another judge")
            raise JudgeError(f"judge {self.name} at {self.backend.where}: {error.reason}; {hint}") from error
        self._answered = True

    def close(self) -> None:
        """Closes the store. Connections are closed by the runs that opened them."""
        self.store.close()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def ledger(self) -> dict[str, Any]:
        """What was asked, found and paid, with the judge's name and address: summary["judge"]. No key is in it."""
        made = {"judge": self.name, "endpoint": self.backend.where, "fingerprint": self.fingerprint[:16],
                **self.account.as_dict(), "dropped_parameters": list(self.backend.dropped())}
        return {**made, "stopped": None if self.stopped is None else str(self.stopped)}


async def _probed(asker: Asker) -> bool:
    """Two tries to look the model up; a server that is slow to say is asked properly."""
    for last in (False, True):
        try:
            async with asyncio.timeout(min(asker.settings.timeout, 20.0)):
                return await asker.connection.probe()
        except TimeoutError:
            return False
        except TransientError as error:
            if last and error.unreachable:
                raise CallError(str(error), kind="unreachable") from error
        await asyncio.sleep(asker.settings.backoff)
    return False


async def _result(flight: asyncio.Task[Reply]) -> Reply:
    """A shared flight's result; one waiter that is cancelled does not take the others' answer away."""
    return await asyncio.shield(flight)
