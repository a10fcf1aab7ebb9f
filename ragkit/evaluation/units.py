"""In which unit a run is scored (chunk, document or gold text), and the projection of its ids onto the gold's ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ragkit.records.gold import MatchReport, project_gold
from ragkit.records.questions import Dataset
from ragkit.records.trajectory import Passage, Trajectory

_TEXT = "gold-text:"


@dataclass(frozen=True)
class Projection:
    """Gold grades by question, and how a passage of the run is named in the unit of the gold.

    In the unit "document" a passage stands for the document it was cut from. Gold texts are units of their own: every
    passage that carries one stands for it, so that the number of relevant things never depends on the chunking. Where
    a question's metadata names `gold_alternatives` (gold id -> ids that do as well), they all stand for that gold. The
    kernel credits each unit at its best rank; later passages of it keep their place and gain nothing.
    """

    unit: str  # "chunk", "document"
    qrels: Mapping[str, Mapping[str, float]]
    text_units: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # question -> passage id -> unit
    report: MatchReport | None = None
    not_indexed: Mapping[str, frozenset[str]] | None = None  # gold that the index lacks; None: the index is unknown

    def index_ids(self, question_id: str) -> frozenset[str] | None:
        """The gold of the question that the index holds; None where nobody knows the index."""
        if self.not_indexed is None:
            return None
        return frozenset(self.qrels.get(question_id, {})) - self.not_indexed.get(question_id, frozenset())

    def name(self, question_id: str, passage: Passage) -> str:
        """The id under which this passage is looked up in the gold of the question."""
        unit = self.text_units.get(question_id, {}).get(passage.id)
        if unit is not None:
            return unit
        return (passage.doc_id or passage.id) if self.unit == "document" else passage.id

    def names(self, question_id: str, passages: Iterable[Passage]) -> tuple[str, ...]:
        return tuple(self.name(question_id, passage) for passage in passages)

    def grade(self, question_id: str, passage: Passage) -> float | None:
        """The grade of a passage, None where nobody judged it."""
        return self.qrels.get(question_id, {}).get(self.name(question_id, passage))


def seen_passages(trajectories: Iterable[Trajectory]) -> dict[str, Passage]:
    """Every passage that stands in some list, by id; a copy with a text is preferred to one without."""
    seen: dict[str, Passage] = {}
    for trajectory in trajectories:
        lists = [retrieval for step in trajectory.steps for retrieval in step.retrievals]
        if trajectory.context is not None:
            lists.append(trajectory.context)
        for retrieval in lists:
            for passage in retrieval.passages:
                known = seen.get(passage.id)
                if known is None or (known.text is None and passage.text is not None):
                    seen[passage.id] = passage
    return seen


def project(
    dataset: Dataset, trajectories: Sequence[Trajectory], indexed: Sequence[Passage] | None = None
) -> Projection:
    """Choose the unit from what the gold ids name, and project gold texts on the passages that are known.

    `indexed` are all passages that could be found, where that is known; else those that were seen stand for them. The
    unit is "document" where the gold names documents that passages were cut from (more gold ids are met as document
    ids than as passage ids), else "chunk".
    """
    known = seen_passages(trajectories)
    known.update({passage.id: passage for passage in indexed or ()})
    gold_ids = {document for grades in dataset.qrels.values() for document, grade in grades.items() if grade > 0}
    documents = {passage.doc_id for passage in known.values() if passage.doc_id is not None}
    chunked = any(p.doc_id is not None and p.doc_id != p.id for p in known.values())
    as_documents, as_passages = len(gold_ids & documents), len(gold_ids & known.keys())
    unit = "document" if chunked and as_documents > as_passages else "chunk"
    alternatives = _alternatives(dataset, Projection(unit, {}), known.values())
    projection = Projection(unit, dataset.qrels, alternatives)
    if any(question.gold_texts for question in dataset.questions):
        _, report = project_gold(dataset, list(known.values()))
        qrels, text_units = _text_units(dataset, report, alternatives)
        projection = Projection(unit, qrels, text_units, report)
    if indexed is None:
        return projection
    units = {projection.name("", passage) for passage in indexed}
    missing = {
        question_id: frozenset(grades) - units - set(projection.text_units.get(question_id, {}).values())
        for question_id, grades in projection.qrels.items()
    }
    return replace(projection, not_indexed={question_id: ids for question_id, ids in missing.items() if ids})


def projection_to_json(projection: Projection) -> dict[str, Any]:
    """What a later report needs to see the gold as this run did; the match report is not kept."""
    missing = projection.not_indexed
    texts = {question_id: dict(units) for question_id, units in projection.text_units.items()}
    return {
        "unit": projection.unit,
        "text_units": texts,
        "text_grades": {q: {u: g for u, g in projection.qrels[q].items()
                            if u.startswith(_TEXT) or u in units.values()} for q, units in texts.items()},
        "not_indexed": None if missing is None else {q: sorted(ids) for q, ids in missing.items()},
    }


def projection_from_json(kept: Mapping[str, Any], dataset: Dataset) -> Projection:
    """The projection of an earlier run, over the data set it was made for."""
    qrels = {question_id: dict(grades) for question_id, grades in dataset.qrels.items()}
    for question_id, grades in kept["text_grades"].items():
        own = qrels.setdefault(question_id, {})
        for passage_id in kept["text_units"][question_id]:
            own.pop(passage_id, None)
        own.update(grades)
    missing = kept["not_indexed"]
    return Projection(
        kept["unit"], qrels, kept["text_units"], None,
        None if missing is None else {q: frozenset(ids) for q, ids in missing.items()},
    )


def _alternatives(
    dataset: Dataset, plain: Projection, known: Iterable[Passage]
) -> dict[str, dict[str, str]]:
    """Question -> passage id -> gold id, for the known passages of each gold that others do as well for."""
    if not any("gold_alternatives" in question.metadata for question in dataset.questions):
        return {}
    passages: dict[str, list[str]] = {}
    for passage in known:
        passages.setdefault(plain.name("", passage), []).append(passage.id)
    found: dict[str, dict[str, str]] = {}
    for question in dataset.questions:
        groups = question.metadata.get("gold_alternatives")
        grades = dataset.qrels.get(question.id, {})
        for gold, others in dict(groups).items() if isinstance(groups, Mapping) else ():
            if gold in grades and isinstance(others, list | tuple):
                names = (gold, *(other for other in others if other not in grades))  # gold itself is no alternative
                ids = (one for name in names for one in passages.get(name, ()))
                found.setdefault(question.id, {}).update(dict.fromkeys(ids, gold))
    return found


def _text_units(
    dataset: Dataset, report: MatchReport, alternatives: Mapping[str, Mapping[str, str]]
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, str]]]:
    """Each gold text is one unit; those that one passage carries together are one, as they are retrieved together.

    A gold text that no passage holds by half, and several only together, is a unit for each of them: all are needed.
    """
    qrels = {question_id: dict(grades) for question_id, grades in dataset.qrels.items()}
    text_units = {question_id: dict(owner) for question_id, owner in alternatives.items()}
    for match in report.matches:
        grade = dataset.by_id[match.question_id].gold_texts[match.index].grade
        grades = qrels.setdefault(match.question_id, {})
        owner = text_units.setdefault(match.question_id, {})
        name = f"{_TEXT}{match.index + 1}"
        if match.together:
            for part, passage_id in enumerate(match.passage_ids, 1):
                _credit(owner, grades, f"{name}.{part}", (passage_id,), grade)
        else:
            _credit(owner, grades, name, match.passage_ids, grade)
    for question_id, owner in text_units.items():
        grades = qrels[question_id]
        for passage_id in owner.keys() & grades.keys():  # judged by id as well: one thing, not two
            grades[owner[passage_id]] = max(grades[owner[passage_id]], grades.pop(passage_id))
    return qrels, text_units


def _credit(
    owner: dict[str, str], grades: dict[str, float], name: str, passage_ids: tuple[str, ...], grade: float
) -> None:
    """Let these passages stand for the unit `name`, merged with every unit that one of them stands for already."""
    met = sorted({owner[passage_id] for passage_id in passage_ids if passage_id in owner})
    unit = met[0] if met else name
    for other in met[1:]:
        grades[unit] = max(grades[unit], grades.pop(other))
        owner.update({passage_id: unit for passage_id, known in owner.items() if known == other})
    owner.update(dict.fromkeys(passage_ids, unit))
    grades[unit] = max(grades.get(unit, grade), grade)
