"""TREC's files: qrels (four columns, or BEIR's three with a header), run files and topics. Scoring is not here."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from ragkit.errors import DataError
from ragkit.records.files import decode, read_bytes

Run = dict[str, list[tuple[str, float]]]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
_HEADERS = (b"query-id", b"query_id", b"qid", b"queryid")


def _lines(path: Path, expected: str) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, with their numbers. They are cut as bytes: only ASCII blanks separate columns, and an
    id with a no-break space or a zero-width sign stays whole."""
    data = read_bytes(path, expected)
    decode(data, path)  # what is not UTF-8 is refused here, with its line
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if line.strip():
            yield number, line


def _number(text: str, where: str, what: str, infinite: bool = False) -> float:
    if _NUMBER.fullmatch(text):
        value = float(text)
        if infinite or math.isfinite(value):
            return value
    raise DataError(f"{where}: expected {what} (a number with a decimal point), got {text!r}")


def read_qrels(path: str | Path) -> dict[str, dict[str, float]]:
    """question id -> document id -> grade, ids byte for byte, grades as numbers (also fractions).

    TREC's four columns (question, iteration, document, grade; any blanks between them), or three columns with tabs and
    BEIR's header; gzip is understood. A line of another form, a grade that is no number, and a pair with two different
    grades are DataErrors with file and line; a pair repeated with the same grade is read once.
    """
    path = Path(path)
    qrels: dict[str, dict[str, float]] = {}
    tabs: bool | None = None
    for number, line in _lines(path, "qrels"):
        where = f"{path}:{number}"
        if tabs is None:
            cells = line.strip().split(b"\t")
            tabs = cells[0].strip().lower() in _HEADERS or (len(cells) == 3 and len(line.split()) == 3)
            if cells[0].strip().lower() in _HEADERS:
                continue
        question, document, text = _qrels_columns(line, tabs, where)
        grade = _number(text, where, "a grade")
        row = qrels.setdefault(question, {})
        if row.setdefault(document, grade) != grade:
            raise DataError(f"{where}: question {question!r}, document {document!r} has the grade {row[document]:g} "
                            f"already, got {grade:g}; expected one grade a pair")
    if not qrels:
        raise DataError(f"{path}: no judgement; expected lines of question, iteration, document, grade")
    return qrels


def _qrels_columns(line: bytes, tabs: bool, where: str) -> tuple[str, str, str]:
    cells = [cell.strip() for cell in line.split(b"\t")] if tabs else line.split()
    columns = [cell.decode("utf-8") for cell in cells]
    expected = 3 if tabs else 4
    if len(columns) != expected or not all(columns):
        form = "question, document, grade (tabs between them)" if tabs else "question, iteration, document, grade"
        raise DataError(f"{where}: expected {expected} columns ({form}), got {len(columns)} in "
                        f"{line.decode('utf-8').strip()[:80]!r}")
    return columns[0], columns[-2], columns[-1]


def read_run(path: str | Path, duplicates: Literal["error", "first"] = "error") -> Run:
    """question id -> (document id, score), best first: by score descending as float64, ties by document id descending
    (in bytes), which is trec_eval's order. The rank column is not read.

    A line without exactly six columns, a score that is no number (infinite ones are allowed), and a pair that stands
    twice are DataErrors with file and line. With duplicates="first" only the best-ranked copy of a document is kept.
    """
    path = Path(path)
    run: Run = {}
    seen: dict[tuple[str, str], int] = {}
    for number, line in _lines(path, "a run file"):
        where = f"{path}:{number}"
        columns = [cell.decode("utf-8") for cell in line.split()]
        if len(columns) != 6:
            raise DataError(f"{where}: expected 6 columns (question, Q0, document, rank, score, name; no blank inside "
                            f"an id), got {len(columns)} in {line.decode('utf-8').strip()[:80]!r}")
        question, document = columns[0], columns[2]
        first = seen.setdefault((question, document), number)
        if first != number and duplicates == "error":
            raise DataError(f"{where}: question {question!r}, document {document!r} stands already in line {first}; "
                            "expected each pair once")
        run.setdefault(question, []).append((document, _number(columns[4], where, "a score", infinite=True)))
    if not run:
        raise DataError(f"{path}: no result; expected lines of question, Q0, document, rank, score, name")
    return {question: _ordered(results) for question, results in run.items()}


def _ordered(results: list[tuple[str, float]]) -> list[tuple[str, float]]:
    best: dict[str, float] = {}
    for document, score in sorted(results, key=lambda pair: (pair[1], pair[0].encode("utf-8")), reverse=True):
        best.setdefault(document, score)
    return list(best.items())


_TOPIC = re.compile(r"<num>\s*(?:Number:)?\s*(\S+?)\s*(?:</num>)?\s*<title>\s*(?:Topic:)?\s*(.*?)\s*(?:</title>|<|\Z)",
                    re.IGNORECASE | re.DOTALL)


def read_topics(path: str | Path) -> dict[str, str]:
    """topic id -> text, from lines of id and text with a tab between them, or from TREC's <top><num><title> form."""
    path = Path(path)
    text = decode(read_bytes(path, "topics"), path)
    topics: dict[str, str] = {}
    if re.search(r"<top>", text, re.IGNORECASE):
        for block in re.split(r"<top>", text, flags=re.IGNORECASE)[1:]:
            match = _TOPIC.search(block)
            if match is None or not match[2]:
                raise DataError(f"{path}: expected <num> and <title> in each <top>, got {block.strip()[:80]!r}")
            topics[match[1]] = " ".join(match[2].split())
    else:
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            topic, tab, query = line.strip("\r").partition("\t")
            if not tab or not topic.strip() or not query.strip():
                raise DataError(f"{path}:{number}: expected id, tab, text of the question, got {line.strip()[:80]!r}")
            if topic.strip() in topics:
                raise DataError(f"{path}:{number}: topic {topic.strip()!r} stands twice; expected each id once")
            topics[topic.strip()] = query.strip()
    if not topics:
        raise DataError(f"{path}: no topic; expected lines of id, tab, text, or <top> blocks")
    return topics
