"""What judging cost: calls, tokens, money, and the hard limits on them. Knows no price but the one it is given."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ragkit.errors import BudgetExceeded
from ragkit.judge.calls import ModelReply

_BYTES_PER_TOKEN = 3.0  # a cautious guess before a call: English has 4 or more, most scripts about 3


def guess_tokens(size: int) -> float:
    """Tokens of so many UTF-8 bytes, rather too many than too few."""
    return size / _BYTES_PER_TOKEN


class Spending(NamedTuple):
    """What one run spent on one judge. `cost` is None where no price was known."""

    run: str
    judge: str
    started: float
    updated: float
    calls: int
    tokens_in: int
    tokens_out: int
    cost: float | None


Keep = Callable[[Spending], None]


def total(runs: Iterable[Spending]) -> dict[str, Any]:
    """All runs together. Money is None (unknown) where the price of any of their calls was.

    >>> total([Spending("a", "m", 0, 1, 2, 10, 5, 0.5), Spending("b", "m", 2, 3, 1, 4, 1, None)])
    {'runs': 2, 'calls': 3, 'tokens': {'input': 14, 'output': 6}, 'cost': None, 'unpriced_calls': 1}
    """
    rows = list(runs)
    unpriced = sum(row.calls for row in rows if row.cost is None)
    return {"runs": len(rows), "calls": sum(row.calls for row in rows),
            "tokens": {"input": sum(row.tokens_in for row in rows), "output": sum(row.tokens_out for row in rows)},
            "cost": None if unpriced or not rows else round(sum(row.cost or 0.0 for row in rows), 6),
            "unpriced_calls": unpriced}


class Allowance:
    """The hard limits of one command. Judges that share it share the limits: all variants of an experiment do."""

    def __init__(self, max_calls: int | None = None, budget: float | None = None) -> None:
        self.max_calls = max_calls
        self.budget = budget
        self.calls = 0
        self.spent = 0.0
        self._reserved: dict[int, float] = {}

    def admit(self, worst: float) -> int | None:
        """A ticket for a request that may cost so much; None where calls in flight must come back first.

        Raises BudgetExceeded where a limit would be passed even if they all cost nothing more.
        """
        if self.max_calls is not None and self.calls >= self.max_calls:
            calls = f"{self.max_calls} call{'s' if self.max_calls != 1 else ''}"
            raise BudgetExceeded(f"judge: the limit of {calls} is reached; all finished judgements are kept, "
                                 "the same command goes on from here")
        if self.budget is not None:
            if self.spent + worst > self.budget:
                raise BudgetExceeded(f"judge: the budget of {self.budget:g} is reached ({self.spent:.4f} spent, the "
                                     f"next call may cost {worst:.4f}); all finished judgements are kept, the same "
                                     "command goes on from here")
            if self.spent + sum(self._reserved.values()) + worst > self.budget:
                return None
        self.calls += 1
        self._reserved[self.calls] = worst
        return self.calls

    def settle(self, ticket: int, cost: float) -> None:
        self._reserved.pop(ticket)
        self.spent += cost

    def worst(self, ticket: int) -> float:
        """What the request may cost at most."""
        return self._reserved[ticket]


@dataclass
class _Sums:
    tokens_in: int = 0
    tokens_out: int = 0
    unmeasured: int = 0
    spent: float = 0.0


class Ledger:
    """Counts what was spent. A request is admitted before it is sent, so that neither limit can be overrun.

    `calls` are requests sent, `retried` those among them that repeat one, `stored` answers from the store, `pooled`
    answers shared with a call in flight, `failed` calls that delivered nothing in the end. `price` is money per
    million tokens, in and out; without it the cost is None (unknown), never 0. `keep` is told the sums after each
    request, so that they outlive the run.
    """

    def __init__(self, price: tuple[float, float] | None = None, allowance: Allowance | None = None,
                 keep: Keep | None = None) -> None:
        self.price = price
        self.as_of = ""  # of a price from the table
        self.judge = ""
        self.allowance = allowance or Allowance()
        self.counts: Counter[str] = Counter()
        self.by_metric: dict[str, Counter[str]] = {}
        self.failures: Counter[str] = Counter()
        self.warnings: Counter[str] = Counter()
        self._sums = _Sums()
        self._keep = keep
        self._run, self._started = uuid.uuid4().hex, time.time()

    @property
    def spent(self) -> float:
        return self._sums.spent

    def count(self, what: str, metric: str) -> None:
        self.counts[what] += 1
        self.by_metric.setdefault(metric, Counter())[what] += 1

    def cost(self, tokens_in: float, tokens_out: float) -> float:
        return 0.0 if self.price is None else (tokens_in * self.price[0] + tokens_out * self.price[1]) / 1e6

    def admit(self, size: int, max_tokens: int) -> int | None:
        """A ticket for a request of so many bytes; None where calls in flight must come back first.

        Raises BudgetExceeded where a limit is reached.
        """
        return self.allowance.admit(self.cost(guess_tokens(size), max_tokens))

    def settle(self, ticket: int, size: int, reply: ModelReply | None) -> None:
        """The request came back. Without a reply what it may have cost is not known: a budget takes the worst."""
        if reply is None:
            self._settled(ticket, self.allowance.worst(ticket) if self.allowance.budget is not None else 0.0)
            return
        if reply.tokens_in is None or reply.tokens_out is None:
            self._sums.unmeasured += 1
        tokens_in = guess_tokens(size) if reply.tokens_in is None else reply.tokens_in
        length = len(reply.text.encode("utf-8", "replace"))
        tokens_out = guess_tokens(length) if reply.tokens_out is None else reply.tokens_out
        self._sums.tokens_in += round(tokens_in)
        self._sums.tokens_out += round(tokens_out)
        self._settled(ticket, self.cost(tokens_in, tokens_out))

    def free(self, ticket: int) -> None:
        """The request cost nothing: the server refused it."""
        self._settled(ticket, 0.0)

    def _settled(self, ticket: int, cost: float) -> None:
        self.allowance.settle(ticket, cost)
        self._sums.spent += cost
        if self._keep is not None:
            sums, spent = self._sums, None if self.price is None else self._sums.spent
            self._keep(Spending(self._run, self.judge, self._started, time.time(), self.counts["calls"],
                                sums.tokens_in, sums.tokens_out, spent))

    def as_dict(self) -> dict[str, Any]:
        """Plain data for summary.json. `cost` and `price` are None where no price is known."""
        names = ("calls", "stored", "pooled", "retried", "failed")
        sums = self._sums
        found: dict[str, Any] = {name: self.counts[name] for name in names}
        found["tokens"] = {"input": sums.tokens_in, "output": sums.tokens_out, "unmeasured_calls": sums.unmeasured}
        found["price"] = None if self.price is None else {"input": self.price[0], "output": self.price[1],
                                                          **({"as_of": self.as_of} if self.as_of else {})}
        found["cost"] = None if self.price is None else round(sums.spent, 6)
        found["metrics"] = {m: {n: row[n] for n in names if row[n]} for m, row in sorted(self.by_metric.items())}
        found["failures"] = dict(self.failures)
        found["warnings"] = dict(self.warnings)
        return found
