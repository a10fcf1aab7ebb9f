"""What the labels of a dataset are worth, before anything is scored: label states, ids that resolve, texts that match.

How gold texts are matched is in gold.py.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ragkit.errors import DataError
from ragkit.records.gold import MatchReport, project_gold
from ragkit.records.questions import Dataset
from ragkit.records.trajectory import Passage

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class LabelReport:
    """The labels of a dataset. `unknown` are gold ids that no document or passage has; None: there was no corpus to
    look in. `near` pairs an unknown id with a known one that differs in looks alone (zeros, case, invisible signs)."""

    name: str
    labelled: tuple[str, ...]
    unanswerable: tuple[str, ...]
    unlabelled: tuple[str, ...]
    n_gold_ids: int
    unknown: tuple[str, ...] | None = None
    near: tuple[tuple[str, str], ...] = ()
    stray_questions: tuple[str, ...] = ()  # questions that the qrels name and the dataset has not
    contradictions: tuple[str, ...] = ()  # declared unanswerable, and yet with gold
    matches: MatchReport | None = None

    @property
    def n_questions(self) -> int:
        """All questions, whatever their label state."""
        return len(self.labelled) + len(self.unanswerable) + len(self.unlabelled)

    def warnings(self) -> list[str]:
        """What a user should look at, a line each; empty where all is well."""
        lines: list[str] = []
        if self.unknown:
            lines.append(f"{len(self.unknown)} of {self.n_gold_ids} gold ids are unknown: {some(self.unknown)}")
        for unknown, known in self.near[:_SHOWN]:
            lines.append(f"gold id {unknown!a} is unknown, but {known!a} exists: ids are compared byte for byte")
        if self.stray_questions:
            lines.append(f"{len(self.stray_questions)} questions of the qrels are not in the dataset: "
                         f"{some(self.stray_questions)}")
        if self.contradictions:
            lines.append(f"{len(self.contradictions)} questions are declared unanswerable and have gold (they count as "
                         f"unanswerable): {some(self.contradictions)}")
        if self.matches is not None and self.matches.gone:
            lines.append(f"{len(self.matches.gone)} of {len(self.matches.matches)} gold texts are in no passage: "
                         f"{some([match.preview for match in self.matches.gone])}")
        return lines

    def __str__(self) -> str:
        ids = "no corpus to look them up in" if self.unknown is None else f"{len(self.unknown)} unknown"
        lines = [f"{self.name}: {self.n_questions} questions: {len(self.labelled)} labelled, "
                 f"{len(self.unanswerable)} unanswerable, {len(self.unlabelled)} unlabelled; "
                 f"{self.n_gold_ids} gold ids, {ids}"]
        if self.matches is not None and self.matches.matches:
            lines.append(str(self.matches))
        return "\n".join(lines + self.warnings())


def some(ids: Collection[str]) -> str:
    """The first few of many ids, for a message of one line."""
    shown = ", ".join(repr(item) for item in list(ids)[:_SHOWN])
    return shown + (f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else "")


def check_labels(dataset: Dataset, corpus_ids: Iterable[str] | None = None,
                 passages: Sequence[Passage] | None = None) -> LabelReport:
    """Check the labels of `dataset` against the ids of an index or corpus, and its gold texts against passages.

    Without corpus_ids the dataset's own corpus is used, where it has one; likewise its documents for `passages`.
    A gold id that is the document of a passage is known, too: projection to chunks comes later.
    """
    states = dataset.label_states()
    by_state = {state: tuple(q for q, is_ in states.items() if is_ == state)
                for state in ("labelled", "unanswerable", "unlabelled")}
    gold_ids = list(dict.fromkeys(document for row in dataset.qrels.values() for document in row))
    known = _known_ids(dataset, corpus_ids, passages)
    unknown = None if known is None else tuple(document for document in gold_ids if document not in known)
    if passages is None and dataset.corpus is not None and any(q.gold_texts for q in dataset.questions):
        passages = [Passage(d.id, d.content, doc_id=d.id) for d in dataset.corpus.values()]
    return LabelReport(
        name=dataset.name,
        **by_state,
        n_gold_ids=len(gold_ids),
        unknown=unknown,
        near=_near(unknown, known) if unknown and known else (),
        stray_questions=tuple(question for question in dataset.qrels if question not in states),
        contradictions=tuple(
            q.id for q in dataset.questions
            if q.unanswerable and (q.gold_texts or any(g > 0 for g in dataset.qrels.get(q.id, {}).values()))
        ),
        matches=None if passages is None else project_gold(dataset, passages)[1],
    )


def _known_ids(dataset: Dataset, corpus_ids: Iterable[str] | None,
               passages: Sequence[Passage] | None) -> set[str] | None:
    if corpus_ids is None and passages is None:
        return None if dataset.corpus is None else set(dataset.corpus)
    known = set(corpus_ids or ())
    for passage in passages or ():
        known |= {passage.id, passage.doc_id or passage.id}
    return known


def _looks(identifier: str) -> str:
    plain = unicodedata.normalize("NFKC", identifier).casefold()
    plain = "".join(c for c in plain if unicodedata.category(c) not in ("Cf", "Cc") and not c.isspace())
    return plain.lstrip("0") or "0"


def _near(unknown: Sequence[str], known: Iterable[str]) -> tuple[tuple[str, str], ...]:
    wanted = {_looks(identifier) for identifier in unknown}
    looks: dict[str, str] = {}
    for identifier in sorted(known):
        key = _looks(identifier)
        if key in wanted:
            looks.setdefault(key, identifier)
    return tuple((identifier, looks[_looks(identifier)]) for identifier in unknown if _looks(identifier) in looks)


def require_known_labels(report: LabelReport) -> None:
    """Raise a DataError where more than half of the gold ids are unknown, or no gold text at all is in the passages:
    scores against such labels would say nothing of the app."""
    if report.unknown and 2 * len(report.unknown) > report.n_gold_ids:
        hint = ""
        if report.near:
            hint = f" ({report.near[0][0]!a} may be {report.near[0][1]!a})"
        elif any(mark in identifier for identifier in report.unknown for mark in (",", ";", "|")):
            hint = " (a cell with several ids separates them by ';')"
        raise DataError(f"{report.name}: {len(report.unknown)} of {report.n_gold_ids} gold ids are not in the corpus: "
                        f"{some(report.unknown)}{hint}; expected ids of its documents or passages: "
                        "see `ragkit labels check`")
    matches = report.matches
    if matches is not None and matches.matches and len(matches.gone) == len(matches.matches):
        raise DataError(f"{report.name}: none of {len(matches.matches)} gold texts is in the {matches.n_passages} "
                        f"passages, the first is {matches.gone[0].preview!r}; expected passages of the same sources: "
                        "see `ragkit labels check`")
