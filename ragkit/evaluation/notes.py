"""What a reader must know beside the numbers, in sentences: unknown labels, empty lists, copies, unknown contexts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ragkit.errors import DataError
from ragkit.evaluation.join import listed
from ragkit.evaluation.scoring import Scoring, all_lists, final_list
from ragkit.evaluation.suspects import suspect_notes
from ragkit.evaluation.table import ScoreRow
from ragkit.recording.formats.imported import holdings, shows_its_searches
from ragkit.records.labels import check_labels, require_known_labels
from ragkit.records.questions import Dataset, is_text_id
from ragkit.records.trajectory import Trajectory
from ragkit.report.numbers import counted


def label_notes(dataset: Dataset) -> list[str]:
    """Notes on the labels; more than half of the gold unknown to the corpus is a DataError."""
    if dataset.corpus is None:
        return []
    if not dataset.corpus:
        raise DataError(f"{dataset.name}: the corpus is empty; expected at least one document, or no corpus at all")
    report = check_labels(dataset, dataset.corpus.keys())
    require_known_labels(report)
    if not report.unknown:
        return []
    return [f"{len(report.unknown)} gold ids are in no document of the corpus: {listed(report.unknown)}; "
            "see ragkit labels check"]


def run_notes(scoring: Scoring, rows: Sequence[ScoreRow]) -> list[str]:
    """What a reader must know beside the numbers: holes in the labels, empty lists, copies, unknown contexts."""
    notes, report = [], scoring.projection.report
    trajectories = scoring.trajectories
    if report is not None:
        notes.append(str(report))
        if report.gone:
            where = listed(list(dict.fromkeys(match.question_id for match in report.gone)))
            notes.append(f"{len(report.gone)} gold texts match no known passage and count as not found: {where}")
    notes += _unmatched(scoring) + _nameless(scoring)
    empty = [t.question_id for t in trajectories if t.error is None and not final_list(t).passages]
    if empty:
        notes.append(f"{counted(len(empty), 'trajectory', 'trajectories')} ended with no results: {listed(empty)}")
    asked = [t for t in trajectories if t.error is None and not t.meta.get("not_asked")]
    silent = [t.question_id for t in asked if not t.steps and shows_its_searches(t)]
    if silent:
        of = counted(len(trajectories), "trajectory", "trajectories")
        notes.append(f"{len(silent)} of {of} answered without retrieval: {listed(silent)}")
    copies = sum(len(p) - len(set(p)) for t in trajectories
                 for p in [scoring.projection.names(t.question_id, final_list(t).passages)])
    if copies:
        notes.append(f"{copies} later copies of a {scoring.projection.unit} already in its list kept their place and "
                     "gained nothing")
    notes += _without_context(trajectories)
    notes += _imported(trajectories) + suspect_notes(scoring)
    metadata = [str(w) for t in trajectories for w in t.meta.get("warnings", ())]
    notes += [f"{text} ({count} times)" if count > 1 else text for text, count in Counter(metadata).most_common(5)]
    if not any(row.labels != "none" for row in rows):
        notes.append("no question has relevance labels: rank and trajectory metrics are undefined")
    return notes


def _without_context(trajectories: Sequence[Trajectory]) -> list[str]:
    """What stands at the end where the app shows no context."""
    ends = [final_list(t) for t in trajectories if t.context is None and t.steps]
    fused, unions = sum(end.fused for end in ends), sum(end.stage == "union" for end in ends)
    each = ((unions, "the union of their steps stands for it, uncut"),
            (fused, "their steps' lists, fused by reciprocal rank, stand for it"),
            (len(ends) - unions - fused, "their only list stands for it"))
    return [f"{counted(count, 'trajectory shows', 'trajectories show')} no final context; {what}" for count, what in
            each if count]


def _imported(trajectories: Sequence[Trajectory]) -> list[str]:
    """A note where trajectories come from a tool that gave no retrieval scores, or not all."""
    foreign = [t for t in trajectories if isinstance(t.meta.get("source"), Mapping)]
    found = holdings(foreign)
    if not found.without_score:
        return []
    tools = sorted({str(t.meta["source"].get("format")) for t in foreign if not t.meta.get("no_text")})
    named = f" from {', '.join(tools)}" if tools else ""
    missing = "no retrieval scores" if found.without_score == found.passages else \
        f"no retrieval score for {found.without_score:,} of {found.passages:,} passages"
    return [f"{len(foreign):,} trajectories were imported{named}, with {missing}: the order of each list is all that "
            "is known of its ranking"]


def _nameless(scoring: Scoring) -> list[str]:
    """A note where passages came without an id, so that gold that is named by an id cannot be met by them."""
    qrels, names = scoring.projection.qrels, scoring.projection.name
    labelled = [t for t in scoring.trajectories if any(not is_text_id(name) for name in qrels.get(t.question_id, {}))]
    passages = {p.id: names(t.question_id, p) for t in labelled for r in all_lists(t) for p in r.passages}
    lacking = [id_ for id_, name in passages.items() if is_text_id(id_) and name == id_]
    if not lacking or scoring.projection.report is not None:
        return []
    return [f"{len(lacking)} of {counted(len(passages), 'passage')} came without an id; one was made from the text, "
            "which is none of the gold ids: give the documents of every retriever the ids of the labels (Document.id), "
            "or name gold by gold_texts"]


def _unmatched(scoring: Scoring) -> list[str]:
    """A note where gold ids never occur in anything that was returned: missed for good, or written in another form."""
    seen: dict[str, set[str]] = {}
    for t in scoring.trajectories:
        names = (name for r in all_lists(t) for name in scoring.projection.names(t.question_id, r.passages))
        seen.setdefault(t.question_id, set()).update(names)
    gold = {question_id: {name for name, grade in scoring.projection.qrels.get(question_id, {}).items()
                          if grade >= scoring.level} for question_id in seen}
    wanted, met = sum(map(len, gold.values())), sum(len(names & seen[q]) for q, names in gold.items())
    if not wanted or 2 * met >= wanted:
        return []
    gold_id = next(name for q, names in gold.items() for name in sorted(names - seen[q]))
    shown = next((f"{name!r}" for names in seen.values() for name in sorted(names)), "nothing")
    return [f"{wanted - met} of {wanted} gold ids never occur in what the app returned (gold {gold_id!r}, returned for "
            f"example {shown}): where the ids have another form, ragkit labels check --trajectories shows it"]
