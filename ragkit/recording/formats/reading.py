"""The JSON objects of a file, with their place, however it holds them: one a line, in an array, over several lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ragkit.errors import DataError, shown
from ragkit.records.files import decode, read_bytes, read_jsonl

_DECODER = json.JSONDecoder()


def objects(path: Path, expected: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file:line, object) of each object. A list, or an object that holds one under `data`, `spans` or `runs`, gives
    its items; what is no object is a DataError with its line and what was `expected`."""
    for number, value in _values(path):
        where = f"{path}:{number}"
        yield from _items(value, where, expected)


def _items(value: Any, where: str, expected: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, Mapping):
        key = next((key for key in ("data", "spans", "runs") if isinstance(value.get(key), list)), None)
        if key is None or "attributes" in value or "run_type" in value:
            yield where, dict(value)
            return
        value = value[key]
    if not isinstance(value, list):
        raise DataError(f"{where}: expected {expected}, got {shown(value)}")
    for place, item in enumerate(value):
        if not isinstance(item, Mapping):
            raise DataError(f"{where}: item {place}: expected {expected}, got {shown(item)}")
        yield f"{where} item {place}" if place else where, dict(item)


def _values(path: Path) -> Iterator[tuple[int, Any]]:
    """(line, value): line by line where the first line is a whole value, else one value after the other."""
    text = decode(read_bytes(path, "a file of traces"), path)
    first = next((line for line in text.split("\n") if line.strip()), "")
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        yield from _printed(path, text)
        return
    yield from read_jsonl(path)


def _printed(path: Path, text: str) -> Iterator[tuple[int, Any]]:
    """Values that are printed with line breaks inside, such as an exporter writes to its console."""
    at, line = 0, 1
    while True:
        begin = at
        while begin < len(text) and text[begin].isspace():
            begin += 1
        if begin == len(text):
            return
        line += text.count("\n", at, begin)
        try:
            value, at = _DECODER.raw_decode(text, begin)
        except json.JSONDecodeError as error:
            raise DataError(f"{path}:{line}: expected JSON, got {text[begin:begin + 60].splitlines()[0]!r} "
                            f"({error.msg} in line {error.lineno})") from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}:{line}: cannot be read as JSON ({error})") from None
        yield line, value
        line += text.count("\n", begin, at)
