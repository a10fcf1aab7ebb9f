"""Trajectories -> rows that ragas reads: single turns, as EvaluationDataset.from_jsonl and its CSV backend take them.

ragas knows one list a question and no steps. Which list that is, the caller says.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragkit.errors import DataError
from ragkit.records.cells import neutral
from ragkit.records.files import dumps, write_jsonl, write_text
from ragkit.records.trajectory import Trajectory


@dataclass(frozen=True)
class RagasRow:
    """What ragas may know of a trajectory: its contexts (None: unknown) with their ids, what is right, and scores."""

    trajectory: Trajectory
    contexts: tuple[str, ...] | None = None
    context_ids: tuple[str, ...] = ()
    reference: str | None = None
    reference_contexts: tuple[str, ...] = ()
    reference_ids: tuple[str, ...] = ()
    scores: Mapping[str, float | None] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The row under ragas' names; what is unknown is left out, for ragas takes a null for a value in places.

        >>> RagasRow(Trajectory("q", "Who?", answer="Ann"), ("by Ann",), ("d1",)).to_json()["retrieved_context_ids"]
        ['d1']
        """
        one = self.trajectory
        row = {
            "user_input": one.question,
            "retrieved_contexts": None if self.contexts is None else list(self.contexts),
            "retrieved_context_ids": None if self.contexts is None else list(self.context_ids),
            "response": one.answer,
            "reference": self.reference,
            "reference_contexts": list(self.reference_contexts) or None,
            "reference_context_ids": list(self.reference_ids) or None,
            "question_id": one.question_id,
            "repeat": one.repeat,
            **self.scores,
        }
        return {name: value for name, value in row.items() if value is not None}


def write_ragas(path: Path, rows: Sequence[RagasRow]) -> None:
    """Write the rows as JSON Lines (`.jsonl`) or CSV (`.csv`), whole or not at all.

    In CSV lists are JSON, which Python's literal_eval reads, too, and no cell runs as a formula: an apostrophe stands
    before a text that could.
    """
    plain = [row.to_json() for row in rows]
    if path.suffix == ".jsonl":
        write_jsonl(path, plain)
    elif path.suffix == ".csv":
        write_text(path, _csv(plain))
    else:
        raise DataError(f"{path}: expected a name that ends in .jsonl or .csv")


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(neutral(name) for name in columns)
    writer.writerows([_cell(row.get(name)) for name in columns] for row in rows)
    return file.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return dumps(value)
    return neutral(value) if isinstance(value, str) else value
