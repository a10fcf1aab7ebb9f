"""Files that ragas writes: evaluation data sets, results with metric columns, its CSV and JSON Lines backends.

Conversations are in ragas_turns.py; writing files that ragas reads is in writers_ragas.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragkit.errors import DataError, describe, shown
from ragkit.recording.formats.flat import answered, dataset_of, items, number, passages_of, row_notes
from ragkit.recording.formats.imported import Imported, numbered
from ragkit.recording.formats.ragas_turns import conversation, is_conversation
from ragkit.records.files import read_json, read_jsonl
from ragkit.records.questions import text_id
from ragkit.records.readers.rows import Row, find_columns, identifier, is_missing, plain_name
from ragkit.records.readers.tables import read_table
from ragkit.records.readers.written import written
from ragkit.records.trajectory import Trajectory

_CONTEXTS, _IDS, _ANSWER = ("retrieved_contexts", "contexts"), ("retrieved_context_ids",), ("response", "answer")
_OF_THE_APP = {*_CONTEXTS, *_IDS, *_ANSWER, "multi_responses", "repeat"}  # repeats are told by the order of the rows
_OTHER = {"gold_ids": "gold_texts", "gold_texts": "gold_ids"}
_EXPECTED = "expected rows of ragas (user_input, retrieved_contexts, response, reference, …)"


def read_ragas(path: Path) -> Imported:
    """Rows of ragas as trajectories: JSON Lines, JSON, CSV, Parquet, or a folder that datasets wrote to disk.

    `retrieved_contexts` are one search and the context of the answer. In a conversation (user_input is a list of
    messages) each tool message is a step. Columns that ragas does not know are kept in `meta["source"]`: numbers as
    `scores`, the others as `metadata`. Rows with nothing that an app gave are questions alone. The dataset has the
    reference answers, and as gold the reference contexts by their ids, else by their texts.
    """
    rows, notes = _rows(path)
    table = _Table(path, rows)
    gold: list[Row] = []
    trajectories: list[Trajectory] = []
    for where, row in rows:
        one = table.trajectory(row, where)
        gold.append((where, table.gold(row, one, where)))
        if one.steps or one.answer is not None:
            trajectories.append(one)
    dataset, more = dataset_of(gold, path)
    if not trajectories and dataset is None:
        raise DataError(f"{path}: no row holds a response, retrieved contexts or a reference; {_EXPECTED}")
    kept = numbered(trajectories)
    return Imported(kept, dataset, (*notes, *more, *table.notes(), *row_notes(kept, len(rows))))


class _Table:
    """Which column of the rows is what."""

    def __init__(self, path: Path, rows: Sequence[Row]) -> None:
        names = list(dict.fromkeys(str(column) for _, row in rows for column in row))
        # Here an answer is the app's, whatever else the table shows.
        layout = find_columns([name for name in names if plain_name(name) != "answer"], None, str(path))
        self.by_field = layout.by_field
        others = [name for name in layout.others if plain_name(name) not in _OF_THE_APP and not _is_index(name)]
        self.scores = [name for name in others if _is_score(rows, name)]
        self.metadata = [name for name in others if name not in self.scores]
        self.has_both = {"gold_ids", "gold_texts"} <= set(self.by_field)
        has_ids = any(_list(row, _IDS, where) for where, row in rows)
        self.unused = ("gold_ids" if not has_ids else "gold_texts") if self.has_both else ""

    def trajectory(self, row: Mapping[str, Any], where: str) -> Trajectory:
        asked, given = row.get(self.by_field["question"]), row.get(self.by_field.get("id", ""))
        source = {"format": "ragas", "trace_id": None,
                  "metadata": {name: row[name] for name in self.metadata if not is_missing(row.get(name))},
                  "scores": {name: number(row.get(name)) for name in self.scores}}
        messages = _messages(asked, where)
        one = _single(row, asked, where, source) if messages is None else conversation(messages, where, source)
        return one if is_missing(given) else replace(one, question_id=identifier(given, where))

    def gold(self, row: Mapping[str, Any], one: Trajectory, where: str) -> dict[str, Any]:
        """What the row says of its question, under the names of the fields of a dataset."""
        told = {field: row[column] for field, column in self.by_field.items()
                if column in row and (field != self.unused or is_missing(row.get(self.by_field[_OTHER[field]])))}
        for field in _OTHER:
            if field in told:
                told[field] = items(told[field], f"{where}: {self.by_field[field]}")
        return told | {"id": one.question_id, "question": one.question}

    def notes(self) -> list[str]:
        found = []
        if self.unused:
            used = self.by_field[_OTHER[self.unused]]
            why = "have" if self.unused == "gold_texts" else "have no"
            found.append(f"gold is taken from {used}, not from {self.by_field[self.unused]}: the contexts {why} ids")
        return found


def _single(row: Mapping[str, Any], asked: Any, where: str, source: Mapping[str, Any]) -> Trajectory:
    if not isinstance(asked, str) or not asked.strip():
        raise DataError(f"{where}: expected a question (user_input), got {shown(asked)}")
    passages = passages_of(_list(row, _CONTEXTS, where), _list(row, _IDS, where), where)
    answer = _cell(row, _ANSWER)
    if answer is not None and not isinstance(answer, str):
        raise DataError(f"{where}: expected a text as response, got {shown(answer)}")
    return answered(text_id(asked), asked, passages, answer, source)


def _cell(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    by_name = {plain_name(str(name)): value for name, value in row.items() if not is_missing(value)}
    return next((by_name[name] for name in names if name in by_name), None)


def _list(row: Mapping[str, Any], names: Sequence[str], where: str) -> list[Any] | None:
    return items(_cell(row, names), f"{where}: {names[0]}")


def _messages(asked: Any, where: str) -> list[Any] | None:
    """The messages of a conversation; None where the cell is a text."""
    if isinstance(asked, str):
        if asked.lstrip()[:2] != "[{":
            return None
        asked = written(asked)
        if asked is None:
            raise DataError(f"{where}: user_input: a list of messages that cannot be read; write it as JSON Lines "
                            "(EvaluationDataset.to_jsonl)")
    elif hasattr(asked, "tolist"):
        asked = asked.tolist()
    return asked if is_conversation(asked) else None


def _rows(path: Path) -> tuple[list[Row], list[str]]:
    """The rows of a file of any of the kinds that ragas and datasets write, and what is to be said of them."""
    if path.is_dir():
        return _arrow_rows(path), []
    if [suffix.lower() for suffix in path.suffixes if suffix != ".gz"][-1:] != [".json"]:
        return read_table(path), []
    try:
        value = read_json(path)
    except DataError as error:
        try:
            value = [row for _, row in read_jsonl(path)]  # what datasets writes under this name
        except DataError:
            raise error from None
    samples = value.get("samples", value) if isinstance(value, dict) else value
    if isinstance(samples, dict) and samples and all(map(_is_annotated, samples.values())):
        rows: list[Row] = [(f"{path}: {metric}[{place}]", {**one["metric_input"], metric: one["metric_output"]})
                           for metric, each in samples.items() for place, one in enumerate(each)]
        return rows, [f"rows that people annotated for {', '.join(samples)}: what they said of the prompts is left out"]
    if not isinstance(samples, list) or not all(isinstance(row, dict) for row in samples):
        keys = f"an object with the keys {', '.join(list(value)[:6])}" if isinstance(value, dict) else shown(value)
        raise DataError(f"{path}: {_EXPECTED}, got {keys}")
    return [(f"{path}: [{place}]", {**row, **row["eval_sample"]} if isinstance(row.get("eval_sample"), dict) else row)
            for place, row in enumerate(samples)], []


def _is_annotated(each: Any) -> bool:
    return isinstance(each, list) and bool(each) and all(
        isinstance(one, dict) and isinstance(one.get("metric_input"), dict) and "metric_output" in one for one in each)


def _arrow_rows(folder: Path) -> list[Row]:
    files = sorted(folder.glob("*.arrow"))
    if not files:
        raise DataError(f"{folder}: {_EXPECTED} in a file, or a folder with *.arrow files that datasets wrote")
    import pyarrow.ipc

    rows: list[Row] = []
    for file in files:
        try:
            with pyarrow.OSFile(str(file)) as stream:
                found = pyarrow.ipc.open_stream(stream).read_all().to_pylist()
        except (pyarrow.ArrowInvalid, OSError) as error:
            raise DataError(f"{file}: cannot be read as Arrow ({describe(error)})") from None
        rows += [(f"{file}: row {place}", row) for place, row in enumerate(found)]
    return rows


def _is_index(name: str) -> bool:
    return name.startswith("Unnamed:") or not name.strip()


def _is_score(rows: Sequence[Row], name: str) -> bool:
    """Whether all that a column holds is numbers (or NaN, with which ragas marks what failed)."""
    cells = [row[name] for _, row in rows if not is_missing(row.get(name)) and row[name] != "nan"]
    return bool(cells) and all(number(cell) is not None for cell in cells)
