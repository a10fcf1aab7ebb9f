"""From the ids of chunks to those of documents, where the gold names documents: a map in a file, or a part of the id.

What a later chunk of a document is worth is decided where runs are read and scored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ragkit.errors import DataError, shown
from ragkit.records.files import decode, read_bytes, read_object
from ragkit.records.lookalikes import visible_form
from ragkit.records.readers.trec import is_json


def before_separator(separator: str) -> Callable[[str], str]:
    """A function that gives what stands before the last separator; an id without one is a document's already.

    >>> document_of = before_separator("#")
    >>> document_of("guide#a#3"), document_of("guide"), document_of("#3")
    ('guide#a', 'guide', '#3')
    """
    if not separator:
        raise DataError("chunk separator: expected at least one character, got an empty text")

    def document_of(chunk: str) -> str:
        return chunk.rpartition(separator)[0] or chunk

    return document_of


class DocumentMap:
    """A call gives the document of a chunk; an id that the map lacks is a document's, and kept in `unknown`."""

    def __init__(self, documents: Mapping[str, str]) -> None:
        self._documents = documents
        self.unknown: set[str] = set()

    def __call__(self, chunk: str) -> str:
        document = self._documents.get(chunk)
        if document is None:
            self.unknown.add(chunk)
            return chunk
        return document


def read_document_map(path: str | Path, normalize_ids: bool = False) -> DocumentMap:
    """chunk id -> document id, from lines of chunk, tab, document, or from one JSON object; gzip is understood.

    A line of another form, a value that is no string and a chunk with two documents are DataErrors with the place.
    normalize_ids: ids are taken in their visible form.
    """
    path = Path(path)
    rows = _of_json(path) if is_json(path, "a map of chunks to documents") else _of_lines(path)
    form = visible_form if normalize_ids else str
    found: dict[str, str] = {}
    for where, chunk, document in rows:
        known = found.setdefault(form(chunk), form(document))
        if known != form(document):
            raise DataError(f"{where}: chunk {chunk!r} belongs to {known!r} already, got {document!r}; expected one "
                            "document a chunk")
    if not found:
        raise DataError(f"{path}: no chunk; expected lines of chunk, tab, document, or a JSON object")
    return DocumentMap(found)


def _of_json(path: Path) -> Iterator[tuple[str, str, str]]:
    for chunk, document in read_object(path).items():
        if not isinstance(document, str) or not document:
            raise DataError(f"{path}: chunk {chunk!r}: expected the id of a document (text), got {shown(document)}")
        yield str(path), chunk, document


def _of_lines(path: Path) -> Iterator[tuple[str, str, str]]:
    text = decode(read_bytes(path, "a map of chunks to documents"), path)
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        cells = [cell.strip(" \r") for cell in line.split("\t")]
        if len(cells) != 2 or not all(cells):
            raise DataError(f"{path}:{number}: expected chunk, tab, document, got {shown(line.strip(), 80)}")
        yield f"{path}:{number}", cells[0], cells[1]
