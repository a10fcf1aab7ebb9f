"""One door for datasets of any form: load_dataset looks what it was given. The forms are in the files beside."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragkit.errors import DataError, describe, shown
from ragkit.records.questions import Dataset, Question
from ragkit.records.readers.rows import dataset_from_rows, is_list

__all__ = ["load_dataset"]


def load_dataset(source: Any, columns: Mapping[str, str] | None = None, split: str = "test") -> Dataset:
    """Questions with what is known about them, from nearly anything.

    `source`: a folder (queries.jsonl, optional corpus.jsonl and qrels), a CSV, TSV, JSON, JSON Lines or Parquet file,
    "irds:ID" (ir_datasets), a pandas or polars DataFrame, a datasets.Dataset (of a DatasetDict the `split`), a list of
    dicts, Questions or strings, or a Dataset, which is given back. `columns` maps fields (question, id, reference,
    answers, category, unanswerable, gold_texts, gold_ids, tags, history, metadata) to column names; what it leaves out
    is found by the usual names. Anything that cannot be understood is a DataError of one line.

    >>> dataset = load_dataset([{"user_input": "Who?", "reference": "Me", "gold_ids": "d1; d2"}])
    >>> dataset.questions[0].answers, dict(dataset.qrels[dataset.questions[0].id])
    (('Me',), {'d1': 1.0, 'd2': 1.0})
    """
    if columns is not None and not isinstance(columns, Mapping):
        raise DataError(f"dataset: expected columns as a map of field to column name, got {shown(columns)}")
    if isinstance(source, Dataset):
        if not source.questions:
            raise DataError(f"{source.name}: no question; expected at least one")
        return source
    if isinstance(source, str) and source.startswith("irds:"):
        from ragkit.records.readers.irds import load_irds

        return load_irds(source.removeprefix("irds:"))
    if isinstance(source, (str, os.PathLike)):
        return _from_path(Path(source), columns, split)
    return _from_object(source, columns, split)


def _from_path(path: Path, columns: Mapping[str, str] | None, split: str) -> Dataset:
    from ragkit.records.readers.beir import load_folder
    from ragkit.records.readers.tables import read_table

    try:
        path = path.expanduser()
        exists = path.exists()
    except (OSError, RuntimeError, ValueError):  # too long for a name, a NUL inside, ~ of nobody
        exists = False
    if not exists:
        place = "" if path.is_absolute() else f" (looked in {Path.cwd()})"
        raise DataError(f"{str(path)[:200]}: no such file or folder{place}; expected a table with questions (CSV, "
                        'JSON Lines, …) or a folder with queries.jsonl, or "irds:ID": check the path')
    if path.is_dir():
        return load_folder(path, columns, split)
    return dataset_from_rows(read_table(path, columns), columns, path.name.split(".")[0] or path.name, str(path))


def _from_object(source: Any, columns: Mapping[str, str] | None, split: str) -> Dataset:
    from ragkit.records.readers.tables import rows_of_frame, rows_of_objects

    name = type(source).__name__
    if isinstance(source, Mapping):
        if not source or all(map(is_list, source.values())):
            return dataset_from_rows(rows_of_objects(_rows_of_columns(source), name), columns, "dataset", name)
        if split not in source:
            raise DataError(f"dataset: no split {split!r} in the {name}; expected one of {', '.join(map(str, source))}")
        return load_dataset(source[split], columns, split)
    if hasattr(source, "columns") and (hasattr(source, "iloc") or hasattr(source, "iter_rows")):
        return dataset_from_rows(rows_of_frame(source, name), columns, "dataset", name)
    if isinstance(source, Question):
        source = [source]
    if isinstance(source, bytes) or not hasattr(source, "__iter__"):
        raise DataError(f"dataset: expected a path, a DataFrame, a datasets.Dataset, a list of dicts or of Questions, "
                        f"got {name}")
    try:
        items = list(source)
    except Exception as error:  # whatever the user's own object raises while it is walked through
        raise DataError(f"dataset: the {name} cannot be read ({describe(error)})") from error
    if items and all(isinstance(item, Question) for item in items):
        return Dataset(tuple(items))
    return dataset_from_rows(rows_of_objects(items, name), columns, "dataset", name)


def _rows_of_columns(columns: Mapping[Any, Sequence[Any]]) -> list[dict[str, Any]]:
    lengths = {str(name): len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise DataError(f"dataset: expected columns of one length, got {told}")
    names = list(map(str, columns))
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
