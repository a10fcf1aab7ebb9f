"""Rows of any table as questions: which column is which, and what a cell may hold. Where rows come from, others know.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from ragkit.errors import DataError, shown
from ragkit.records.questions import Dataset, GoldText, Question, is_finite, text_id
from ragkit.records.readers.written import written

Row = tuple[str, Mapping[str, Any]]
"""Where a row stands ("file:line"), and its cells by column name."""

# The usual names, in order of preference; compared without case, with "_" for blanks and "-".
_NAMES: dict[str, tuple[str, ...]] = {
    "question": ("user_input", "question", "query", "question_text", "text", "input", "prompt"),
    "id": ("question_id", "query_id", "qid", "_id", "id"),
    "reference": ("reference", "ground_truth", "expected_answer", "reference_answer", "expected_output",
                  "gold_answer", "correct_answer"),
    "answers": ("answers", "references", "ground_truths", "reference_answers", "gold_answers", "generation_gt"),
    "category": ("category", "question_type", "synthesizer_name", "type"),
    "unanswerable": ("unanswerable", "is_impossible", "out_of_scope"),
    "gold_texts": ("gold_texts", "gold_text", "reference_contexts", "reference_context", "gold_contexts",
                   "gold_context", "ground_truth_contexts", "evidence"),
    "gold_ids": ("gold_ids", "gold_id", "relevant_ids", "relevant_doc_ids", "relevant_docs", "gold_doc_ids",
                 "reference_context_ids", "retrieval_gt", "qrels"),
    "tags": ("tags",),
    "history": ("history",),
    "metadata": ("metadata",),
}
_FIELDS = {alias: field for field, aliases in _NAMES.items() for alias in (field, *aliases)}
# What an app gave back is no part of the question; ragas' tables carry both.
_OF_THE_APP = {"response", "retrieved_contexts", "retrieved_context_ids", "contexts", "rubrics"}
_TRUE, _FALSE = {"true", "1", "yes", "y"}, {"false", "0", "no", "n", ""}


class Columns(NamedTuple):
    """Which column of a table holds which field, and the columns that nothing claims (they become metadata)."""

    by_field: Mapping[str, str]
    others: tuple[str, ...]


class _Cell(NamedTuple):
    value: Any
    where: str
    column: str

    def error(self, expected: str) -> DataError:
        return DataError(f"{self.where}: column {self.column!r}: expected {expected}, "
                         f"got {type(self.value).__name__} {shown(self.value)}")


def plain_name(name: str) -> str:
    """A column's name as names are compared: without case, "_" for blanks and "-"."""
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def find_columns(found: Sequence[str], columns: Mapping[str, str] | None, where: str) -> Columns:
    """Match column names with fields: first what the user's map says (field -> column), then the usual names.

    "answer" is taken for the reference only where no column is one and the table shows nothing that an app gave back.
    """
    chosen: dict[str, str] = {}
    listed = ", ".join(found) or "none"
    for field, column in (columns or {}).items():
        if plain_name(field) not in _FIELDS:
            raise DataError(f"{where}: the column map goes from field to column, and {field!r} is no field; "
                            f"expected one of {', '.join(_NAMES)}; columns found: {listed}")
        if column not in found:
            raise DataError(f"{where}: no column {column!r} for {field}; columns found: {listed}")
        chosen[_FIELDS[plain_name(field)]] = column
    by_name: dict[str, str] = {}
    for column in found:
        by_name.setdefault(plain_name(column), column)
    for field, aliases in _NAMES.items():
        names = [by_name[alias] for alias in (*aliases, field) if alias in by_name]
        free = [name for name in names if name not in chosen.values()]
        if field not in chosen and free:
            chosen[field] = free[0]
    answer = by_name.get("answer")
    known = {"reference", "answers"} & set(chosen) or _OF_THE_APP & set(by_name)
    if answer is not None and answer not in chosen.values() and not known:
        chosen["reference"] = answer
    if "question" not in chosen:
        raise DataError(f"{where}: no column with the question; expected one of {', '.join(_NAMES['question'])}, or a "
                        f'column map like {{"question": "NAME"}}; columns found: {listed}')
    claimed = set(chosen.values())
    ignored = _OF_THE_APP | {"answer"}
    return Columns(chosen, tuple(name for name in found if name not in claimed and plain_name(name) not in ignored))


def dataset_from_rows(rows: Iterable[Row], columns: Mapping[str, str] | None, name: str, where: str) -> Dataset:
    """Questions and the grades that the rows themselves give. No row is a DataError."""
    rows = list(rows)
    if not rows:
        raise DataError(f"{where}: no question; expected at least one row")
    found = list(dict.fromkeys(str(column) for _, row in rows for column in row))
    layout = find_columns(found, columns, where)
    questions: list[Question] = []
    qrels: dict[str, dict[str, float]] = {}
    places: dict[str, str] = {}
    for place, row in rows:
        question, grades = _question(row, layout, place)
        if question.id in places:
            raise DataError(f"{place}: {_repeated(question, layout)} stands already at {places[question.id]}; "
                            "expected each question once, with an id of its own")
        places[question.id] = place
        questions.append(question)
        if grades is not None:
            qrels[question.id] = grades
    return Dataset(tuple(questions), qrels, name=name)


def _repeated(question: Question, layout: Columns) -> str:
    if "id" in layout.by_field and question.id != text_id(question.text):
        return f"question id {question.id!r}"
    return f"the question {question.text[:60]!r} (without an id)"


def _question(row: Mapping[str, Any], layout: Columns, where: str) -> tuple[Question, dict[str, float] | None]:
    cells = {field: _Cell(row.get(column), where, column) for field, column in layout.by_field.items()}
    given = {field: cell for field, cell in cells.items() if not is_missing(cell.value)}
    text = _string(given["question"]) if "question" in given else ""
    if not text.strip():
        raise DataError(f"{where}: column {layout.by_field['question']!r}: the question is empty; expected its text")
    metadata = _metadata(given.get("metadata"))
    metadata |= {name: row[name] for name in layout.others if name in row and not is_missing(row[name])}
    answers: tuple[str, ...] = ()
    if "reference" in given and not is_list(given["reference"].value):
        answers = (_string(given["reference"]),)
    lists = [given[field] for field in ("reference", "answers") if field in given]
    for cell in lists[len(answers):]:
        answers += tuple(answer for answer in _strings(cell) if answer not in answers)
    question = Question(
        id=identifier(given["id"].value, f"{where}: column {given['id'].column!r}") if "id" in given else text_id(text),
        text=text,
        answers=answers,
        category=_string(given["category"]) if "category" in given else None,
        unanswerable=_truth(given["unanswerable"]) if "unanswerable" in given else False,
        gold_texts=tuple(_gold_texts(given["gold_texts"])) if "gold_texts" in given else (),
        tags=tuple(_strings(given["tags"], ";")) if "tags" in given else (),
        history=tuple(_history(given["history"])) if "history" in given else (),
        metadata=metadata,
    )
    return question, _grades(given["gold_ids"]) if "gold_ids" in given else None


def is_missing(value: Any) -> bool:
    """None, an empty string, and what numeric tables put for nothing (NaN, NA, NaT); never the text "NA"."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, float):
        return math.isnan(value)
    return isinstance(value, str) and value == ""


def _scalar(value: Any) -> Any:
    """A number of numpy as Python's own; an array stays, for the caller to refuse."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value


def identifier(value: Any, where: str) -> str:
    """An id as text: strings byte for byte, whole numbers as written; a float has lost what was written."""
    value = _scalar(value)
    if isinstance(value, str) and value.strip():
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    hint = ": read the column as text (dtype=str)" if isinstance(value, float) else ""
    raise DataError(f"{where}: expected an id (a string), got {type(value).__name__} {shown(value)}{hint}")


def _string(cell: _Cell) -> str:
    value = _scalar(cell.value)
    if isinstance(value, (str, bool, int, float)):
        return str(value)
    raise cell.error("a text")


def is_list(value: Any) -> bool:
    """Whether a cell holds several things: a list, a tuple or an array."""
    return isinstance(value, (list, tuple)) or (hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0)


def _items(cell: _Cell, separator: str | None = None) -> list[Any]:
    """The items of a cell that may hold several: a list, a list written as text (JSON, or as Python writes it), one
    text, or texts with a separator."""
    value = cell.value
    if isinstance(value, Mapping) and "text" in value:  # SQuAD's answers: {"text": […], "answer_start": […]}
        value = value["text"]
    if is_list(value):
        return list(value.tolist() if hasattr(value, "tolist") else value)
    if isinstance(value, str):
        spelled = written(value)
        if isinstance(spelled, (list, tuple)):
            return list(spelled)
        if separator is not None:
            return [part.strip() for part in value.split(separator) if part.strip()]
    return [value]


def _strings(cell: _Cell, separator: str | None = None) -> list[str]:
    return [_string(cell._replace(value=item)) for item in _items(cell, separator) if not is_missing(item)]


def _truth(cell: _Cell) -> bool:
    value = _scalar(cell.value)
    if isinstance(value, (str, bool, int, float)):
        word = str(value).strip().lower().removesuffix(".0")
        if word in _TRUE | _FALSE:
            return word in _TRUE
    raise cell.error("true or false")


def _metadata(cell: _Cell | None) -> dict[str, Any]:
    if cell is None:
        return {}
    value = written(cell.value) if isinstance(cell.value, str) else cell.value
    return dict(value) if isinstance(value, Mapping) else {cell.column: cell.value}


def _history(cell: _Cell) -> list[Mapping[str, str]]:
    turns = _items(cell)
    if not all(isinstance(turn, Mapping) for turn in turns):
        raise cell.error('a list of {"role": …, "content": …}')
    return [{str(key): str(value) for key, value in turn.items()} for turn in turns]


def _gold_texts(cell: _Cell) -> list[GoldText]:
    value = written(cell.value) if isinstance(cell.value, str) else cell.value
    items = [value] if isinstance(value, Mapping) else _items(cell)
    return [_gold_text(cell._replace(value=item)) for item in items if not is_missing(item)]


def _gold_text(cell: _Cell) -> GoldText:
    value = cell.value
    if isinstance(value, str):
        return GoldText(value)
    if not isinstance(value, Mapping):
        raise cell.error("a text, or an object with text or document_id, start, end")
    document = next((value[key] for key in ("document_id", "doc_id") if not is_missing(value.get(key))), None)
    try:
        return GoldText(
            text="" if is_missing(value.get("text")) else value["text"],
            document_id=None if document is None else identifier(document, f"{cell.where}: document_id"),
            start=_offset(cell, "start"),
            end=_offset(cell, "end"),
            grade=grade(value.get("grade", 1.0), f"{cell.where}: column {cell.column!r}"),
        )
    except DataError as error:
        raise (error if str(error).startswith(cell.where) else DataError(f"{cell.where}: {error}")) from None


def _offset(cell: _Cell, key: str) -> int | None:
    value = cast("Mapping[str, Any]", cell.value).get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise cell._replace(value=value).error(f"a whole number for {key}")
    return value


def grade(value: Any, where: str) -> float:
    """A finite grade; a text is refused, since "1,5" means two things."""
    value = _scalar(value)
    if not is_finite(value):
        raise DataError(f"{where}: expected a grade (a finite number), got {shown(value)}")
    return float(value)


def _grades(cell: _Cell) -> dict[str, float]:
    """Ids of relevant documents with grade 1, or an object id -> grade. Nested lists (one per evidence) are joined."""
    value = written(cell.value) if isinstance(cell.value, str) else cell.value
    where = f"{cell.where}: column {cell.column!r}"
    if isinstance(value, Mapping):
        return {identifier(key, where): grade(item, where) for key, item in value.items() if item is not None}
    flat: list[Any] = []
    for item in _items(cell, ";"):
        flat += _items(cell._replace(value=item)) if is_list(item) else [item]
    return {identifier(item, where): 1.0 for item in flat if not is_missing(item)}
