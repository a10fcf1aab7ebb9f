"""Any value as plain data, and plain data as strict JSON text. What a trajectory looks like is in serialization.py."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

# Lone surrogates have no UTF-8; the line separators beside \n make naive line readers cut a record in two.
_ESCAPED = re.compile("[\ud800-\udfff\x85\u2028\u2029]")


def jsonable(value: Any) -> Any:
    """`value` as plain data that strict JSON can hold.

    Records become dicts, tuples and sets lists, numpy values numbers and lists, +-inf the strings "inf" and "-inf",
    NaN null, dates ISO text; what nothing is known of becomes its str(), so that an odd metadata value never costs a
    recorded trace.

    >>> jsonable({"a": (1, float("-inf")), 2: None})
    {'a': [1, '-inf'], '2': None}
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, enum.Enum):
        return jsonable(value.value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _plain_number(float(value))
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((jsonable(item) for item in value), key=repr)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return _foreign(value)


def _plain_number(value: float) -> float | str | None:
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return None if math.isnan(value) else value


def _foreign(value: Any) -> Any:
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "backslashreplace")
    if isinstance(value, PurePath):
        return str(value)
    for method in ("tolist", "model_dump"):  # numpy arrays and scalars; pydantic models: by duck typing, not import
        plain = getattr(value, method, None)
        if callable(plain) and not isinstance(value, type):
            result = plain()
            return str(value) if type(result) is type(value) else jsonable(result)
    return str(value)


def dumps(value: Any, *, indent: int | None = None) -> str:
    """Strict JSON: no NaN, no Infinity, readable unicode; lone surrogates and odd line separators are escaped.

    >>> dumps({"text": "é \\ud800", "score": float("inf")})
    '{"text": "é \\\\ud800", "score": "inf"}'
    """
    text = json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False, indent=indent)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
