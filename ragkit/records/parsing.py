"""Trajectories out of parsed JSON: what is required, what has a default, what is refused and how that is said."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ragkit.errors import DataError, shown
from ragkit.records.aliases import alias_generated
from ragkit.records.plain import DEEPEST, is_deeper
from ragkit.records.serialization import TRAJECTORY_SCHEMA
from ragkit.records.trajectory import Passage, Retrieval, ScoreKind, Stage, Step, Trajectory, as_float

_SCHEMA = re.compile(r"ragkit\.trajectory/(\d+)(\.\d+)?")
_INFINITIES = {"inf": math.inf, "+inf": math.inf, "infinity": math.inf, "+infinity": math.inf,
               "-inf": -math.inf, "-infinity": -math.inf}

_Made = TypeVar("_Made")


def trajectory_from_json(obj: Any, where: str) -> Trajectory:
    """The trajectory that `obj` (one parsed line) describes; `where` (file:line) opens every error.

    Required are schema, question_id, question, and steps, each with retrievals, each with passages that have an id.
    The rest has defaults: stage "retrieve" ("context" for the context), ranked true, repeat 0, index = place in the
    list, turn = index, context null. Unknown keys are ignored; another major version of the schema is a DataError.
    An empty error is none, warnings that are null are none. A passage whose id was made from its text gets the id that
    another list of the trajectory gives for the same text; two given ids are never merged.
    """
    row = _object(obj, where)
    _check_schema(row.get("schema"), where)
    if is_deeper({key: row.get(key) for key in ("steps", "context", "meta")}, DEEPEST):
        raise DataError(f"{where}: expected objects and lists nested up to {DEEPEST} deep, got more: flatten the meta "
                        "or metadata")
    steps = _list(row, "steps", where)
    context = row.get("context")
    return alias_generated(_make(where, lambda: Trajectory(
        question_id=_id(row, "question_id", where),
        question=_text(row, "question", where, required=True),
        steps=tuple(_step(step, index, f"{where}: steps[{index}]") for index, step in enumerate(steps)),
        context=None if context is None else _retrieval(context, 0, f"{where}: context", "context"),
        answer=_optional_text(row, "answer", where),
        error=_optional_text(row, "error", where),
        repeat=_integer(row, "repeat", 0, where),
        ms=_number(row.get("ms"), f"{where}: ms"),
        usage=_usage(row, where),
        meta=_meta(row, where),
    )))


def _check_schema(schema: Any, where: str) -> None:
    match = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
    if match is None:
        raise DataError(f'{where}: expected "schema": "{TRAJECTORY_SCHEMA}", got {shown(schema)}')
    if match[1] != "1":
        raise DataError(f"{where}: schema {schema!r} is of another major version; this ragkit reads "
                        f"{TRAJECTORY_SCHEMA}: use the version of ragkit-eval that wrote the file")


def _step(obj: Any, place: int, where: str) -> Step:
    row = _object(obj, where)
    index = _integer(row, "index", place, where)
    turn = _integer(row, "turn", index, where)
    retrievals = _list(row, "retrievals", where)
    return _make(where, lambda: Step(
        index=index,
        retrievals=tuple(_retrieval(item, turn, f"{where}.retrievals[{i}]", "retrieve")
                         for i, item in enumerate(retrievals)),
        turn=turn,
        usage=_usage(row, where),
        ms=_number(row.get("ms"), f"{where}.ms"),
    ))


def _retrieval(obj: Any, turn: int, where: str, default_stage: Stage) -> Retrieval:
    row = _object(obj, where)
    passages = _list(row, "passages", where)
    ranked = row.get("ranked", True)
    if not isinstance(ranked, bool):
        raise DataError(f"{where}: expected ranked true or false, got {shown(ranked)}")
    return _make(where, lambda: Retrieval(
        stage=cast(Stage, row.get("stage", default_stage)),
        query=_text(row, "query", where),
        passages=tuple(_passage(item, f"{where}.passages[{i}]") for i, item in enumerate(passages)),
        name=_text(row, "name", where),
        turn=_integer(row, "turn", turn, where),
        seq=_integer(row, "seq", 0, where),
        started=_number(row.get("started"), f"{where}.started"),
        ms=_number(row.get("ms"), f"{where}.ms"),
        score_kind=cast(ScoreKind, row.get("score_kind", "unknown")),
        ranked=ranked,
        error=_optional_text(row, "error", where),
        source=_optional_text(row, "source", where),
    ))


def _passage(obj: Any, where: str) -> Passage:
    row = _object(obj, where)
    return _make(where, lambda: Passage(
        id=_id(row, "id", where),
        text=_optional_text(row, "text", where),
        doc_id=_id(row, "doc_id", where) if row.get("doc_id") is not None else None,
        score=_number(row.get("score"), f"{where}.score"),
        metadata=_mapping(row, "metadata", where),
    ))


def _make(where: str, build: Callable[[], _Made]) -> _Made:
    """What the record itself refuses at its birth is told with the place in the file."""
    try:
        return build()
    except DataError as error:
        message = str(error)
        raise (error if message.startswith(where) else DataError(f"{where}: {message}")) from None


def _object(obj: Any, where: str) -> dict[str, Any]:
    if not isinstance(obj, dict):
        raise DataError(f"{where}: expected a JSON object, got {type(obj).__name__} {shown(obj)}")
    return obj


def _list(row: dict[str, Any], key: str, where: str) -> list[Any]:
    value = row.get(key)
    if not isinstance(value, list):
        came = f"got {type(value).__name__}" if key in row else f"the keys are {', '.join(map(str, row)) or 'none'}"
        raise DataError(f"{where}: expected {key!r}, a list (empty where there was nothing); {came}")
    return value


def _mapping(row: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    value = row.get(key)
    if value is None:
        return {}
    return _object(value, f"{where}: {key}")


def _meta(row: dict[str, Any], where: str) -> dict[str, Any]:
    meta = _mapping(row, "meta", where)
    return {key: value for key, value in meta.items() if key != "warnings" or value is not None}


def _usage(row: dict[str, Any], where: str) -> dict[str, float]:
    plain = _mapping(row, "usage", where)
    numbers = {name: _number(value, f"{where}: usage.{name}") for name, value in plain.items()}
    return {name: value for name, value in numbers.items() if value is not None}


def _id(row: dict[str, Any], key: str, where: str) -> str:
    value = row.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # a log of another tool may hold 7; every door turns it into "7", so that it still joins
    if not isinstance(value, str) or not value:
        raise DataError(f"{where}: expected {key!r}, a non-empty string, got {shown(value)}")
    return value


def _text(row: dict[str, Any], key: str, where: str, required: bool = False) -> str:
    value = row.get(key)
    if value is None and not required:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{where}: expected {key!r}, a string, got {shown(value)}")
    return value


def _optional_text(row: dict[str, Any], key: str, where: str) -> str | None:
    return None if row.get(key) is None else _text(row, key, where)


def _integer(row: dict[str, Any], key: str, default: int, where: str) -> int:
    value = row.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise DataError(f"{where}: expected {key!r}, a whole number, got {shown(value)}")
    return value


def _number(value: Any, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, str) and value.strip().lower() in _INFINITIES:
        return _INFINITIES[value.strip().lower()]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DataError(f'{where}: expected a number (or "inf", "-inf"), got {shown(value)}')
    if math.isnan(as_float(value, where)):
        raise DataError(f"{where}: expected a number, got NaN")
    return value
