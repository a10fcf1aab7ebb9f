"""Prices: the packaged table, a file of one's own, and money that is unknown rather than 0."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import BudgetExceeded, DataError
from ragkit.judge.calls import ModelReply
from ragkit.judge.ledger import Allowance, Ledger, Spending, total
from ragkit.judge.prices import _packaged, open_account, parse_price, price_of, read_prices
from ragkit.judge.settings import JudgeSettings
from tests.support.judging import quick_judge

OPENAI = "https://api.openai.com/v1"


def test_every_line_of_the_table_is_dated_sourced_and_bound_to_who_asks_it() -> None:
    for model, price in _packaged().items():
        assert 0 < price.input < price.output, model
        assert price.as_of[:4].isdigit() and price.source.startswith("https://") and price.at, model


def test_a_model_is_known_by_its_name_and_its_dated_versions_at_its_own_provider() -> None:
    for name in ("gpt-5-mini", "gpt-5-mini-2025-08-07", "gpt-5-mini-latest"):
        assert price_of(name, OPENAI).input == 0.25, name  # type: ignore[union-attr]
    assert price_of("claude-haiku-4-5-20251001", "ChatAnthropic").output == 5.0  # type: ignore[union-attr]
    assert price_of("models/gemini-2.5-flash", "ChatGoogleGenerativeAI").input == 0.3  # type: ignore[union-attr]
    for name, where in (("gpt-5-mini", "http://127.0.0.1:8000/v1"), ("gpt-5-mini-turbo", OPENAI), ("gpt-9", OPENAI)):
        assert price_of(name, where) is None, "a price that nobody knows is not guessed"


def test_ones_own_file_goes_first_and_a_flag_before_it(tmp_path: Path) -> None:
    own = tmp_path / "prices.yaml"
    own.write_text("gpt-5-mini: [1, 2]\nmine: {input: 0, output: 0, as_of: 2026-11-30}\n", encoding="utf-8")
    assert price_of("gpt-5-mini", OPENAI, own).output == 2.0  # type: ignore[union-attr]
    assert price_of("gpt-4o", OPENAI, own).output == 10.0  # type: ignore[union-attr]
    assert read_prices(own)["mine"].as_of == "2026-11-30"
    free = open_account(JudgeSettings(prices=own, budget=0.0), "mine", "anywhere")
    assert free.price == (0.0, 0.0) and free.as_dict()["cost"] == 0.0, "0 was said, so it is known"
    assert open_account(JudgeSettings(prices=own, price=(3, 4)), "gpt-5-mini", OPENAI).price == (3, 4)
    dated = open_account(JudgeSettings(), "gpt-5-mini", OPENAI).as_dict()
    assert dated["price"] == {"input": 0.25, "output": 2.0, "as_of": "2026-03"}


@pytest.mark.parametrize("text", ["m: [1]", "m: [-1, 2]", "m: [a, 2]", "m: {input: 1}", "m: {input: .inf, output: 1}",
                                  "m: {in: 1, output: 2}", "- m", "m: [true, 2]", "m: [", "m: {as_of: 2026-13-01}",
                                  "[" * 3000, f"m: [1{'0' * 400}, 2]"])
def test_a_wrong_file_is_said_with_its_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"prices\.yaml"):
        read_prices(path)
    with pytest.raises(DataError, match="no such file; expected a file of prices"):
        read_prices(tmp_path / "absent.yaml")


@pytest.mark.parametrize("text", ["", "1", "1,2,3", "a,b", "-1,2", "nan,1"])
def test_a_wrong_price_is_said(text: str) -> None:
    with pytest.raises(DataError, match="price"):
        parse_price(text)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.booleans()), max_size=30), st.integers(0, 60))
def test_judges_with_one_allowance_never_pass_it_together(requests: list[tuple[int, int, bool]], budget: int) -> None:
    allowance = Allowance(max_calls=20, budget=float(budget))
    ledgers = [Ledger((1e6, 1e6), allowance), Ledger((2e6, 2e6), allowance)]
    flights = []
    for place, (tokens_in, tokens_out, early) in enumerate(requests):
        ledger = ledgers[place % 2]
        try:
            ticket = ledger.admit(3 * tokens_in, tokens_out)
        except BudgetExceeded:
            continue
        if ticket is not None:
            flights.append((ledger, ticket, tokens_in, tokens_out))
        if early and flights:
            _land(*flights.pop(0))
    for flight in flights:
        _land(*flight)
    assert allowance.spent == pytest.approx(sum(ledger.spent for ledger in ledgers)) and allowance.spent <= budget
    assert allowance.calls <= 20


def _land(ledger: Ledger, ticket: int, tokens_in: int, tokens_out: int) -> None:
    reply = ModelReply("x", tokens_in=tokens_in, tokens_out=tokens_out // 2)
    ledger.settle(ticket, 3 * tokens_in, reply if tokens_out % 3 else None)


def test_unknown_money_stays_unknown_in_the_sum() -> None:
    known = Spending("a", "m", 0, 1, 2, 10, 5, 0.5)
    assert total([known, known._replace(run="b")])["cost"] == 1.0
    assert total([known, known._replace(cost=None)])["cost"] is None
    assert total([])["cost"] is None


def test_a_limit_that_is_reached_before_the_first_call_stops_the_judge_and_not_the_run() -> None:
    with quick_judge("http://127.0.0.1:9/v1", max_calls=0) as gateway:
        gateway.backend = _Unlisted(gateway.backend)  # type: ignore[assignment]
        asyncio.run(gateway.check())
        assert isinstance(gateway.stopped, BudgetExceeded)


class _Unlisted:
    """A judge whose server does not list its models, so that only asking tells whether it answers."""

    def __init__(self, backend: object) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> object:
        return getattr(self._backend, name)

    def connect(self) -> object:
        from contextlib import nullcontext

        return nullcontext(self)

    async def probe(self) -> bool:
        return False
