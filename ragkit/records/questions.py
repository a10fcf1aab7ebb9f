"""What is asked and what is known about the right result: questions, documents, labels. No file formats here."""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from types import MappingProxyType
from typing import Any, Literal

from ragkit.errors import DataError, shown

LabelState = Literal["labelled", "unanswerable", "unlabelled"]
Qrels = Mapping[str, Mapping[str, float]]
"""question id -> document (or chunk) id -> grade; a grade <= 0 is judged but not relevant."""

_EMPTY: Mapping[str, Any] = MappingProxyType({})
_TEXT_ID = re.compile(r"sha1:[0-9a-f]{16}")


def text_id(text: str) -> str:
    """The id of a text that was given none: "sha1:" and the first 16 hex digits of the text's SHA-1.

    >>> text_id("abc")
    'sha1:a9993e364706816a'
    """
    return "sha1:" + hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:16]


def is_text_id(identifier: str) -> bool:
    """Whether this has the form of an id that `text_id` makes.

    >>> is_text_id("sha1:a9993e364706816a"), is_text_id("doc-7")
    (True, False)
    """
    return _TEXT_ID.fullmatch(identifier) is not None


def checked_id(value: object, what: str) -> str:
    """A non-empty string id, kept byte for byte; anything else is a DataError ("007" is not 7)."""
    if not isinstance(value, str):
        raise DataError(f"{what}: an id must be a string, got {type(value).__name__} {shown(value)}")
    if not value:
        raise DataError(f"{what}: an id must not be empty")
    return value


def is_finite(value: object) -> bool:
    """Whether this is a number (no bool) that a finite float can hold.

    >>> is_finite(0.5), is_finite(10**400), is_finite(float("inf")), is_finite("1")
    (True, False, False, False)
    """
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


@dataclass(frozen=True, slots=True)
class GoldText:
    """Gold given as text: a snippet, or the span [start, end) of a source document, worth `grade`."""

    text: str = ""
    document_id: str | None = None
    start: int | None = None
    end: int | None = None
    grade: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise DataError(f"gold text: expected a text (a string), got {shown(self.text)}")
        if self.document_id is not None:
            checked_id(self.document_id, "gold text: document_id")
        for name, place in (("start", self.start), ("end", self.end)):
            if place is not None and (isinstance(place, bool) or not isinstance(place, int)):
                raise DataError(f"gold text: expected a whole number for {name}, got {shown(place)}")
        if not is_finite(self.grade):
            raise DataError(f"gold text: expected a grade (a finite number), got {shown(self.grade)}")
        has_span = self.document_id is not None and self.start is not None and self.end is not None
        if not self.text.strip() and not has_span:
            raise DataError("gold text: expected a text, or document_id with start and end")
        if has_span and not 0 <= (self.start or 0) < (self.end or 0):
            raise DataError(f"gold text: expected 0 <= start < end, got {self.start}, {self.end}")


@dataclass(frozen=True, slots=True)
class Question:
    """What the user asked. `answers` are reference answers (the first is the one judges see)."""

    id: str
    text: str
    answers: tuple[str, ...] = ()
    category: str | None = None
    unanswerable: bool = False
    gold_texts: tuple[GoldText, ...] = ()
    tags: tuple[str, ...] = ()
    history: tuple[Mapping[str, str], ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)

    def __post_init__(self) -> None:
        checked_id(self.id, "question")
        if not isinstance(self.text, str) or not self.text.strip():
            raise DataError(f"question {self.id!r}: expected a non-empty text, got {shown(self.text)}")


@dataclass(frozen=True, slots=True)
class Document:
    """A source document (or chunk) of the corpus. `content` is what is indexed: title and text."""

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)

    def __post_init__(self) -> None:
        checked_id(self.id, "document")

    @property
    def content(self) -> str:
        """Title and text, one line break between them, without the empty one."""
        return "\n".join(part for part in (self.title, self.text) if part)


@dataclass(frozen=True)
class Dataset:
    """Questions with what is known about them. `qrels` and `corpus` are optional; absent is not empty."""

    questions: tuple[Question, ...]
    qrels: Qrels = field(default_factory=lambda: _EMPTY)
    corpus: Mapping[str, Document] | None = None
    name: str = "dataset"

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for question in self.questions:
            if question.id in seen:
                raise DataError(f"{self.name}: question id {question.id!r} stands twice; ids must be unique")
            seen.add(question.id)

    @cached_property
    def by_id(self) -> dict[str, Question]:
        """The questions by their id."""
        return {question.id: question for question in self.questions}

    def label_state(self, question_id: str) -> LabelState:
        """labelled: some grade > 0 or a gold text; unanswerable: declared, or judged with nothing relevant."""
        question = self.by_id.get(question_id)
        grades = self.qrels.get(question_id, {})
        if question is not None and question.unanswerable:
            return "unanswerable"
        if any(grade > 0 for grade in grades.values()) or (question is not None and question.gold_texts):
            return "labelled"
        return "unanswerable" if grades else "unlabelled"

    def label_states(self) -> dict[str, LabelState]:
        """The label state of each question, by its id."""
        return {question.id: self.label_state(question.id) for question in self.questions}

    def limit(self, count: int | None, seed: int = 0) -> Dataset:
        """A seeded sample of `count` questions in their old order; all of them where count is None."""
        if count is None or count >= len(self.questions):
            return self
        if count < 1:
            raise DataError(f"limit: expected at least 1 question, got {count}")
        chosen = set(random.Random(seed).sample(range(len(self.questions)), count))
        return replace(self, questions=tuple(q for i, q in enumerate(self.questions) if i in chosen))

    def fingerprints(self) -> dict[str, str]:
        """Hashes of the questions, the labels and the corpus, to tell whether two runs saw the same data."""
        questions: Sequence[object] = [[q.id, q.text, q.answers, q.category, q.unanswerable] for q in self.questions]
        gold = [[q.id, [[g.text, g.document_id, g.start, g.end, g.grade] for g in q.gold_texts]]
                for q in self.questions if q.gold_texts]
        rows = ((q.id, self.qrels.get(q.id, {})) for q in self.questions)
        labels = [sorted((q, d, float(g)) for q, row in rows for d, g in row.items()), gold]
        corpus = None if self.corpus is None else sorted((d.id, d.content) for d in self.corpus.values())
        return {"questions": _digest(questions), "labels": _digest(labels), "corpus": _digest(corpus)}


def _digest(value: object) -> str:
    data = json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
    return hashlib.sha256(data).hexdigest()[:16]
