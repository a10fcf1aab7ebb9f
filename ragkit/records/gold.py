"""Gold given as text, projected on the passages of an index: grades for passage ids, and a report of what matched.

The search itself is in textmatch.py; checking ids is in labels.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ragkit.records.questions import Dataset, Document, GoldText, Qrels, text_id
from ragkit.records.textmatch import PassageTexts, Share, normalise, tokens
from ragkit.records.trajectory import Passage

MatchKind = Literal["exact", "fuzzy", "gone"]
GONE_PREFIX = "gone:"
_HALF = 0.5  # a passage that holds this much of a gold text carries it
_LEAST_GAIN = 0.1  # where none holds half, a passage must add this much to be one of those that carry it together
_FUZZY_TOKENS = 4  # shorter snippets match exactly or not at all
_WHOLE = 0.999


@dataclass(frozen=True, slots=True)
class GoldMatch:
    """How one gold text was found: the passages that carry it, and how much of it they hold together (0..1)."""

    question_id: str
    index: int  # its place in Question.gold_texts
    kind: MatchKind
    passage_ids: tuple[str, ...]
    coverage: float
    preview: str
    together: bool = False  # none of them holds half of it: all are needed


@dataclass(frozen=True, slots=True)
class MatchReport:
    """The outcome of all gold texts of a dataset on one set of passages."""

    matches: tuple[GoldMatch, ...] = ()
    n_passages: int = 0
    replaced: int = 0  # grades of whole documents that gave way to the passages in them

    def count(self, kind: MatchKind) -> int:
        """How many gold texts were found in this way."""
        return sum(match.kind == kind for match in self.matches)

    @property
    def gone(self) -> tuple[GoldMatch, ...]:
        """The gold texts that are in no passage."""
        return tuple(match for match in self.matches if match.kind == "gone")

    def __str__(self) -> str:
        return (f"{len(self.matches)} gold texts on {self.n_passages} passages: {self.count('exact')} exact, "
                f"{self.count('fuzzy')} fuzzy, {self.count('gone')} gone")


@dataclass(frozen=True, slots=True)
class _Found:
    kind: MatchKind
    numbers: tuple[int, ...] = ()
    coverage: float = 0.0
    together: bool = False


_NOTHING = _Found("gone")


def project_gold(dataset: Dataset, passages: Sequence[Passage]) -> tuple[Qrels, MatchReport]:
    """Grades of passages from the gold texts of the questions, merged over dataset.qrels, and the match report.

    A gold text is worth its grade on each passage that holds it whole (exact: white space, case and Unicode form do
    not count). Where no passage holds it whole, on each that holds at least half of it; where none does, on the fewest
    best ones that hold it together. What is not found exactly is looked for by overlap of word pairs, rare words
    weighing more (fuzzy: at least half of it; less is another text). A gold text with document_id is looked for in the
    passages of that document, by the span where start and end are given (offsets of the document's text).

    A gold text that is gone gets an id that no index has ("gone:…"): the question keeps its label, and recall counts
    the evidence as missed, instead of rising because a chunker lost it. Where a passage gets a grade from a text, the
    grade of the whole document that it was cut from is dropped for that question: one evidence is not counted twice.
    Each passage gets its highest grade. The work is done once for all questions; the result is deterministic.
    """
    projector = _Projector(dataset, passages)
    qrels: dict[str, dict[str, float]] = {question: dict(row) for question, row in dataset.qrels.items()}
    matches: list[GoldMatch] = []
    replaced = 0
    for question in dataset.questions:
        projected: dict[str, float] = {}
        covered: set[str] = set()
        for index, gold in enumerate(question.gold_texts):
            found = projector.find(gold)
            carriers = [projector.passages[number] for number in found.numbers]
            text = projector.text_of(gold)
            matches.append(GoldMatch(question.id, index, found.kind, tuple(p.id for p in carriers), found.coverage,
                                     " ".join(text.split())[:80], found.together))
            ids = [p.id for p in carriers] or [GONE_PREFIX + text_id(f"{gold.document_id}:{gold.start}:{text}")]
            covered |= {p.doc_id for p in carriers if p.doc_id is not None and p.doc_id not in projector.ids}
            for passage_id in ids:
                projected[passage_id] = max(gold.grade, projected.get(passage_id, gold.grade))
        if projected:
            row = qrels.setdefault(question.id, {})
            replaced += sum(row.pop(document, None) is not None for document in covered)
            for passage_id, grade in projected.items():
                row[passage_id] = max(grade, row.get(passage_id, grade))
    return qrels, MatchReport(tuple(matches), len(projector.passages), replaced)


class _Projector:
    """The passages with what is looked up again and again: their texts' index and the passages of each document."""

    def __init__(self, dataset: Dataset, passages: Sequence[Passage]) -> None:
        self.passages = list({passage.id: passage for passage in reversed(passages)}.values())[::-1]
        self.ids = {passage.id for passage in self.passages}
        self._corpus = dataset.corpus or {}
        snippets = (normalise(self.text_of(gold)) for question in dataset.questions for gold in question.gold_texts)
        self._texts = PassageTexts((passage.text or "" for passage in self.passages), snippets)
        self._of_document: dict[str, list[int]] = {}
        for number, passage in enumerate(self.passages):
            for document in {passage.id, passage.doc_id or passage.id}:
                self._of_document.setdefault(document, []).append(number)

    def text_of(self, gold: GoldText) -> str:
        document = self._corpus.get(gold.document_id or "")
        if gold.text.strip() or document is None:
            return gold.text
        return document.text[gold.start:gold.end]

    def find(self, gold: GoldText) -> _Found:
        among = self._of_document.get(gold.document_id) if gold.document_id is not None else None
        if among and gold.start is not None and gold.end is not None:
            found = self._by_span(gold, gold.start, gold.end, among)
            if found.kind != "gone":
                return found
        # An attached index may know nothing of the documents; the text is then looked for in all of it.
        return self._by_text(normalise(self.text_of(gold)), among or None)

    def _by_span(self, gold: GoldText, start: int, end: int, among: list[int]) -> _Found:
        document = self._corpus.get(gold.document_id or "")
        shares: list[Share] = []
        for number in among:
            place = place_in_document(self.passages[number], document)
            if place is not None and place[0] < end and start < place[1]:
                shares.append((number, set(range(max(start, place[0]) - start, min(end, place[1]) - start))))
        return _credit(shares, [1.0] * (end - start), "exact")

    def _by_text(self, snippet: str, among: list[int] | None) -> _Found:
        holders = self._texts.holders(snippet, among)
        if holders:
            return _Found("exact", tuple(holders), 1.0)
        if not snippet:
            return _NOTHING
        words = tokens(snippet)
        overlaps = self._texts.overlaps(words, among)
        pieces = self._texts.pieces(snippet, [number for number, _ in overlaps])
        found = _credit(pieces, [0.0 if character == " " else 1.0 for character in snippet], "exact")
        if found.coverage >= _WHOLE:
            return found
        if len(words) < _FUZZY_TOKENS:
            return _NOTHING
        found = _credit(overlaps, self._texts.weights(words), "fuzzy")
        return found if found.coverage >= _HALF else _NOTHING


def place_in_document(passage: Passage, document: Document | None) -> tuple[int, int] | None:
    """Where a passage stands in its document's text, as (start, end), or None where nobody can tell.

    The offsets in its metadata (start, end) are checked against the document where that is at hand, since they may
    count from its title; without offsets the passage's text is located.
    """
    given = passage.metadata.get("start"), passage.metadata.get("end")
    offsets = (given[0], given[1]) if isinstance(given[0], int) and isinstance(given[1], int) else None
    if offsets is not None and not 0 <= offsets[0] < offsets[1]:
        offsets = None
    if document is None:
        return offsets
    title = len(document.content) - len(document.text) if document.text else 0
    text = (passage.text or "").strip()
    if offsets is not None:
        cut = slice(*offsets)
        in_text, in_content = document.text[cut].strip(), document.content[cut].strip()
        if in_text not in text and in_content and in_content in text:
            return (offsets[0] - title, offsets[1] - title)
        return offsets
    if not text:
        return (0, len(document.text)) if passage.id == document.id else None
    start = document.text.find(text)
    if start < 0:
        if text not in document.content:
            return None
        start = document.content.find(text) - title  # it holds the title, or a part of it
    return (start, start + len(text))


def _credit(shares: Sequence[Share], weights: Sequence[float], kind: MatchKind) -> _Found:
    """The passages that carry a gold text: the whole holders, else the half holders, else the best together.

    `coverage` is the share of the text that all given passages hold together for an exact search, and that the
    credited ones hold for a fuzzy one, whose small overlaps are chance.
    """
    total = sum(weights)
    if not shares or total <= 0:
        return _NOTHING

    def weigh(held: set[int]) -> float:
        return sum(weights[position] for position in held) / total

    worth = {number: weigh(held) for number, held in shares}
    ordered = sorted(shares, key=lambda share: (-worth[share[0]], share[0]))
    chosen = [share for share in ordered if worth[share[0]] >= _WHOLE]
    chosen = chosen or [share for share in ordered if worth[share[0]] >= _HALF]
    pieces = not chosen
    if pieces:
        covered: set[int] = set()
        rest = list(ordered)
        while rest:
            best = max(rest, key=lambda share: (weigh(share[1] - covered), -share[0]))
            if weigh(best[1] - covered) < _LEAST_GAIN:
                break
            chosen.append(best)
            covered |= best[1]
            rest.remove(best)
    counted = shares if kind == "exact" else chosen
    together: set[int] = set().union(*(held for _, held in counted)) if counted else set()
    return _Found(kind, tuple(sorted(number for number, _ in chosen)), weigh(together), pieces) if chosen else _NOTHING
