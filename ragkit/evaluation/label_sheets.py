"""Sheets for people to label in a spreadsheet: CSV out, without a cell that runs as a formula, and read back.

A sheet may come back with its columns in another order, more columns, semicolons, and ids that a spreadsheet took for
numbers; a text that was changed is found out. What is drawn into a sheet is decided in label_sample.py.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragkit.errors import DataError, shown
from ragkit.metrics.registry import parse
from ragkit.records.cells import neutral, plain
from ragkit.records.files import write_text
from ragkit.records.human_labels import USUAL_METRIC, HumanLabel, content_code
from ragkit.records.readers.tables import read_csv
from ragkit.report.numbers import counted

_SHOWN = 10
LONGEST_CELL = 30_000  # spreadsheets cut at 32,767 characters, silently
_PASSAGE = re.compile(r"passage_(\d+)")
_MACHINE = ("metric", "question_id", "repeat", "stratum", "weight", "row")
_YES, _NO = ("yes", "y", "true", "ja", "oui", "да", "是"), ("no", "n", "false", "nein", "non", "нет", "否")
_LEFT_OUT = ("", "?", "-", "–", "n/a", "na", "skip")


def write_sheet(path: str | Path, labels: Sequence[HumanLabel], how: str) -> None:
    """Write labels to be given as CSV: UTF-8 with a byte order mark (for Excel), a column a passage, `how` in words."""
    most = max((len(label.contexts) for label in labels), default=0)
    passages = [f"passage_{place}" for place in range(1, most + 1)]
    text = io.StringIO(newline="")
    write = csv.writer(text, lineterminator="\r\n")
    write.writerow(["label", "note", "how", "question", "answer", "reference", *passages, *_MACHINE])
    for label in labels:
        shown_texts = [cut_text(cell) for cell in (label.question, label.answer, label.reference, *label.contexts)]
        gaps = [""] * (most - len(label.contexts))
        code = f"{label.row}.{shown_code(shown_texts)}"
        weight = "" if label.weight is None else repr(label.weight)
        value = "" if label.value is None else f"{label.value:g}"
        write.writerow([value, *map(neutral, (label.note, how, *shown_texts)), *gaps,
                        *map(neutral, (label.metric, label.question_id)), label.repeat, label.stratum, weight, code])
    write_text(path, "\ufeff" + text.getvalue())


@dataclass(frozen=True)
class Sheet:
    """A sheet read back: its labels with their lines, and the rows that were changed, as (line, columns)."""

    labels: tuple[HumanLabel, ...]
    lines: tuple[str, ...]
    changed: tuple[tuple[str, str], ...]


def read_sheet(path: str | Path) -> Sheet:
    """The labels of a sheet that `write_sheet` wrote and people filled in.

    A label is a number on the metric's scale (0,5 is 0.5), or yes or no; empty, "?", "n/a" and "skip" mean that the
    person left it out. Raises DataError with file and line for any other label, and for a sheet of another kind.
    """
    labels, lines, changed = list[HumanLabel](), list[str](), []
    for where, cells in read_csv(Path(path)):
        names = {name.strip().casefold(): name for name in cells}
        missing = [name for name in ("label", "row", "question_id") if name not in names]
        if missing:
            raise DataError(f"{where}: the column {missing[0]!r} is missing; expected a sheet of `ragkit labels "
                            "sample` with all its columns")
        label, column = _read(where, {name: str(cells[own] or "") for name, own in names.items()})
        labels.append(label)
        lines.append(where.rpartition(":")[2])
        if column:
            changed.append((lines[-1], f"{column} of question {label.question_id}"))
    if not labels:
        raise DataError(f"{path}: no row in it; expected a sheet of `ragkit labels sample`")
    return Sheet(tuple(labels), tuple(lines), tuple(changed))


def checked_sheet(path: str | Path, skip_changed: bool = False) -> tuple[list[HumanLabel], int]:
    """The labels of a filled-in sheet, and how many rows were left out because their texts were changed.

    A changed row is refused, since a label belongs to the text that it was given on; or left out, where asked for.
    """
    sheet = read_sheet(path)
    lines = [line for line, _ in sheet.changed]
    if lines and not skip_changed:
        more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
        raise DataError(f"{path}: the texts of {counted(len(lines), 'row')} are not what was written "
                        f"({'line' if len(lines) == 1 else 'lines'} {', '.join(lines[:_SHOWN])}{more}: "
                        f"{sheet.changed[0][1]}); a label belongs to the text that it was given on: restore it, or "
                        "leave what was changed out with --skip-changed")
    kept = [label for label, line in zip(sheet.labels, sheet.lines, strict=True) if line not in set(lines)]
    return kept, len(lines)


def label_value(text: str, metric: str, where: str) -> float | None:
    """A label as a number on the metric's scale, None where it was left out.

    >>> label_value("0,5", "faithfulness", "x.csv:2"), label_value("Yes", "faithfulness", "x.csv:2")
    (0.5, 1.0)
    """
    word = text.strip().casefold()
    if word in _LEFT_OUT:
        return None
    low, high = parse(metric).definition.range
    if word in _YES or word in _NO:
        value = (1.0 if high is None else high) if word in _YES else (0.0 if low is None else low)
    else:
        try:
            value = float(word.removesuffix("%").replace(",", ".")) / (100 if word.endswith("%") else 1)
        except ValueError:
            raise DataError(f"{where}: label: expected a number, yes, no, or nothing, got {shown(text)}") from None
    if not ((low is None or value >= low) and (high is None or value <= high)):
        raise DataError(f"{where}: label: expected {_scale(low, high)}, the range of {metric}, got {shown(text)}")
    return value


def _scale(low: float | None, high: float | None) -> str:
    ends = (f"from {low:g}" if low is not None else "", f"to {high:g}" if high is not None else "")
    return " ".join(part for part in ends if part)


def _read(where: str, cells: dict[str, str]) -> tuple[HumanLabel, str]:
    """One row, and the name of the column whose text was changed ("" where none was)."""
    given = {name: plain(cell) for name, cell in cells.items()}
    metric = given.get("metric", "").strip() or USUAL_METRIC
    row, _, check = given["row"].strip().partition(".")
    passages = sorted((int(found[1]), name) for name in cells if (found := _PASSAGE.fullmatch(name)))
    contexts = [given[name] for _, name in passages]
    while contexts and not contexts[-1]:
        contexts.pop()
    texts = [given.get(name, "") for name in ("question", "answer", "reference")]
    question = given["question_id"].strip()
    where = f"{where}: question {shown(question)}"  # a spreadsheet shows no line of the file
    label = HumanLabel(
        metric, question, _whole(given.get("repeat", ""), where), label_value(given["label"], metric, where), row,
        _weight(given.get("weight", ""), where),
        given.get("stratum", "").strip(), texts[0], texts[1], tuple(contexts), texts[2], given.get("note", ""),
        {name: given[name] for name in cells
         if name not in {"label", "note", "how", "question", "answer", "reference", *_MACHINE}
         and not _PASSAGE.fullmatch(name) and given[name].strip()})
    return label, "" if shown_code([*texts, *contexts]) == check else "question, answer, reference or a passage"


def _whole(text: str, where: str) -> int:
    if not text.strip().isdigit() and text.strip():
        raise DataError(f"{where}: repeat: expected a whole number from 0, got {shown(text)}")
    return int(text.strip() or 0)


def _weight(text: str, where: str) -> float | None:
    if not text.strip():
        return None
    try:
        value = float(text.strip().replace(",", "."))
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise DataError(f"{where}: weight: expected a number above 0, got {shown(text)}")
    return value


def cut_text(text: str) -> str:
    """A text that a cell can hold, without the characters that no file or spreadsheet keeps."""
    text = text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if len(text) <= LONGEST_CELL:
        return text
    return f"{text[:LONGEST_CELL]} … [cut here: {len(text) - LONGEST_CELL:,} more characters]"


def shown_code(texts: Iterable[Any]) -> str:
    """A code of what a sheet shows. Programs may change line ends, outer blanks and an apostrophe in front."""
    return content_code("", 0, [re.sub(r"\r\n?", "\n", str(text)).strip().lstrip("'") for text in texts])[2:10]
