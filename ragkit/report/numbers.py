"""How numbers are written: the only place of the project that formats them for people. Nothing is computed here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from ragkit.records.questions import is_finite

NONE = "–"
NOT_RECORDED = "not recorded"


def known(value: object) -> float | None:
    """The value as a finite float, or None; a NaN that got this far is never shown as a number."""
    return float(cast("float", value)) if is_finite(value) else None


def number(value: object, decimals: int = 3) -> str:
    """A metric's value with three decimals; an en dash where there is none.

    >>> number(0.9999999999), number(None), number(-0.0001)
    ('1.000', '–', '0.000')
    """
    number_ = known(value)
    if number_ is None:
        return NONE
    text = f"{number_:.{decimals}f}"
    return text.lstrip("-") if not text.strip("-0.") else text


def interval(low: object, high: object) -> str:
    """A 95 % interval.

    >>> interval(0.5, 0.75), interval(-0.1, 0.2), interval(None, None)
    ('0.500–0.750', '-0.100 to 0.200', '–')
    """
    ends = known(low), known(high)
    if ends[0] is None or ends[1] is None:
        return NONE
    return f"{number(low)}{' to ' if min(ends[0], ends[1]) < 0 else '–'}{number(high)}"


def count(value: object) -> str:
    """A whole number with thousands separated.

    >>> count(12345), count(None)
    ('12,345', '–')
    """
    number_ = known(value)
    return NONE if number_ is None else f"{round(number_):,}"


def counted(value: object, one: str, many: str = "") -> str:
    """How many of something; `many` where its plural is no plain s.

    >>> counted(1, "question"), counted(1200, "question"), counted(2, "copy", "copies")
    ('1 question', '1,200 questions', '2 copies')
    """
    return f"{count(value)} {one if known(value) == 1 else many or f'{one}s'}"


def signed(value: object) -> str:
    """A difference, with its sign.

    >>> signed(0.0531), signed(-0.2), signed(0.0001), signed(None)
    ('+0.053', '-0.200', '0.000', '–')
    """
    text = number(value)
    return f"+{text}" if (known(value) or 0) > 0 and text != number(0) else text


def p_value(value: object) -> str:
    """A p with three decimals; a smaller one is told as such, since no test gives 0.

    >>> p_value(0.0312), p_value(0.0001), p_value(None)
    ('0.031', '< 0.001', '–')
    """
    number_ = known(value)
    return "< 0.001" if number_ is not None and number_ < 0.0005 else number(value)


def plain(value: object) -> str:
    """A number as it came (a grade, a verdict), without trailing zeros.

    >>> plain(2.0), plain(0.5), plain(None)
    ('2', '0.5', '–')
    """
    number_ = known(value)
    return NONE if number_ is None else f"{number_:.6g}"


def of(part: object, whole: object) -> str:
    """How many of how many.

    >>> of(18, 1024)
    '18 / 1,024'
    """
    return f"{count(part)} / {count(whole)}"


def percent(value: object, decimals: int = 0) -> str:
    """A share.

    >>> percent(0.724), percent(0.004, 1), percent(None)
    ('72%', '0.4%', '–')
    """
    number_ = known(value)
    return NONE if number_ is None else f"{number_ * 100:.{decimals}f}%"


def share(value: object) -> str:
    """A share that is not told as nothing or all where it is neither.

    >>> share(0.724), share(0.004), share(0.0004), share(0.9999), share(1), share(None)
    ('72%', '0.4%', 'under 0.1%', 'over 99.9%', '100%', '–')
    """
    number_ = known(value)
    if number_ is None or number_ in (0, 1) or 0.005 <= number_ < 0.995:
        return percent(number_)
    if 0.0005 <= number_ < 0.9995:
        return percent(number_, 1)
    return "under 0.1%" if number_ < 0.5 else "over 99.9%"


def percents(low: object, high: object) -> str:
    """The interval of a share; empty where it is not known.

    >>> percents(0.6, 0.823), percents(None, 1)
    ('60%–82%', '')
    """
    return "" if known(low) is None or known(high) is None else f"{percent(low)}–{percent(high)}"


def milliseconds(value: object) -> str:
    """A duration given in milliseconds, in the unit that reads best.

    >>> milliseconds(3.21), milliseconds(850), milliseconds(1240), milliseconds(125000), milliseconds(None)
    ('3.2 ms', '850 ms', '1.24 s', '2 min 05 s', 'not recorded')
    """
    number_ = known(value)
    if number_ is None:
        return NOT_RECORDED
    if number_ < 999.5:
        return f"{number_:.1f} ms" if number_ < 9.95 else f"{number_:.0f} ms"
    if number_ < 59_995:
        return f"{number_ / 1000:.2f} s"
    seconds = round(number_ / 1000)
    return f"{seconds // 60} min {seconds % 60:02d} s"


def tokens(value: object) -> str:
    """A count of tokens; an unknown one was not recorded, which is not 0.

    >>> tokens(12345), tokens(None)
    ('12,345', 'not recorded')
    """
    return NOT_RECORDED if known(value) is None else count(value)


def money(value: object, currency: str = "$") -> str:
    """A price; an unknown one is not 0.

    >>> money(1.5), money(0.00234), money(0), money(None)
    ('$1.50', '$0.0023', '$0.00', 'unknown')
    """
    number_ = known(value)
    if number_ is None:
        return "unknown"
    if 0 < number_ < 0.00005:
        return f"under {currency}0.0001"
    return f"{currency}{number_:.4f}" if 0 < number_ < 0.1 else f"{currency}{number_:,.2f}"


def retrieval_score(value: object) -> str:
    """A retriever's or re-ranker's own score, with four significant digits.

    >>> retrieval_score(0.123456), retrieval_score(float("inf"))
    ('0.1235', 'inf')
    """
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    number_ = known(value)
    return NONE if number_ is None else f"{number_:.4g}"


def limits(ends: tuple[float | None, float | None]) -> str:
    """A metric's range in words.

    >>> limits((0.0, 1.0)), limits((1.0, None)), limits((None, None))
    ('0 to 1', 'from 1', 'unbounded')
    """
    low, high = ends
    if low is None or high is None:
        return "unbounded" if low is high else f"from {plain(low)}" if high is None else f"up to {plain(high)}"
    return f"{plain(low)} to {plain(high)}"


def reasons(found: object) -> str:
    """Why there is no value, with how often.

    >>> reasons({"no relevant document": 3, "answer refused": 1})
    '3 × no relevant document, 1 × answer refused'
    """
    if isinstance(found, Mapping):
        return ", ".join(f"{count(times)} × {reason}" for reason, times in found.items())
    return str(found or "")


def anything(value: Any) -> str:
    """A value of unknown kind (a configuration, a ledger), in words.

    >>> anything(True), anything(None), anything([1, "a"]), anything(0.25)
    ('yes', '–', '1, a', '0.25')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return NONE
    if isinstance(value, int):
        return count(value)
    if isinstance(value, float):
        return plain(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {anything(item)}" for key, item in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(anything(item) for item in value)
    return str(value)
