"""THE scores table: one tidy row a (variant, question, repeat, step, stage, metric), its columns, files and views."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from ragkit.errors import DataError
from ragkit.records.judgements import Score

FINAL = "final"


class ScoreRow(NamedTuple):
    """A row of the scores table. `step` is "0", "1", ... or "final"; `value` is None unless status is "scored"."""

    variant: str
    question_id: str
    repeat: int
    category: str | None
    step: str
    stage: str
    metric: str
    value: float | None
    status: str
    reason: str | None = None
    labels: str = "none"  # gold, judged or none
    judge: str | None = None
    n_calls: int = 0
    n_stored: int = 0

    @property
    def score(self) -> Score:
        return Score(self.value, self.status, self.reason)  # type: ignore[arg-type]


COLUMNS = ScoreRow._fields
_CATEGORICAL = ("variant", "question_id", "category", "step", "stage", "metric", "status", "reason", "labels", "judge")
KEY = ["variant", "question_id", "repeat", "step", "stage", "metric", "labels"]


def to_frame(rows: Iterable[ScoreRow]) -> pd.DataFrame:
    """The rows as a tidy DataFrame; the repeated strings are categoricals. A repeated key is a DataError."""
    storable = [tuple(_storable(value) for value in row) for row in rows]
    frame = pd.DataFrame.from_records(storable, columns=list(COLUMNS))
    frame["value"] = frame["value"].astype("float64")
    for column in ("repeat", "n_calls", "n_stored"):
        frame[column] = frame[column].astype("int64")
    twice = frame.duplicated(KEY)
    if twice.any():
        first = frame[KEY][twice].iloc[0].to_dict()
        raise DataError(f"scores table: the key {first} stands twice")
    for column in _CATEGORICAL:
        frame[column] = frame[column].astype("category")
    return frame


def _storable(value: object) -> object:
    """A text as a table can hold it: a lone surrogate is written out as \\udXXX."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def write_scores(path: Path, frame: pd.DataFrame) -> None:
    """Write scores.parquet, whole or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    frame.to_parquet(temporary, index=False)
    temporary.replace(path)


def read_scores(path: Path) -> pd.DataFrame:
    """Read scores.parquet."""
    if not path.exists():
        raise DataError(f"{path}: no scores there; expected a run folder that `ragkit run` or `ragkit score` wrote")
    return pd.read_parquet(path)


def final_values(frame: pd.DataFrame, metric: str) -> dict[tuple[str, int], float | None]:
    """A metric's values at the end, by (question id, repeat); None where there is no value."""
    rows = frame[(frame["step"] == FINAL) & (frame["metric"] == metric)]
    return {(str(question), int(repeat)): None if math.isnan(value) else float(value)
            for question, repeat, value in zip(rows["question_id"], rows["repeat"], rows["value"], strict=True)}


def wide(frame: pd.DataFrame) -> pd.DataFrame:
    """The scores at the end, a row a (question, repeat), a column a metric; NaN where there is no value."""
    final = frame[frame["step"] == FINAL]
    return final.pivot_table(index=["question_id", "repeat"], columns="metric", values="value", observed=True,
                             dropna=False, aggfunc="first")
