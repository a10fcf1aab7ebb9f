"""Any value as plain data, and plain data as strict JSON text. What a trajectory looks like is in serialization.py."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import PurePath
from typing import Any

# Lone surrogates have no UTF-8; the line separators beside \n make naive line readers cut a record in two.
_ESCAPED = re.compile("[\ud800-\udfff\x85\u2028\u2029]")


DEEPEST = 100
"""How many objects and lists may stand in each other: far below what breaks a JSON writer, far above what is sane."""
_LONGEST_INT = 14_000  # bits; Python turns no int of more than 4300 digits into text


def is_deeper(value: Any, limit: int) -> bool:
    """Whether more than `limit` dicts and lists stand in each other in parsed JSON; never recursive itself.

    >>> is_deeper([[]], 2), is_deeper({"a": [{}]}, 2)
    (False, True)
    """
    level: list[Any] = [value] if isinstance(value, (dict, list)) else []
    for _ in range(limit):
        level = [inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer)
                 if isinstance(inner, (dict, list))]
        if not level:
            return False
    return bool(level)


def jsonable(value: Any) -> Any:
    """`value` as plain data that strict JSON can hold.

    Records become dicts, tuples and sets lists, numpy values numbers and lists, +-inf the strings "inf" and "-inf",
    NaN null, dates ISO text; what nothing is known of becomes its str(), so that an odd metadata value never costs a
    recorded trace. For the same reason what is nested more than DEEPEST deep, or holds itself, is cut and said so.

    >>> jsonable({"a": (1, float("-inf")), 2: None})
    {'a': [1, '-inf'], '2': None}
    """
    return _plain(value, ())


def _plain(value: Any, outer: tuple[int, ...]) -> Any:
    """`outer` are the identities of the containers that this value stands in."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, enum.Enum):
        return _plain(value.value, outer)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value) if value.bit_length() < _LONGEST_INT else hex(value)
    if isinstance(value, float):
        return _plain_number(float(value))
    inside = (*outer, id(value))
    is_record = dataclasses.is_dataclass(value) and not isinstance(value, type)
    if not is_record and not isinstance(value, (Mapping, list, tuple, set, frozenset)):
        return _foreign(value, inside)
    if id(value) in outer:
        return "(holds itself)"
    if len(outer) >= DEEPEST:
        return "(nested too deep)"
    if isinstance(value, Mapping):
        return {_words(key): _plain(item, inside) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, inside) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(item, inside) for item in value), key=repr)
    return {field.name: _plain(getattr(value, field.name), inside) for field in dataclasses.fields(value)}


def _plain_number(value: float) -> float | str | None:
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return None if math.isnan(value) else value


def _words(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # of a foreign type: whatever its __str__ raises
        return f"({type(value).__name__})"


def _foreign(value: Any, inside: tuple[int, ...]) -> Any:
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "backslashreplace")
    if isinstance(value, PurePath):
        return str(value)
    for method in ("tolist", "model_dump"):  # numpy arrays and scalars; pydantic models: by duck typing, not import
        plain = getattr(value, method, None)
        if callable(plain) and not isinstance(value, type):
            with suppress(Exception):  # of a foreign type: whatever it raises
                result = plain()
                return _words(value) if type(result) is type(value) else _plain(result, inside)
    return _words(value)


def dumps(value: Any, *, indent: int | None = None) -> str:
    """Strict JSON: no NaN, no Infinity, readable unicode; lone surrogates and odd line separators are escaped.

    >>> dumps({"text": "é \\ud800", "score": float("inf")})
    '{"text": "é \\\\ud800", "score": "inf"}'
    """
    text = json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False, indent=indent)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
