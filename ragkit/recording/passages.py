"""What an app calls a passage -> Passage: LangChain documents, pairs, dicts, texts, told by shape. No vendor import."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ragkit.errors import DataError
from ragkit.records.questions import text_id
from ragkit.records.trajectory import Passage

_ID_KEYS = ("id", "_id", "chunk_id", "passage_id")
_DOCUMENT_KEYS = ("doc_id", "document_id", "source")
_TEXT_KEYS = ("text", "page_content", "content", "contents", "document", "passage")
_TEXT_ATTRIBUTES = ("page_content", "content", "text")


def as_passage(obj: Any) -> Passage:
    """One passage out of a Passage, a LangChain (or like) Document, (id, text), (document, score), a dict or a text.

    A bare string is the *text* of a passage, whose id is then `text_id(text)`; where only an id is known, give
    `(id, None)`. The id is the document's own, else the one in its metadata (id, _id, chunk_id, passage_id), else
    generated from the text. `doc_id`, `document_id` or `source` in the metadata name the document it was cut from:
    chunks share it, so it is never taken for the passage's id. Anything else is a DataError.

    >>> as_passage(("d1", "Water boils at 100 degrees."))
    Passage(id='d1', text='Water boils at 100 degrees.', doc_id=None, score=None, metadata=...)
    >>> as_passage({"_id": 7, "text": "seven", "score": 0.5}).id
    '7'
    """
    if isinstance(obj, Passage):
        return obj
    if isinstance(obj, str):
        return Passage(text_id(obj), obj)
    own = getattr(obj, "__dict__", None)
    if own is not None and isinstance(own.get("page_content"), str):
        return _from_document(own, own.get("score"))
    if isinstance(obj, Mapping):
        return _from_mapping(obj)
    if isinstance(obj, tuple) and len(obj) == 2:
        return _from_pair(*obj)
    inner = getattr(obj, "node", None)  # llama-index keeps the score beside the node
    if inner is not None and hasattr(obj, "score"):
        return _scored(as_passage(inner), obj.score)
    for attribute in _TEXT_ATTRIBUTES:
        text = getattr(obj, attribute, None)
        if isinstance(text, str):
            metadata = getattr(obj, "metadata", None) or getattr(obj, "meta", None) or {}
            given = getattr(obj, "id", None) or getattr(obj, "node_id", None)
            return _build(given, text, metadata, None, getattr(obj, "score", None))
    kind = type(obj).__name__
    raise DataError(f"passage: expected a Passage, Document, (id, text), dict or text, got {kind} {obj!r}")


def as_passages(objects: Any) -> tuple[Passage, ...]:
    """All passages of a list, in its order. A string or something that is no list of passages is a DataError."""
    if isinstance(objects, str | bytes | Mapping) or not isinstance(objects, Iterable):
        raise DataError(f"passages: expected a list of passages, got {type(objects).__name__} {objects!r}")
    return tuple([as_passage(obj) for obj in objects])


def is_document(obj: Any) -> bool:
    """Whether this is a LangChain Document, told by its shape (`page_content` and `metadata`)."""
    return isinstance(getattr(obj, "page_content", None), str) and isinstance(getattr(obj, "metadata", None), Mapping)


def documents_in(value: Any) -> Sequence[Any] | None:
    """The value itself where it is a non-empty list of Documents, or of (Document, score); else None."""
    if not isinstance(value, list | tuple) or not value:
        return None
    if all(is_document(item) for item in value):
        return value
    if all(isinstance(item, tuple) and len(item) == 2 and is_document(item[0]) for item in value):
        return value
    return None


def _from_document(own: Mapping[str, Any], score: Any) -> Passage:
    """A LangChain Document out of its own attributes: to ask a pydantic model for one that it lacks takes far longer
    than all the rest."""
    metadata = own.get("metadata") or own.get("meta") or {}
    return _build(own.get("id") or own.get("node_id"), own["page_content"], metadata, None, score)


def _from_pair(first: Any, second: Any) -> Passage:
    own = getattr(first, "__dict__", None)
    if own is not None and isinstance(own.get("page_content"), str) and _is_number(second):
        return _from_document(own, second)
    if isinstance(first, str | int) and not isinstance(first, bool):
        if second is None or isinstance(second, str):
            return Passage(str(first), second)
        if _is_number(second):
            return Passage(str(first), score=_as_score(second))
    elif _is_number(second):
        return _scored(as_passage(first), second)
    raise DataError(f"passage: expected (id, text) or (document, score), got ({first!r}, {second!r})")


def _from_mapping(obj: Mapping[Any, Any]) -> Passage:
    text = next((obj[key] for key in _TEXT_KEYS if isinstance(obj.get(key), str)), None)
    metadata = obj.get("metadata")
    given = next((obj[key] for key in _ID_KEYS if obj.get(key) not in (None, "")), None)
    fields = {key: obj[key] for key in _DOCUMENT_KEYS if obj.get(key) is not None}
    merged = {**fields, **metadata} if isinstance(metadata, Mapping) else fields
    return _build(given, text, merged, metadata if isinstance(metadata, Mapping) else {}, obj.get("score"))


def _build(
    given: Any, text: str | None, metadata: Mapping[str, Any], keep: Mapping[str, Any] | None, score: Any
) -> Passage:
    own = _as_id(given)
    named = _first_id(metadata, _ID_KEYS)
    # A store that was given no ids makes random ones; the user's own id in the metadata is then the one to keep,
    # and the one that a second retriever over the same chunks (BM25) can know.
    if named and (own is None or _is_random(own)):
        own = named
    if own is None:
        if text is None:
            raise DataError("passage: expected an id or a text, got neither")
        own = text_id(text)
    kept = dict(metadata if keep is None else keep)
    return Passage(own, text, _first_id(metadata, _DOCUMENT_KEYS), _as_score(score), kept)


def _first_id(metadata: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    for key in keys:
        value = metadata.get(key)
        if value is not None and (found := _as_id(value)) is not None:
            return found
    return None


def _scored(passage: Passage, score: Any) -> Passage:
    number = _as_score(score)
    return passage if number is None else replace(passage, score=number)


def _as_score(score: Any) -> float | None:
    """The score as a float; None for what is no score of one passage (an array, an int that no float holds, NaN)."""
    if score is None or not _is_number(score):
        return None
    try:
        number = float(score)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def _as_id(value: Any) -> str | None:
    if type(value) is str:
        return value or None
    if value is None or isinstance(value, bool) or value == "":
        return None
    return str(value) if isinstance(value, (str, int, uuid.UUID)) else None


def _is_number(value: Any) -> bool:
    if type(value) is float:
        return True
    if value is None or isinstance(value, (bool, str, bytes)):
        return False
    return hasattr(value, "__float__")  # numpy's scalars too


def _is_random(value: str) -> bool:
    if len(value) < 32:
        return False
    try:
        return uuid.UUID(value).version == 4
    except ValueError:
        return False
