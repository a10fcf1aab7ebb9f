"""What a model's tokens cost, as far as it is known: a small dated table, and the user's own file before it.

An unknown price stays unknown; it is never taken for 0. Nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from ragkit.errors import DataError, shown
from ragkit.judge.ledger import Allowance, Keep, Ledger
from ragkit.judge.settings import JudgeSettings
from ragkit.records.files import decode, read_bytes
from ragkit.records.questions import is_finite

_SNAPSHOT = r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-latest)?"  # a dated version of a model costs what the model costs


@dataclass(frozen=True)
class Price:
    """Money per million tokens. `at`: the host or class that asks it; empty: any. `as_of`: when it was looked up, and
    `source` where: for who reads the file."""

    input: float
    output: float
    at: str = ""
    as_of: str = ""
    source: str = ""


def price_of(model: str, where: str, own: Path | None = None) -> Price | None:
    """The price of a model at an address; None where no table knows it. `own` is a file that goes before ours.

    >>> price_of("gpt-4o-mini-2024-07-18", "https://api.openai.com/v1").output
    0.6
    >>> price_of("gpt-4o-mini", "http://127.0.0.1:8000/v1") is None
    True
    """
    for table in ([read_prices(own)] if own is not None else []) + [_packaged()]:
        for name, price in table.items():
            if re.fullmatch(re.escape(name) + _SNAPSHOT, model.removeprefix("models/")) and price.at in where:
                return price
    return None


def read_prices(path: Path) -> dict[str, Price]:
    """A file of prices (YAML or JSON): model -> {input, output} or [input, output]. DataError says what is wrong."""
    return _parsed(decode(read_bytes(path, "a file of prices"), path), str(path))


def parse_price(text: str) -> tuple[float, float]:
    """IN,OUT as two amounts of money per million tokens.

    >>> parse_price("0.25,2")
    (0.25, 2.0)
    """
    try:
        return _amounts([float(part) for part in text.split(",")], "price")
    except ValueError:
        raise DataError(f"price: expected IN,OUT in money per million tokens, such as 0.25,2, got {text!r}") from None


def open_account(settings: JudgeSettings, model: str, where: str, keep: Keep | None = None) -> Ledger:
    """The ledger of a judge, with its price and limits. A budget without a known price is a DataError."""
    found = price_of(model, where, settings.prices)
    price = settings.price or (None if found is None else (found.input, found.output))
    if settings.budget is not None and price is None:
        raise DataError(f"judge budget: the price of {model} at {where} is unknown; give it per million tokens, in and "
                        "out (--price IN,OUT), or limit the calls instead (--max-calls)")
    ledger = Ledger(price, settings.allowance or Allowance(settings.max_calls, settings.budget), keep)
    ledger.judge = model
    ledger.as_of = found.as_of if found is not None and settings.price is None else ""
    return ledger


@cache
def _packaged() -> dict[str, Price]:
    return _parsed(resources.files(__package__).joinpath("prices.yaml").read_text(encoding="utf-8"), "prices.yaml")


def _parsed(text: str, where: str) -> dict[str, Price]:
    import yaml

    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a month 13, a list nested a thousand deep
        raise DataError(f"{where}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(data, Mapping):
        raise DataError(f"{where}: expected a mapping of models to prices, got {type(data).__name__}")
    return {str(model): _price(entry, f"{where}: {model}") for model, entry in data.items()}


def _price(entry: Any, where: str) -> Price:
    if not isinstance(entry, Mapping):
        return Price(*_amounts(entry, where))
    known = [field.name for field in fields(Price)]
    unknown = sorted(set(map(str, entry)) - set(known))
    if unknown:
        raise DataError(f"{where}: unknown key {unknown[0]!r}, expected one of {', '.join(known)}")
    amounts = _amounts([entry.get("input"), entry.get("output")], where)
    return Price(*amounts, *(str(entry.get(name) or "") for name in known[2:]))


def _amounts(given: Any, where: str) -> tuple[float, float]:
    if not (isinstance(given, list) and len(given) == 2 and all(is_finite(amount) and amount >= 0 for amount in given)):
        raise DataError(f"{where}: expected two amounts, input and output, of 0 or more per million tokens, "
                        f"got {shown(given)}")
    return float(given[0]), float(given[1])
