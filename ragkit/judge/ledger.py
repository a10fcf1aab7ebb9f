"""What judging cost: calls, tokens, money, and the hard limits on them. Knows no price but the one it is given."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ragkit.errors import BudgetExceeded
from ragkit.judge.calls import ModelReply

_BYTES_PER_TOKEN = 3.0  # a cautious guess before a call: English has 4 or more, most scripts about 3


def guess_tokens(size: int) -> float:
    """Tokens of so many UTF-8 bytes, rather too many than too few."""
    return size / _BYTES_PER_TOKEN


class Ledger:
    """Counts what was spent. A request is admitted before it is sent, so that neither limit can be overrun.

    `calls` are requests sent, `retried` those among them that repeat one, `stored` answers from the store, `pooled`
    answers shared with a call in flight, `failed` calls that delivered nothing in the end. `price` is money per
    million tokens, in and out; without it the cost is None (unknown), never 0.
    """

    def __init__(self, price: tuple[float, float] | None = None, max_calls: int | None = None,
                 budget: float | None = None) -> None:
        self.price = price
        self.max_calls = max_calls
        self.budget = budget
        self.counts: Counter[str] = Counter()
        self.by_metric: dict[str, Counter[str]] = {}
        self.failures: Counter[str] = Counter()
        self.warnings: Counter[str] = Counter()
        self.tokens_in = 0
        self.tokens_out = 0
        self.spent = 0.0
        self.unmeasured = 0
        self._reserved: dict[int, float] = {}
        self._tickets = 0

    def count(self, what: str, metric: str) -> None:
        self.counts[what] += 1
        self.by_metric.setdefault(metric, Counter())[what] += 1

    def cost(self, tokens_in: float, tokens_out: float) -> float:
        return 0.0 if self.price is None else (tokens_in * self.price[0] + tokens_out * self.price[1]) / 1e6

    def admit(self, size: int, max_tokens: int) -> int | None:
        """A ticket for a request of so many bytes; None where calls in flight must come back first.

        Raises BudgetExceeded where the limit would be passed even if they all cost nothing more.
        """
        if self.max_calls is not None and self.counts["calls"] >= self.max_calls:
            raise BudgetExceeded(f"judge: the limit of {self.max_calls} calls is reached; all finished judgements are "
                                 "kept, the same command with a higher limit goes on from here")
        worst = self.cost(guess_tokens(size), max_tokens)
        if self.budget is not None:
            if self.spent + worst > self.budget:
                raise BudgetExceeded(f"judge: the budget of {self.budget:g} is reached ({self.spent:.4f} spent, the "
                                     f"next call may cost {worst:.4f}); all finished judgements are kept, the same "
                                     "command with a larger budget goes on from here")
            if self.spent + sum(self._reserved.values()) + worst > self.budget:
                return None
        self._tickets += 1
        self._reserved[self._tickets] = worst
        return self._tickets

    def settle(self, ticket: int, size: int, reply: ModelReply | None) -> None:
        """The request came back. Without a reply what it may have cost is not known: the budget takes the worst."""
        worst = self._reserved.pop(ticket)
        if reply is None:
            self.spent += worst if self.budget is not None else 0.0
            return
        if reply.tokens_in is None or reply.tokens_out is None:
            self.unmeasured += 1
        tokens_in = guess_tokens(size) if reply.tokens_in is None else reply.tokens_in
        tokens_out = guess_tokens(len(reply.text)) if reply.tokens_out is None else reply.tokens_out
        self.tokens_in += round(tokens_in)
        self.tokens_out += round(tokens_out)
        self.spent += self.cost(tokens_in, tokens_out)

    def free(self, ticket: int) -> None:
        """The request cost nothing: the server refused it."""
        self._reserved.pop(ticket)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for summary.json. `cost` and `price` are None where no price is known."""
        names = ("calls", "stored", "pooled", "retried", "failed")
        found: dict[str, Any] = {name: self.counts[name] for name in names}
        found["tokens"] = {"input": self.tokens_in, "output": self.tokens_out, "unmeasured_calls": self.unmeasured}
        found["price"] = None if self.price is None else {"input": self.price[0], "output": self.price[1]}
        found["cost"] = None if self.price is None else round(self.spent, 6)
        found["metrics"] = {m: {n: row[n] for n in names if row[n]} for m, row in sorted(self.by_metric.items())}
        found["failures"] = dict(self.failures)
        found["warnings"] = dict(self.warnings)
        return found
