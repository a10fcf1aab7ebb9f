"""What formats of flat rows share: cells that hold lists, a row's contexts as one search, gold of rows as a dataset."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragkit.errors import DataError, shown
from ragkit.recording.formats.imported import UNKNOWN, holdings, score_notes
from ragkit.recording.passages import as_passage
from ragkit.records.questions import Dataset
from ragkit.records.readers.rows import Row, dataset_from_rows, identifier, is_list, is_missing
from ragkit.records.readers.written import written
from ragkit.records.trajectory import Passage, Retrieval, ScoreKind, Step, Trajectory

GOLD = ("reference", "answers", "gold_ids", "gold_texts", "unanswerable")
"""The fields of a row that say what is right, as ragkit.records.readers.rows names them."""


def items(value: Any, where: str) -> list[Any] | None:
    """What a cell holds: a list, a list that a text spells, a text alone; None where the cell is empty.

    >>> items("['a', 'b']", "row 1"), items("a", "row 1"), items(float("nan"), "row 1")
    (['a', 'b'], ['a'], None)
    """
    if is_list(value):
        return list(value.tolist() if hasattr(value, "tolist") else value)
    if is_missing(value):
        return None
    if isinstance(value, str):
        spelled = written(value)
        return list(spelled) if isinstance(spelled, (list, tuple)) else [value]
    raise DataError(f"{where}: expected a list, got {type(value).__name__} {shown(value)}")


def passages_of(texts: Sequence[Any] | None, ids: Sequence[Any] | None, where: str) -> tuple[Passage, ...] | None:
    """Contexts (texts, or objects with one) and their ids, one of the two may be missing; None where both are.

    >>> [passage.id for passage in passages_of(["a text", "b text"], [1, "2"], "row 1")]
    ['1', '2']
    """
    if texts is None and ids is None:
        return None
    if texts is not None and ids is not None and len(texts) != len(ids):
        raise DataError(f"{where}: expected an id for each context, got {len(ids)} ids and {len(texts)} contexts")
    if texts is None:
        return tuple(Passage(identifier(one, where)) for one in ids or ())
    try:
        found = [as_passage(text) for text in texts]
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    if ids is None:
        return tuple(found)
    return tuple(Passage(identifier(one, where), passage.text, passage.doc_id, passage.score, passage.metadata)
                 for one, passage in zip(ids, found, strict=True))


def searched(query: str, passages: Sequence[Passage], score_kind: ScoreKind = "unknown", name: str = "") -> Step:
    """The one search of a row whose contexts are all that is known of it."""
    return Step(0, (Retrieval("retrieve", query, tuple(passages), name=name, score_kind=score_kind),))


def answered(question_id: str, question: str, passages: Sequence[Passage] | None, answer: str | None,
             source: Mapping[str, Any]) -> Trajectory:
    """A row as a trajectory: its contexts are one search, and what the answer was written from; None is unknown."""
    meta: dict[str, Any] = {"source": dict(source)}
    if passages is None:
        return Trajectory(question_id, question, answer=answer, meta={**meta, "warnings": [UNKNOWN]})
    context = Retrieval("context", question, tuple(passages), source="manual")
    return Trajectory(question_id, question, (searched(question, passages),), context, answer, meta=meta)


def dataset_of(rows: Sequence[Row], path: Path) -> tuple[Dataset | None, list[str]]:
    """The questions of the rows, by the `id` that each has, with what is right; None where no row says it.

    A question that stands in several rows is taken from the first; where another row says something else of what is
    right, a note counts them.
    """
    first: dict[str, Row] = {}
    differing: dict[str, None] = {}
    for where, row in rows:
        known = first.setdefault(row["id"], (where, row))[1]
        if any(not _same(known.get(field), row.get(field)) for field in GOLD):
            differing[row["id"]] = None
    if all(is_missing(row.get(field)) or row[field] == [] for _, row in rows for field in GOLD):
        return None, []
    notes = [f"{len(differing)} questions stand in several rows that differ in what is right; the first row counts: "
             f"{next(iter(differing))}"] if differing else []
    return dataset_from_rows(first.values(), None, path.name.split(".")[0] or path.name, str(path)), notes


def _same(one: Any, other: Any) -> bool:
    return (is_missing(one) and is_missing(other)) or one == other


def number(value: Any) -> float | None:
    """A score out of a cell, None where it holds none.

    >>> number("0.5"), number("high"), number(True), number("nan")
    (0.5, None, 1.0, None)
    """
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(found) else found


def row_notes(trajectories: Sequence[Trajectory], n_rows: int) -> list[str]:
    """What is to be said of rows: without scores, without anything of an app, without contexts; scores of the tool."""
    notes = score_notes(holdings(trajectories))
    if len(trajectories) < n_rows:
        notes.append(f"{n_rows - len(trajectories):,} of {n_rows:,} rows are questions alone: no answer, no contexts")
    without = sum(not one.steps for one in trajectories)
    if without:
        notes.append(f"{without:,} of {len(trajectories):,} answers come without contexts: what was retrieved for them "
                     "is not known")
    scores = list(dict.fromkeys(name for one in trajectories for name in one.meta["source"].get("scores", ())))
    if scores:
        notes.append(f"scores of this file ({', '.join(scores)}) are kept with each trajectory; ragkit scores anew")
    return notes
