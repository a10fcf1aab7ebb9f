"""The shapes in which OpenTelemetry spans are written down -> one: flat or nested attributes, OTLP's typed lists."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{16}|[0-9a-fA-F]{32})")
_AS_IT_IS = ("metadata", "arguments", "value", "parameters")  # the last part of a name whose value is the user's own


def nested(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes with dotted names as nested ones; numbers in a name make a list, whatever gaps there are in it.

    >>> nested({"a.0.b.c": 1, "a.2.b.c": 3, "metadata": {"x.y": 2}})
    {'a': [{'b': {'c': 1}}, {}, {'b': {'c': 3}}], 'metadata': {'x.y': 2}}
    >>> nested({"docs": [{"document.id": "d1"}]})
    {'docs': [{'document': {'id': 'd1'}}]}
    """
    tree: dict[str, Any] = {}
    for name, value in attributes.items():
        if value is None:
            continue
        *path, last = str(name).split(".")
        at = tree
        for part in path:
            inner = at.get(part)
            if not isinstance(inner, dict):
                inner = at[part] = {}
            at = inner
        if last not in _AS_IT_IS:
            value = _inside(value)  # noqa: PLW2901
        known = at.get(last)
        if isinstance(known, dict) and isinstance(value, dict) and last not in _AS_IT_IS:
            known.update(value)
        elif not isinstance(known, dict):
            at[last] = value
    found: dict[str, Any] = _listed(tree)
    return found


def _inside(value: Any) -> Any:
    if isinstance(value, Mapping):
        return nested(value)
    if isinstance(value, list):
        return [_inside(item) for item in value]
    return value


def _listed(tree: dict[str, Any]) -> Any:
    """Dicts whose keys are all small numbers as lists; what is missing in one is an empty dict."""
    found = {key: _listed(value) if isinstance(value, dict) and key not in _AS_IT_IS else value
             for key, value in tree.items()}
    numbers = [int(key) for key in found if key.isdigit() and len(key) < 6]
    if found and len(numbers) == len(found):
        by_number = {int(key): value for key, value in found.items()}
        return [by_number.get(number, {}) for number in range(max(numbers) + 1)]
    return found


def at_path(tree: Any, *path: str) -> Any:
    """The value under nested keys; None where there is none."""
    for part in path:
        tree = tree.get(part) if isinstance(tree, Mapping) else None
    return tree


def otlp_spans(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The spans of an OTLP request (`resourceSpans`, or in snake case) with plain attributes and plain names."""
    for resource in _all(request, "resourceSpans", "resource_spans"):
        for scope in _all(resource, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"):
            for span in _all(scope, "spans"):
                status = _first(span, "status") or {}
                yield {
                    "name": span.get("name"),
                    "trace_id": _first(span, "traceId", "trace_id"),
                    "span_id": _first(span, "spanId", "span_id"),
                    "parent_id": _first(span, "parentSpanId", "parent_span_id"),
                    "start_time": _first(span, "startTimeUnixNano", "start_time_unix_nano"),
                    "end_time": _first(span, "endTimeUnixNano", "end_time_unix_nano"),
                    "status_code": status.get("code") if isinstance(status, Mapping) else None,
                    "status_message": status.get("message") if isinstance(status, Mapping) else None,
                    "attributes": _plain_pairs(span.get("attributes")),
                    "events": [{"name": event.get("name"), "attributes": _plain_pairs(event.get("attributes"))}
                               for event in _all(span, "events")],
                }


def _all(value: Any, *names: str) -> Iterator[Mapping[str, Any]]:
    found = _first(value, *names)
    if isinstance(found, list):
        yield from (one for one in found if isinstance(one, Mapping))


def _first(value: Mapping[str, Any], *names: str) -> Any:
    return next((value[name] for name in names if value.get(name) is not None), None)


def _plain_pairs(pairs: Any) -> dict[str, Any]:
    """OTLP's list of {key, value: {stringValue: …}} as a dict; a dict is one already."""
    if isinstance(pairs, Mapping):
        return dict(pairs)
    rows = pairs if isinstance(pairs, list) else []
    return {str(row.get("key")): _plain(row.get("value")) for row in rows if isinstance(row, Mapping)}


def _plain(value: Any) -> Any:
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    ((kind, inner),) = value.items()
    kind = kind.replace("_", "").lower()
    if kind == "arrayvalue":
        return [_plain(item) for item in (inner or {}).get("values") or []]
    if kind == "kvlistvalue":
        return _plain_pairs((inner or {}).get("values"))
    if kind == "intvalue":  # a string in JSON, which has no 64-bit numbers
        try:
            return int(inner)
        except (TypeError, ValueError):
            return None
    return inner


def hex_id(value: Any) -> str | None:
    """A trace or span id as plain lower hex, as OTLP and Phoenix show it: from hex with or without 0x, or base64. Any
    other text is kept; None for none, and for the id of zeros that stands for none.

    >>> hex_id("0xFF422abd7c140ad7"), hex_id("/0IqvXwUCtc="), hex_id("0000000000000000"), hex_id("span-1")
    ('ff422abd7c140ad7', 'ff422abd7c140ad7', None, 'span-1')
    """
    if not isinstance(value, str) or not value:
        return None
    if match := _HEX.fullmatch(value):
        return match[1].lower() if match[1].strip("0") else None
    if len(value) in (12, 24) and value.endswith("="):
        try:
            data = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            return value
        return data.hex() if any(data) else None
    return value
