"""Holes as a file for people to label, and their grades back as qrels. Which pairs are worth it is told by holes.py.

The sheet is CSV as `ragkit labels sample` writes it, with a grade a row, or JSON Lines of the same rows; both are what
`ragkit agreement -m relevance` reads.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ragkit.comparison.causes_texts import Texts
from ragkit.comparison.holes import HolePair
from ragkit.comparison.sides import Side
from ragkit.errors import DataError, shown
from ragkit.evaluation.label_sheets import cut_text, shown_code
from ragkit.judge.qrels import qrels_lines
from ragkit.records.cells import neutral, plain
from ragkit.records.files import write_jsonl, write_text
from ragkit.records.questions import is_finite
from ragkit.records.readers.tables import read_table
from ragkit.records.readers.trec import read_qrels
from ragkit.report.numbers import counted

_COLUMNS = ("label", "note", "how", "question", "reference", "passage", "question_id", "passage_id", "ranks", "effect",
            "row")
_LEFT_OUT = ("", "?", "-", "–", "n/a", "na", "skip", "none", "null")
_LINES = (".jsonl", ".ndjson")


class Graded(NamedTuple):
    """What came back: new grades, rows left empty, and pairs whose grade in the labels was another one."""

    grades: int
    empty: int
    changed: int


def write_holes(path: str | Path, pairs: Sequence[HolePair], sides: Sequence[Side], grade: float) -> None:
    """Write pairs to be labelled, with what each is about; texts stand in it as far as they are known."""
    path, texts = Path(path), [Texts(side) for side in sides]
    rows = [_row(pair, sides[0], texts, f"Is the passage relevant to the question? A grade, 0 not at all, "
                 f"{grade:g} fully") for pair in pairs]
    if path.suffix.lower() in _LINES:
        write_jsonl(path, [{**row, "label": None} for row in rows])
        return
    text = io.StringIO(newline="")
    write = csv.writer(text, lineterminator="\r\n")
    write.writerow(_COLUMNS)
    for row in rows:
        write.writerow([neutral(str(row[column])) for column in _COLUMNS])
    write_text(path, "\ufeff" + text.getvalue())


def _row(pair: HolePair, side: Side, texts: Sequence[Texts], how: str) -> dict[str, Any]:
    facts = side.questions[pair.question_id]
    passage = next((found for one in texts if (found := one.of(pair.question_id, pair.passage_id)) is not None), "")
    given = [cut_text(part) for part in (facts.text or "", (facts.answers or ("",))[0], passage)]
    ranks = ", ".join(f"{name} {rank}" for name, rank in pair.ranks.items() if rank is not None)
    code = shown_code([pair.question_id, pair.passage_id, given[0], given[2]])
    return {"label": "", "note": "", "how": how, "question": given[0], "reference": given[1], "passage": given[2],
            "question_id": pair.question_id, "passage_id": pair.passage_id, "ranks": ranks,
            "effect": f"{pair.effect:.6f}", "row": f"h-{code}"}


def grades_into_qrels(sheet: str | Path, qrels: str | Path, out: str | Path) -> Graded:
    """The labels of `qrels` with the grades of a filled-in sheet beside them, written to `out`: BEIR's form where its
    name ends in .tsv, else TREC's.

    Raises DataError with file and line for a grade that is no number, an id or text that was changed, and a sheet of
    another kind.
    """
    labels = read_qrels(qrels)
    before, empty, changed, given = {q: dict(row) for q, row in labels.items()}, 0, 0, 0
    for where, cells in read_table(Path(sheet)):
        question, passage, grade = _read(where, cells)
        if grade is None:
            empty += 1
            continue
        old = labels.setdefault(question, {}).get(passage)
        changed += old is not None and old != grade
        labels[question][passage] = grade
        given += 1
    if not given:
        raise DataError(f"{sheet}: no grade in its column label ({counted(empty, 'row')} left empty)")
    if question_unknown := next((q for q in labels if q not in before), None):
        raise DataError(f"{sheet}: question {shown(question_unknown)} is not in {qrels}; expected the labels that the "
                        "comparison was made with")
    pairs = {(question, passage): grade for question, row in labels.items() for passage, grade in row.items()}
    write_text(out, "".join(qrels_lines(pairs, Path(out))))
    return Graded(given, empty, changed)


def _read(where: str, cells: Mapping[str, Any]) -> tuple[str, str, float | None]:
    named = {str(name).strip().casefold(): cell for name, cell in cells.items()}
    missing = next((name for name in ("label", "question_id", "passage_id", "question", "passage", "row")
                    if name not in named), None)
    if missing is not None:
        raise DataError(f"{where}: the column {missing!r} is missing; expected a file of `ragkit compare --holes`")
    own = {name: str("" if cell is None else cell) for name, cell in named.items()}
    lines = Path(where.rpartition(":")[0]).suffix.lower() in _LINES
    texts = [own[name] if lines else plain(own[name]) for name in ("question_id", "passage_id", "question", "passage")]
    if own["row"] != f"h-{shown_code(texts)}":
        raise DataError(f"{where}: the ids or texts of this row are not what was written (question {shown(texts[0])}, "
                        f"passage {shown(texts[1])}); a grade belongs to what it was given on: restore it, and import "
                        "ids as text")
    return texts[0], texts[1], _grade(own["label"], where)


def _grade(text: str, where: str) -> float | None:
    word = text.strip().casefold()
    if word in _LEFT_OUT:
        return None
    try:
        value = float(word.replace(",", "."))
    except ValueError:
        value = float("nan")
    if not is_finite(value):
        raise DataError(f"{where}: label: expected a grade (a number, 0 for not relevant) or nothing, got "
                        f"{shown(text)}")
    return value
