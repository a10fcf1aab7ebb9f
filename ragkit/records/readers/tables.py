"""Tables as rows: CSV, TSV, JSON, JSON Lines and Parquet files, DataFrames, datasets.Dataset and lists, by duck typing.

What the columns mean is in rows.py.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragkit.errors import DataError, describe
from ragkit.records.files import decode, read_bytes, read_json, read_jsonl
from ragkit.records.readers.rows import Row, find_columns, is_missing

TABLE_SUFFIXES = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".parquet")
_DELIMITERS = (",", ";", "\t", "|")


def read_table(path: Path, columns: Mapping[str, str] | None = None) -> list[Row]:
    """The rows of a table file, told by its suffix (.gz behind it is fine); cells of CSV and TSV stay as written."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    suffix = suffixes[-1] if suffixes else ""
    if suffix in (".jsonl", ".ndjson"):
        return _objects(((f"{path}:{number}", value) for number, value in read_jsonl(path)))
    if suffix == ".json":
        value = read_json(path)
        rows = next((value[key] for key in ("data", "questions", "samples") if key in value), None) \
            if isinstance(value, dict) else value
        if not isinstance(rows, list):
            raise DataError(f"{path}: expected a JSON list of questions, got {type(value).__name__}")
        return _objects((f"{path}: [{index}]", row) for index, row in enumerate(rows))
    if suffix == ".parquet":
        return _read_parquet(path)
    if suffix in (".csv", ".tsv", ".tab", ".txt"):
        return list(read_csv(path, columns, "\t" if suffix in (".tsv", ".tab") else None))
    raise DataError(f"{path}: unknown kind of file {suffix!r}; expected {', '.join(TABLE_SUFFIXES)}, or a folder with "
                    "queries.jsonl: save the table as CSV (UTF-8)")


def _read_parquet(path: Path) -> list[Row]:
    data = read_bytes(path, "a Parquet file")
    import pandas

    try:
        frame = pandas.read_parquet(io.BytesIO(data))
    except ImportError:
        raise
    except Exception as error:  # pyarrow has many kinds of errors for a broken file
        raise DataError(f"{path}: cannot be read as Parquet ({describe(error)}); expected a whole Parquet file: write "
                        "or copy it again") from error
    return rows_of_frame(frame, str(path))


def _objects(values: Iterable[tuple[str, Any]]) -> list[Row]:
    rows: list[Row] = []
    for where, value in values:
        if not isinstance(value, Mapping):
            raise DataError(f"{where}: expected a JSON object (one question), got {type(value).__name__}")
        rows.append((where, value))
    return rows


def read_csv(path: Path, columns: Mapping[str, str] | None = None, delimiter: str | None = None) -> Iterator[Row]:
    """The rows of a CSV file by column name, each with its line. Every cell is the text that stands there: nothing is
    read as a number or as missing ("NA", "None" and "007" stay). The delimiter is found from the header."""
    text = decode(read_bytes(path, "a CSV file with a header line"), path)
    skipped = 0
    if text[:4].lower() == "sep=":  # Excel's own hint
        first, _, text = text.partition("\n")
        delimiter, skipped = first.rstrip("\r")[4:5] or delimiter, 1
    delimiter = delimiter or _find_delimiter(text, columns)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    line = 1
    try:
        for cells in reader:
            where = f"{path}:{line + skipped}"
            line = reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = _checked_header(cells, where)
                continue
            if any(cells[len(header):]):
                raise DataError(f"{where}: expected {len(header)} cells ({delimiter!r} between them), got "
                                f"{len(cells)}: quote cells that hold the delimiter")
            yield where, {name: cell for name, cell in zip(header, cells, strict=False) if name}
    except csv.Error as error:
        hint = "put long texts into JSON Lines" if "limit" in str(error) else "check the quotes of this row"
        raise DataError(f"{path}:{line + skipped}: cannot be read as CSV ({error}): {hint}") from None
    if header is None:
        raise DataError(f"{path}: the file is empty; expected a header line and at least one question")


def _checked_header(cells: Sequence[str], where: str) -> list[str]:
    header = [cell.strip() for cell in cells]
    repeated = sorted({name for name in header if name and header.count(name) > 1})
    if repeated:
        raise DataError(f"{where}: the column {repeated[0]!r} stands twice; expected each name once")
    return header


def _find_delimiter(text: str, columns: Mapping[str, str] | None) -> str:
    """The delimiter whose header makes sense: first one that gives a question column, then one that gives the most."""
    best, best_worth = ",", (False, 1)
    for delimiter in _DELIMITERS:
        try:
            header = [c.strip() for c in next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])]
            find_columns(header, columns, "")
            worth = (True, len(header))
        except DataError:
            worth = (False, len(header))
        except csv.Error:
            continue
        if worth > best_worth:
            best, best_worth = delimiter, worth
    return best


def rows_of_frame(frame: Any, where: str) -> list[Row]:
    """The rows of a pandas or polars DataFrame."""
    if hasattr(frame, "iter_rows"):
        records: Iterable[Mapping[str, Any]] = frame.to_dicts()
    else:
        names = [str(name) for name in frame.columns]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise DataError(f"{where}: the column {repeated[0]!r} stands twice; expected each name once")
        frame = frame.copy(deep=False)
        frame.columns = names
        records = frame.to_dict("records")
    return [(f"{where}: row {index}", row) for index, row in enumerate(records) if not _is_blank(row)]


def _is_blank(row: Mapping[str, Any]) -> bool:
    return all(is_missing(value) for value in row.values())


def rows_of_objects(objects: Iterable[Any], where: str) -> list[Row]:
    """The rows of a list: dicts, or strings that are the question themselves."""
    rows: list[Row] = []
    for index, item in enumerate(objects):
        if isinstance(item, str):
            rows.append((f"{where}: [{index}]", {"question": item}))
        elif isinstance(item, Mapping):
            rows.append((f"{where}: [{index}]", item))
        else:
            raise DataError(f"{where}: [{index}]: expected a dict, a Question or a string, got {type(item).__name__}")
    return rows
