"""What a judge did not deliver, for the time of one command: whoever shares it does not ask for the same again."""

from __future__ import annotations

from ragkit.judge.calls import CallError
from ragkit.judge.gateway import Check, Gateway, Reply
from ragkit.judge.replies import Schema


async def ask_once(gateway: Gateway, prompt: str, schema: Schema | None, *, metric: str, replicate: int = 0,
                   check: Check | None = None) -> Reply:
    """As `gateway.complete`, but a call that failed earlier in this command fails at once, for the same reason.

    All variants of an experiment want much the same. What a judge could not answer for the first of them is asked again
    by the next command, not by each of the others.
    """
    lost = gateway.settings.lost
    if lost is None or gateway.settings.frozen:
        return await gateway.complete(prompt, schema, metric=metric, replicate=replicate, check=check)
    key = gateway.call_key(prompt, schema, replicate)
    before = lost.get(key)
    if before is not None:
        gateway.account.count("failed", metric)
        gateway.account.failures[before.kind] += 1
        raise CallError(before.reason, before.raw, before.kind)
    try:
        return await gateway.complete(prompt, schema, metric=metric, replicate=replicate, check=check)
    except CallError as error:
        lost[key] = error
        raise
