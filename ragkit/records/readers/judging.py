"""Results of questions, one by one, turned into the places of judged documents, and what is to be told of them.

Knows no file: runfiles.py reads them. The arrays of a big file are made in bigruns.py under the same rules.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import numpy as np

from ragkit.errors import DataError
from ragkit.records.lookalikes import codes, lookalikes, visible_form
from ragkit.records.questions import Qrels
from ragkit.records.runs import JudgedRun, Note, RunRules

Result = tuple[str, float, float]
"""(document, score, place): the place decides between equal scores where the rules say "rank". A score of NaN means
that the list has no scores and stands in its own order."""

EXAMPLES = 5

_TEXTS = {
    "ties": "results share their score with one above them in the same question",
    "duplicates": "later copies of a document of the same question were dropped; the ranks closed up",
    "missing": "questions of the qrels have no result",
    "unknown_questions": "questions of the run are not in the qrels and were passed over",
    "similar_ids": "gold ids were not found, and the run holds an id that looks the same and is other bytes",
    "self": "documents whose id is the question's were dropped",
}


class Notes:
    """Counts and first examples by kind, in the order in which kinds are told."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = {}

    def add(self, kind: str, example: str, count: int = 1) -> None:
        """Tell of `count` more of a kind; only the first few examples are kept."""
        if not count:
            return
        self._counts[kind] += count
        examples = self._examples.setdefault(kind, [])
        if len(examples) < EXAMPLES:
            examples.append(example)

    def similar_ids(self, question: str, lost: Iterable[str], returned: Iterable[str]) -> None:
        """Tell of the gold ids that were not returned where one that looks the same was."""
        for gold, other in lookalikes(lost, sorted(returned)):
            self.add("similar_ids", f"question {codes(question)}: gold {codes(gold)}, run {codes(other)}")

    def coverage(self, questions: Iterable[str], lengths: Iterable[int], unknown: Iterable[str]) -> None:
        """Tell of questions that only the qrels or only the run holds."""
        missing = [question for question, length in zip(questions, lengths, strict=True) if not length]
        for kind, some in (("missing", missing), ("unknown_questions", unknown)):
            for question in some:
                self.add(kind, question)
        for gold, other in lookalikes(missing, unknown):
            self.add("similar_ids", f"question of the qrels {codes(gold)}, of the run {codes(other)}")

    def finished(self) -> tuple[Note, ...]:
        """The notes, in the order in which kinds are told."""
        return tuple(Note(kind, self._counts[kind], tuple(self._examples[kind]), text)
                     for kind, text in _TEXTS.items() if self._counts[kind])


def in_order(results: list[Result], rules: RunRules) -> list[Result]:
    """The results best first: by score descending, equal ones as the rules say; without scores as they came.

    >>> [document for document, _, _ in in_order([("a", 1.0, 0), ("c", 1.0, 1), ("b", 2.0, 2)], RunRules())]
    ['b', 'c', 'a']
    """
    if not results or math.isnan(results[0][1]):
        return results
    if rules.float32:
        with np.errstate(over="ignore"):
            short = np.array([score for _, score, _ in results]).astype(np.float32).tolist()
        results = [(document, score, place) for (document, _, place), score in zip(results, short, strict=True)]
    if rules.ties == "rank":
        return sorted(results, key=lambda result: (-result[1], result[2]))
    # Code points are in the order of UTF-8's bytes.
    return sorted(results, key=lambda result: (result[1], result[0]), reverse=True)


def tied_results(scores: list[float]) -> int:
    """How many results of one question share the score of one above them; none of a list without scores."""
    return 0 if not scores or math.isnan(scores[0]) else len(scores) - len(set(scores))


class Judging:
    """Takes the results of one question after the other; `finish` gives the run. `where` is told in errors."""

    def __init__(self, qrels: Qrels, rules: RunRules, where: str = "") -> None:
        self._qrels, self._rules, self._notes = qrels, rules, Notes()
        self._where = f"{where}: " if where else ""
        self._place = {question: place for place, question in enumerate(qrels)}
        self._answered = np.zeros(len(qrels), dtype=np.bool_)
        self._lengths = np.zeros(len(qrels), dtype=np.int64)
        self._unknown: list[str] = []
        self._items: dict[int, list[tuple[int, float, bool]]] = {}  # question's place -> (rank, grade, copy)

    def ordered(self, question: str, results: list[Result]) -> list[tuple[str, float]]:
        """(document, score) best first, after the rules on ids, on the question's own id and on copies."""
        rules = self._rules
        if rules.normalize_ids:
            results = [(visible_form(document), score, place) for document, score, place in results]
        if rules.drop_self:
            kept = [result for result in results if result[0] != question]
            self._notes.add("self", question, len(results) - len(kept))
            results = kept
        results = in_order(results, rules)
        best: dict[str, float] = {}
        for document, score, _ in results:
            best.setdefault(document, score)
        if len(best) < len(results):
            self._copies(question, results, len(results) - len(best))
        self._ties(question, list(best.values()))
        return list(best.items())

    def _copies(self, question: str, results: list[Result], count: int) -> None:
        document = Counter(document for document, _, _ in results).most_common(1)[0][0]
        if self._rules.duplicates == "error":
            raise DataError(f"{self._where}question {question!r}: document {document!r} stands twice; "
                            "expected each pair once (or duplicates: first)")
        self._notes.add("duplicates", f"question {question}: document {document}", count)

    def _ties(self, question: str, scores: list[float]) -> None:
        tied = tied_results(scores)
        if tied:
            score, count = Counter(scores).most_common(1)[0]
            self._notes.add("ties", f"question {question}: {count} results at {score:g}", tied)

    def add(self, question: str, results: list[Result]) -> None:
        """Judge the results of a question; one that the qrels lack is noted, one that comes twice is a DataError."""
        if self._rules.normalize_ids:
            question = visible_form(question)
        place = self._place.get(question)
        if place is None:
            self._unknown.append(question)
            return
        if self._answered[place]:
            raise DataError(f"{self._where}question {question!r} stands twice in the run; expected each id once")
        row = self._qrels[question]
        ids = [document for document, _ in self.ordered(question, results)]
        if self._rules.document_of is not None:
            ids = list(map(self._rules.document_of, ids))
        self._similar(question, set(ids))
        if self._rules.judged_only:
            ids = [document for document in ids if document in row]
        self._answered[place] = True
        self._lengths[place] = len(ids)
        seen: set[str] = set()
        items = self._items[place] = []
        for rank, document in enumerate(ids, start=1):
            if document in seen:
                items.append((rank, 0.0, True))
            elif document in row:
                items.append((rank, row[document], False))
            seen.add(document)

    def _similar(self, question: str, returned: set[str]) -> None:
        lost = [gold for gold in self._qrels[question] if gold not in returned]
        odd_gold = [gold for gold in lost if visible_form(gold) != gold]
        odd = returned if odd_gold else [document for document in returned if not document.isascii()]
        if odd:
            self._notes.similar_ids(question, lost, odd)

    def finish(self, name: str) -> JudgedRun:
        """The run, of all questions that were added."""
        questions = tuple(self._qrels)
        self._notes.coverage(questions, self._lengths.tolist(), self._unknown)
        places = sorted(self._items)
        items = [item for place in places for item in self._items[place]]
        rows = np.repeat(np.array(places, dtype=np.int64), [len(self._items[place]) for place in places])
        ranks, grades, copies = zip(*items, strict=True) if items else ((), (), ())
        return JudgedRun(name, questions, self._answered, self._lengths, rows, np.array(ranks, dtype=np.int64),
                         np.array(grades, dtype=np.float64), np.array(copies, dtype=np.bool_), self._notes.finished())
