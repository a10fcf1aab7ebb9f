"""Documents to passages: whole, or cut into chunks with their place in the document. No model and no index here."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Iterator

from ragkit.errors import DataError
from ragkit.records.questions import Document
from ragkit.records.trajectory import Passage

# Where a chunk may end, best first: a paragraph, a sentence (CJK too), a line or clause, a blank.
_BREAKS = tuple(re.compile(pattern) for pattern in (
    r"\n\s*\n", r"[.!?…]+[\"'”’)\]]*\s+|[。！？]+[」』”’）]*", r"\n+|[;:,，、；：]\s*", r"\s+"))


def chunk_corpus(documents: Iterable[Document], size: int | None = None, overlap: int = 0) -> tuple[Passage, ...]:
    """The passages of a corpus, in its order; an id that stands twice is a DataError.

    Without `size` a passage is a document and has its id. With it, a passage is a piece of at most `size` characters
    of the document's text, `f"{doc_id}#{n}"` from n = 0 on, which shares at most `overlap` characters with the one
    before. The title goes in front of every piece and is not counted. metadata start and end are offsets in
    Document.text. A document without title and text gives one blank passage.

    >>> [p.id for p in chunk_corpus([Document("a", "One. Two. Three.")], size=9)]
    ['a#0', 'a#1']
    """
    passages = [passage for document in documents for passage in chunk_document(document, size, overlap)]
    seen: set[str] = set()
    for passage in passages:
        if passage.id in seen:
            raise DataError(f"chunking: the id {passage.id!r} stands twice; rename the document {passage.doc_id!r}")
        seen.add(passage.id)
    return tuple(passages)


def chunk_document(document: Document, size: int | None = None, overlap: int = 0) -> Iterator[Passage]:
    """The passages of one document (see chunk_corpus)."""
    spans = [(0, len(document.text))] if size is None else list(spans_of(document.text, size, overlap))
    for number, (start, end) in enumerate(spans):
        text = "\n".join(part for part in (document.title, document.text[start:end]) if part)
        metadata = {**document.metadata, "start": start, "end": end}
        if document.title:
            metadata["title"] = document.title
        yield Passage(document.id if size is None else f"{document.id}#{number}", text, document.id, None, metadata)


def spans_of(text: str, size: int, overlap: int = 0) -> Iterator[tuple[int, int]]:
    """Spans (start, end) of at most `size` characters that cover the text, cut at the best break in their last half.

    >>> list(spans_of("One. Two. Three.", 9))
    [(0, 9), (10, 16)]
    """
    if size < 1 or not 0 <= overlap < size:
        raise DataError(f"chunking: expected 0 <= overlap < size, got size {size}, overlap {overlap}")
    breaks = [[match.end() for match in pattern.finditer(text)] for pattern in _BREAKS]
    start, length = _skip_blanks(text, 0), len(text.rstrip())
    if start >= length:
        yield (0, len(text))  # nothing but blanks: kept as it is, told apart later
        return
    while start < length:
        end = length if length - start <= size else _cut(text, breaks, start, start + size)
        stripped = start + len(text[start:end].rstrip())
        yield (start, stripped)
        if end >= length:
            return
        start = max(_resume(breaks[-1], end, overlap), start + 1)
        start = _skip_blanks(text, start)


def fingerprint(size: int | None, overlap: int) -> str:
    """What tells two ways of cutting apart.

    >>> fingerprint(None, 0), fingerprint(400, 50)
    ('whole:1', 'characters:1:400:50')
    """
    return "whole:1" if size is None else f"characters:1:{size}:{overlap}"


def _cut(text: str, breaks: list[list[int]], start: int, limit: int) -> int:
    # A break may stand one blank beyond the limit: that blank is cut off again.
    reach = limit + text[limit].isspace()
    for positions in breaks:
        place = bisect.bisect_right(positions, reach) - 1
        if place >= 0 and positions[place] > (start + limit) // 2:
            return positions[place]
    return limit


def _resume(blanks: list[int], end: int, overlap: int) -> int:
    if not overlap:
        return end
    place = bisect.bisect_left(blanks, end - overlap)
    return blanks[place] if place < len(blanks) and blanks[place] < end else end - overlap


def _skip_blanks(text: str, start: int) -> int:
    while start < len(text) and text[start].isspace():
        start += 1
    return start
