"""Rows that people labelled: which column is the label, the question, the answer; what a label may be.

Any table is read: JSON Lines, JSON, CSV, TSV, Parquet. Who else rates the rows, and how far they agree, is in
agreement.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ragkit.errors import DataError, shown
from ragkit.judge.samples import JudgeSample
from ragkit.records.files import read_bytes
from ragkit.records.questions import is_finite
from ragkit.records.readers.rows import Row, is_list, is_missing, plain_name
from ragkit.records.readers.tables import read_table

_NAMES: dict[str, tuple[str, ...]] = {
    "question": ("user_input", "question", "query", "question_text", "prompt", "input"),
    "question_id": ("question_id", "query_id", "qid"),
    "contexts": ("retrieved_contexts", "contexts", "context", "passages", "knowledge"),
    "answer": ("response", "answer", "output", "prediction"),
    "reference": ("reference", "ground_truth", "expected_answer", "reference_answer"),
    "passage": ("passage", "passage_text", "document", "document_text", "text"),
    "passage_id": ("passage_id", "corpus_id", "docid", "doc_id", "document_id"),
}
_HUMAN = ("human", "human_label", "human_score", "faithful", "grade", "relevance", "rating", "annotation", "label",
          "labels", "verdict")
_TRUE, _FALSE = {"true", "yes", "y"}, {"false", "no", "n"}
_MISSING = {"", "null", "none", "nan", "na", "n/a"}

Value = float | str | None


@dataclass(frozen=True)
class Ratings:
    """What one rater said of each row: numbers, or all of them names of categories; None where there is no rating.

    `reasons` says why, by the row's place; `judge` identifies one, `n_stored` counts replies to it that were stored.
    """

    name: str
    values: tuple[Value, ...]
    reasons: Mapping[int, str] = field(default_factory=dict)
    judge: Mapping[str, str | None] = field(default_factory=dict)
    n_stored: int = 0

    @property
    def categories(self) -> bool:
        """Whether the ratings are names of categories."""
        return any(isinstance(value, str) for value in self.values)


class Labelled:
    """A table of labelled rows. `columns` maps fields (question, answer, contexts, …) to columns with other names."""

    def __init__(self, rows: Sequence[Row], columns: Mapping[str, str] | None = None, name: str = "labels",
                 sha256: str = "") -> None:
        if not rows:
            raise DataError(f"{name}: no row; expected at least one labelled row")
        self.rows, self.name, self.sha256 = tuple(rows), name, sha256
        self.columns = tuple(dict.fromkeys(str(column) for _, row in rows for column in row))
        self._given = dict(columns or {})
        self.fields = self._fields(self._given)
        self.groups = self._groups()

    def of_metric(self, metric: str | None) -> Labelled:
        """The rows about one metric, where a column says what each row is about. All of them where none does, or where
        they are about one other metric: a judge of one thing may be held against labels of another."""
        if metric is None or "metric" not in self.columns:
            return self
        named = [None if _is_blank(row.get("metric")) else str(row["metric"]) for _, row in self.rows]
        if metric not in named:
            others = sorted({name for name in named if name is not None})
            if len(others) > 1:
                raise DataError(f"{self.name}: no row is about {metric}; its column metric says {', '.join(others)}")
            return self
        own = [row for row, name in zip(self.rows, named, strict=True) if name in (metric, None)]
        return Labelled(own, self._given, self.name, self.sha256)

    @property
    def metric(self) -> str | None:
        """The one metric that all rows are about, where a column says so."""
        named = {str(row["metric"]) for _, row in self.rows if not _is_blank(row.get("metric"))}
        if len(named) > 1:
            raise DataError(f"{self.name}: rows about {', '.join(sorted(named))}; choose one with --metric")
        return named.pop() if named else None

    @property
    def weights(self) -> tuple[float, ...] | None:
        """How many rows of the whole each row stands for, where a column "weight" says so of every row."""
        if "weight" not in self.columns:
            return None
        found = [_number(cell) for cell in self.cells("weight")]
        weights = tuple(weight for weight in found if weight is not None and weight > 0)
        return weights if len(weights) == len(found) else None

    def _fields(self, given: Mapping[str, str]) -> dict[str, str]:
        for name, column in given.items():
            if name not in _NAMES:
                raise DataError(f"{self.name}: unknown field {name!r}; expected one of {', '.join(_NAMES)}")
            self.cells(column)
        by_name: dict[str, str] = {}
        for column in self.columns:
            by_name.setdefault(plain_name(column), column)
        found = {name: next((by_name[alias] for alias in aliases if alias in by_name), None)
                 for name, aliases in _NAMES.items()}
        return {name: column for name, column in {**found, **given}.items() if column is not None}

    def _groups(self) -> tuple[str, ...]:
        """The question of each row, by its id, else by its text; a row without either stands for itself."""
        name = next((self.fields[name] for name in ("question_id", "question") if name in self.fields), None)
        if name is None:
            return tuple(f"row {place}" for place in range(len(self.rows)))
        return tuple(f"row {place}" if _is_blank(cell) else str(cell) for place, cell in enumerate(self.cells(name)))

    def cells(self, column: str) -> list[Any]:
        """The cells of a column; "metadata.model" and "human.0" lead into objects and lists."""
        cells = [_cell(row, column) for _, row in self.rows]
        if all(cell is None for cell in cells) and column not in self.columns:
            raise DataError(f"{self.name}: no column {column!r}; columns found: {', '.join(self.columns)}")
        return cells

    def humans(self, names: Sequence[str] | None = None, positive: Sequence[str] = ()) -> list[Ratings]:
        """The labels of each annotator: the columns named, or the first usual name whose cells are labels.

        A column that holds a list of labels a row is as many annotators.
        """
        if not names:
            names = [self._usual_human(bool(positive))]
        columns = [part for name in names for part in self._annotators(name)]
        return [self.ratings(column, positive, "no label") for column in columns]

    def _annotators(self, name: str) -> list[str]:
        """The columns that a name stands for: itself, or its parts where each cell is a list of labels."""
        cells = [cell for cell in self.cells(name) if not _is_missing(cell)]
        sizes = {len(cell) if is_list(cell) else 0 for cell in cells}
        if sizes <= {0}:
            return [name]
        if len(sizes) > 1:
            raise DataError(f"{self.name}: column {name!r}: expected as many labels in each row, got {sorted(sizes)}")
        return [f"{name}.{place}" for place in range(sizes.pop())]

    def _usual_human(self, categories: bool) -> str:
        by_name = {plain_name(column): column for column in reversed(self.columns)}
        found = [by_name[name] for name in _HUMAN if name in by_name]
        numeric = [name for name in found if all(is_list(c) or _is_missing(c) or _number(c) is not None
                                                 for c in self.cells(name))]
        chosen = found if categories else numeric or found
        if not chosen:
            raise DataError(f"{self.name}: which column is the label that people gave? expected --human COLUMN, or one "
                            f"named {', '.join(_HUMAN[:6])}; columns found: {', '.join(self.columns)}")
        return next((name for name in chosen if not categories or name not in numeric), chosen[0])

    def ratings(self, column: str, positive: Sequence[str] = (), missing: str = "no score") -> Ratings:
        """One column as ratings: numbers, true and false as 1 and 0, or names; an empty cell is counted as missing.

        `positive` names the texts that count as 1; all others are 0.
        """
        cells = self.cells(column)
        if positive:
            known = {str(cell).strip() for cell in cells if not _is_missing(cell)}
            unknown = [text for text in positive if text not in known]
            if unknown:
                raise DataError(f"{self.name}: column {column!r} never says {unknown[0]!r}; it says "
                                f"{', '.join(sorted(known)[:8])}")
            values: list[Value] = [None if _is_missing(cell) else float(str(cell).strip() in positive)
                                   for cell in cells]
        else:
            values = self._values(column, cells)
        reasons = {place: missing for place, value in enumerate(values) if value is None}
        if len(reasons) == len(values):
            raise DataError(f"{self.name}: column {column!r}: every cell is empty; expected labels or scores")
        return Ratings(column, tuple(values), reasons)

    def _values(self, column: str, cells: Sequence[Any]) -> list[Value]:
        numbers = [_number(cell) for cell in cells]
        odd = [place for place, cell in enumerate(cells) if numbers[place] is None and not _is_missing(cell)]
        if not odd:
            return list(numbers)
        texts = all(isinstance(cells[place], str) for place in odd)
        if texts and len(odd) == sum(not _is_missing(cell) for cell in cells) and not any(map(_is_decimal, cells)):
            return [None if _is_missing(cell) else str(cell).strip() for cell in cells]
        where, cell = self.rows[odd[0]][0], cells[odd[0]]
        hint = " (a decimal point, not a comma)" if _is_decimal(cell) else ""
        raise DataError(f"{where}: column {column!r}: expected a number{hint}, true or false, or nothing, "
                        f"got {shown(cell)}")

    def matching(self, patterns: Iterable[str], taken: Iterable[str]) -> list[str]:
        """The columns that patterns name; "*" and its like find columns of numbers that mean nothing else."""
        used = {*taken, *self.fields.values(), "id", "_id"}
        found: dict[str, None] = {}
        for pattern in patterns:
            if not any(sign in pattern for sign in "*?["):
                found[pattern] = None
                continue
            some = [column for column in self.columns if fnmatchcase(column, pattern) and column not in used
                    and all(_is_missing(cell) or _number(cell) is not None for cell in self.cells(column))]
            if not some:
                raise DataError(f"{self.name}: no column of scores is named as {pattern!r}; columns found: "
                                f"{', '.join(self.columns)}")
            found.update(dict.fromkeys(some))
        return list(found)

    def slices(self, by: str) -> dict[str, list[int]]:
        """The places of the rows by the value of a column, in the order of the values."""
        found: dict[str, list[int]] = {}
        for place, cell in enumerate(self.cells(by)):
            found.setdefault("(none)" if _is_missing(cell) else str(cell), []).append(place)
        return dict(sorted(found.items()))

    def samples(self, any_question: str | None = None) -> list[JudgeSample | None]:
        """What a judge is asked of each row: question, contexts (or the passage), answer, reference; None where the
        row has no question. `any_question` stands in where a judge does not look at it."""
        if "question" not in self.fields and any_question is None:
            raise DataError(f"{self.name}: no column with the question; expected one of "
                            f"{', '.join(_NAMES['question'])}, or --column question=NAME; columns found: "
                            f"{', '.join(self.columns)}")

        def texts(name: str) -> list[Any]:
            return self.cells(self.fields[name]) if name in self.fields else [None] * len(self.rows)

        contexts = texts("contexts") if "contexts" in self.fields else texts("passage")
        rows = zip(texts("question"), texts("answer"), contexts, texts("reference"), strict=True)
        return [None if _is_blank(question) and any_question is None else
                JudgeSample((place,), str(any_question if _is_blank(question) else question),
                            None if answer is None else str(answer), _texts(found),
                            reference=None if _is_blank(reference) else str(reference))
                for place, (question, answer, found, reference) in enumerate(rows)]


def read_labelled(path: str | Path, columns: Mapping[str, str] | None = None) -> Labelled:
    """Read labelled rows from a file; what they mean is asked of the result."""
    path = Path(path)
    rows = read_table(path)
    return Labelled(rows, columns, path.name, hashlib.sha256(read_bytes(path)).hexdigest())


def _cell(row: Mapping[str, Any], column: str) -> Any:
    if column in row:
        return row[column]
    value: Any = row
    for part in column.split("."):
        if isinstance(value, str) and value[:1] in ("{", "["):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                return None
        if isinstance(value, Mapping):
            value = value.get(part)
        elif is_list(value) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def _is_blank(cell: Any) -> bool:
    return is_missing(cell) or (isinstance(cell, str) and not cell.strip())


def _is_missing(cell: Any) -> bool:
    return _is_blank(cell) or (isinstance(cell, str) and cell.strip().lower() in _MISSING)


def _number(cell: Any) -> float | None:
    """A label as a number; None where it is none."""
    if hasattr(cell, "item") and not is_list(cell):
        cell = cell.item()
    if isinstance(cell, str):
        word = cell.strip().lower()
        if word in _TRUE | _FALSE:
            return float(word in _TRUE)
        try:
            cell = float(word)
        except ValueError:
            return None
    return float(cell) if isinstance(cell, bool) or is_finite(cell) else None


def _is_decimal(cell: Any) -> bool:
    """Whether a text is a number with a decimal comma: read as a category it would be agreement about spelling."""
    return isinstance(cell, str) and cell.count(",") == 1 and cell.strip().replace(",", "").isdecimal()


def _texts(cell: Any) -> tuple[str, ...]:
    if isinstance(cell, str) and cell.lstrip()[:1] == "[":
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return (cell,)
    if _is_blank(cell):
        return ()
    return tuple(str(text) for text in cell if not _is_blank(text)) if is_list(cell) else (str(cell),)
