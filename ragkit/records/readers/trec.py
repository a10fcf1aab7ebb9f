"""TREC's files of labels and topics: qrels (four columns, BEIR's three with a header, or JSON) and topics.

Also the lines that every TREC file is made of. Run files are in runfiles.py; scoring is not here.
"""

from __future__ import annotations

import gzip
import io
import math
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from ragkit.errors import DataError, shown
from ragkit.records.files import decode, read_bytes, read_object
from ragkit.records.lookalikes import visible_form
from ragkit.records.questions import is_finite

BOM = b"\xef\xbb\xbf"
_HEADERS = (b"query-id", b"query_id", b"qid", b"queryid")


def open_bytes(path: Path, expected: str) -> io.BufferedReader:
    """The bytes of a file as a stream, unpacked where it is gzip; one that cannot be opened is a DataError."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise DataError(f"{path}: is a pipe or a device; expected {expected} as a file, which is read more than once: "
                        "save it first")
    try:
        file = path.open("rb")
    except OSError:
        read_bytes(path, expected)  # says why, in the words that every reader uses
        raise
    packed = file.peek(2)[:2] == b"\x1f\x8b"
    return io.BufferedReader(gzip.GzipFile(fileobj=file)) if packed else file


def trec_lines(path: Path, expected: str) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line) of the lines that are not blank, without a byte order mark.

    They are cut as bytes: only ASCII blanks separate columns, and an id with a no-break space or a zero-width sign
    stays whole.
    """
    try:
        with open_bytes(path, expected) as file:
            for number, line in enumerate(file, start=1):
                if number == 1:
                    if line[:2] in (b"\xff\xfe", b"\xfe\xff"):
                        decode(line, path)  # says that UTF-16 is not read
                    line = line.removeprefix(BOM)  # noqa: PLW2901
                if not line.isspace():
                    yield number, line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path}: broken gzip data ({error}); pack or copy the file again") from None


def number_of(cell: bytes, where: str, what: str, infinite: bool = False) -> float:
    """The number that a cell holds, with a point in every locale; NaN, 1_0 and 0,95 are refused."""
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if b"_" in cell or math.isnan(value) or (math.isinf(value) and not infinite):
        raise DataError(f"{where}: expected {what} (a number with a decimal point), got {shown(decode(cell, where))}")
    return value


def is_comment(line: bytes) -> bool:
    """Whether a line that is no row may be passed over: its first sign is '#'. A '#' inside an id is data."""
    return line.lstrip().startswith(b"#")


def read_qrels(path: str | Path, normalize_ids: bool = False) -> dict[str, dict[str, float]]:
    """question id -> document id -> grade, ids byte for byte, grades as numbers (also fractions).

    TREC's four columns (question, iteration, document, grade; any blanks between them), three columns with tabs and
    BEIR's header, or one JSON object; gzip is understood. Lines that start with '#' and are no row are comments. A line
    of another form, a grade that is no number, and a pair with two different grades are DataErrors with file and
    line; a pair repeated with the same grade is read once. In JSON an empty object is a question to which nothing is
    relevant. normalize_ids: ids are taken in their visible form.
    """
    path = Path(path)
    rows: Iterator[tuple[int, str, str | None, float]] = _json_rows(path) if is_json(path, "qrels") else _rows(path)
    qrels: dict[str, dict[str, float]] = {}
    for number, question, document, grade in rows:
        if normalize_ids:
            question, document = visible_form(question), document and visible_form(document)  # noqa: PLW2901
        row = qrels.setdefault(question, {})
        if document is None:
            continue
        if row.setdefault(document, grade) != grade:
            where = f"{path}:{number}" if number else str(path)
            raise DataError(f"{where}: question {question!r}, document {document!r} has the grade {row[document]:g} "
                            f"already, got {grade:g}; expected one grade a pair")
    if not qrels:
        raise DataError(f"{path}: no judgement; expected lines of question, iteration, document, grade")
    return qrels


def _rows(path: Path) -> Iterator[tuple[int, str, str, float]]:
    grades: dict[bytes, float] = {}  # few distinct ones: each is read once
    tabs: bool | None = None
    for number, line in trec_lines(path, "qrels"):
        if tabs is None:
            cells = line.strip().split(b"\t")
            header = cells[0].strip().lower() in _HEADERS
            tabs = header or (len(cells) == 3 and len(line.split()) == 3) or None
            if header:
                continue
        cells = [cell.strip() for cell in line.split(b"\t")] if tabs else line.split()
        if len(cells) != (3 if tabs else 4) or not all(cells):
            if is_comment(line):
                continue
            form = "3 columns (question, document, grade; tabs between them)" if tabs else (
                "4 columns (question, iteration, document, grade)")
            raise DataError(f"{path}:{number}: expected {form}, got {len(cells)} in {told(line, path, number)}")
        grade = grades.get(cells[-1])
        if grade is None:
            try:
                grade = grades[cells[-1]] = number_of(cells[-1], f"{path}:{number}", "a grade")
            except DataError:
                if is_comment(line):
                    continue
                raise
        tabs = bool(tabs)
        try:
            yield number, cells[0].decode(), cells[-2].decode(), grade
        except UnicodeDecodeError:
            decode(line, path, number)  # says which byte of the line


def told(line: bytes, path: Path, number: int) -> str:
    """A line as an error shows it."""
    return repr(decode(line, path, number).strip()[:80])


def is_json(path: Path, expected: str) -> bool:
    """Whether a file begins as a JSON object does; an id may begin with a brace too."""
    with open_bytes(path, expected) as file:
        return re.match(rb'\s*\{\s*["}]', file.read(4096).removeprefix(BOM)) is not None


def _json_rows(path: Path) -> Iterator[tuple[int, str, str | None, float]]:
    """Of a question without any judgement one row without a document."""
    for question, row in read_object(path).items():
        if not isinstance(row, dict):
            raise DataError(f"{path}: question {question!r}: expected an object of document ids and grades, got "
                            f"{shown(row)}")
        if not row:
            yield 0, question, None, 0.0
        for document, grade in row.items():
            if not is_finite(grade):
                raise DataError(f"{path}: question {question!r}, document {document!r}: expected a grade (a number), "
                                f"got {shown(grade)}")
            yield 0, question, document, float(grade)


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
