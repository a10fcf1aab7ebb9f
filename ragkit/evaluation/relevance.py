"""Judged labels of a run: which (question, passage) pairs are asked, and what the answers are in the report's terms.

Scores made with them are in judged_labels.py, the calls in judge/relevance.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragkit.evaluation.join import listed
from ragkit.evaluation.scoring import Scoring, all_lists, passage_text
from ragkit.evaluation.units import Projection
from ragkit.judge.relevance import RELEVANT, STOPPED, Asked, Pool, judge_relevance, pools_fingerprint
from ragkit.metrics.agreement import cohen_kappa
from ragkit.records.questions import Dataset, text_id
from ragkit.records.trajectory import Passage, Retrieval
from ragkit.report.numbers import counted

if TYPE_CHECKING:
    from ragkit.judge.gateway import Gateway
    from ragkit.judge.store import JudgementStore

NO_TEXT = "no text to judge"


@dataclass(frozen=True)
class PassageNames:
    """What a passage is called where labels belong to its text: the first id that the text was met under.

    Two ids of one text are one thing. One id of two texts, as of a passage and an extract of it, are two: the later one
    is called by its id and a part of its text's hash.
    """

    dataset: Dataset
    by_text: dict[str, str] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)
    _hashes: dict[str, str] = field(default_factory=dict)

    def hash(self, passage: Passage) -> str | None:
        """The hash of the passage's text; None where nobody knows it."""
        text = passage_text(passage, self.dataset)
        if text is None:
            return None
        known = self._hashes.get(text)
        if known is None:
            known = self._hashes[text] = text_id(text)
        return known

    def name(self, passage: Passage) -> str:
        found = self.hash(passage)
        return f"{passage.id} ({NO_TEXT})" if found is None else self.add(found, passage.id)

    def add(self, text: str, passage_id: str) -> str:
        """The name of a text, which gets this id where it has none."""
        known = self.by_text.get(text)
        if known is None:
            known = f"{passage_id}~{text.removeprefix('sha1:')[:8]}" if passage_id in self._taken else passage_id
            self.by_text[text] = known
            self._taken.add(known)
        return known


@dataclass(frozen=True)
class JudgedProjection(Projection):
    """Judged grades by question, and passages named by their texts. There is no gold in it."""

    passages: PassageNames | None = None

    def name(self, question_id: str, passage: Passage) -> str:
        return passage.id if self.passages is None else self.passages.name(passage)


@dataclass(frozen=True)
class JudgedLabels:
    """What a judge said: a pool a question (none where relevance was not asked for), and a pool a step's query."""

    judge: str
    questions: Mapping[str, Pool]
    queries: Mapping[str, Pool]
    names: PassageNames
    level: float = float(RELEVANT)

    @property
    def pools(self) -> list[Pool]:
        return list({id(pool): pool for pool in (*self.questions.values(), *self.queries.values())}.values())

    def projection(self) -> JudgedProjection:
        """The judged grades as gold of a run, for whatever shows lists with their grades."""
        qrels = {question_id: self.grades(pool) for question_id, pool in self.questions.items()}
        return JudgedProjection("chunk", qrels, passages=self.names)

    def grades(self, pool: Pool) -> dict[str, float]:
        return {self.names.add(text, grade.passage or text): float(grade.grade) for text, grade in pool.grades.items()}


def relevance_wanted(scoring: Scoring, relevance: bool, per_step_query: bool) -> list[Asked]:
    """What the judge is to be asked: a question with all passages of its lists, a step's query with those of its step.

    Questions that are declared unanswerable are not asked about. A step whose query is the question itself shares the
    question's pairs.
    """
    states, found = scoring.dataset.label_states(), dict[tuple[str, str], dict[str, dict[str, None]]]()
    questions = scoring.dataset.by_id
    for trajectory in scoring.trajectories:
        question = questions[trajectory.question_id]
        if relevance and states[question.id] != "unanswerable":
            _collect(found.setdefault(("relevance", question.id), {}), all_lists(trajectory), scoring.dataset)
        for step in trajectory.steps if per_step_query else ():
            query = step.outermost.query
            if query.strip() and not (query == question.text and ("relevance", question.id) in found):
                _collect(found.setdefault(("query_relevance", query), {}), [step.outermost], scoring.dataset)
    wanted = []
    for (kind, name), passages in found.items():
        ids = {text: tuple(own) for text, own in passages.items()}
        if kind == "relevance":
            question = questions[name]
            wanted.append(Asked(name, question.text, ids, question.answers[0] if question.answers else None))
        else:
            wanted.append(Asked(text_id(name), name, ids, None, "query_relevance"))
    return wanted


async def judge_labels(scoring: Scoring, gateway: Gateway, wanted: Sequence[Asked],
                       on_done: Callable[[], None] | None = None,
                       others: Sequence[JudgementStore] = ()) -> JudgedLabels:
    """Asks what no store holds, and puts it together with what earlier runs and other variants left there."""
    pools = await judge_relevance(gateway, wanted, on_done, others)
    names = PassageNames(scoring.dataset)
    for trajectory in scoring.trajectories:
        for found in all_lists(trajectory):
            for passage in found.passages:
                names.name(passage)
    questions = {pool.asked.id: pool for pool in pools if pool.asked.metric == "relevance"}
    queries = {pool.asked.text: pool for pool in questions.values()}
    queries |= {pool.asked.text: pool for pool in pools if pool.asked.metric == "query_relevance"}
    return JudgedLabels(gateway.name, questions, queries, names)


def unjudged(pool: Pool) -> dict[str, str]:
    """Why texts of a pool that were asked about have no grade, by their hashes."""
    reasons = ((text, pool.reason(text)) for text in map(text_id, pool.asked.passages))
    return {text: reason for text, reason in reasons if reason is not None}


def pool_entry(labels: JudgedLabels) -> dict[str, Any]:
    """summary["judged_labels"]["pool"]: what was judged, by whom, and a fingerprint that tells label sets apart."""
    pools = labels.questions.values()
    asked = [(pool, text_id(text)) for pool in pools for text in pool.asked.passages]
    return {
        "fingerprint": pools_fingerprint(pools),
        "pairs": sum(len({*pool.grades, *map(text_id, pool.asked.passages)}) for pool in pools),
        "judged": sum(len(pool.grades) for pool in pools),
        "failed": sum(text not in pool.grades for pool, text in asked),
        "of_this_run": len(asked),
        "statements": sum(len(pool.statements) for pool in pools),
        "judge": labels.judge,
        "level": labels.level,
    }


def gold_agreement(scoring: Scoring, labels: JudgedLabels) -> dict[str, Any] | None:
    """How far the judge agrees with the gold, on the labelled questions' passages of this run; None without gold.

    Binary: gold at the run's level (what the gold does not list is not relevant, as in every metric), judged from
    grade 2. `kappa_weighted` (quadratic) is over passages that the gold lists, where its grades have more than one
    value above 0.
    """
    states, pairs, graded = scoring.dataset.label_states(), list[tuple[int, int]](), list[tuple[float, float]]()
    for question_id, found in _passages(scoring).items():
        pool = labels.questions.get(question_id)
        if pool is None or states[question_id] != "labelled":
            continue
        for text, passage in found.items():
            judged, gold = pool.grades.get(text), scoring.projection.grade(question_id, passage)
            if judged is not None:
                pairs.append((int((gold or 0) >= scoring.level), int(judged.grade >= labels.level)))
                graded += [(gold, float(judged.grade))] if gold is not None else []
    if not pairs:
        return None
    ours, theirs = [gold for gold, _ in pairs], [judged for _, judged in pairs]
    fine = len({gold for gold, _ in graded if gold > 0}) > 1
    weighted = cohen_kappa([g for g, _ in graded], [j for _, j in graded], weights="quadratic") if fine else None
    return {
        "kappa": cohen_kappa(ours, theirs), "kappa_weighted": weighted, "n": len(pairs), "n_graded": len(graded),
        "agreed": sum(gold == judged for gold, judged in pairs), "gold_relevant": sum(ours),
        "judged_relevant": sum(theirs), "both_relevant": sum(gold and judged for gold, judged in pairs),
    }


def judged_notes(labels: JudgedLabels) -> list[str]:
    """What a reader must know about judged labels, in sentences."""
    if not labels.questions:
        return []
    entry, pools = pool_entry(labels), labels.questions.values()
    notes = [f"{entry['judged']} (question, passage) pairs were graded 0 to 3 by {labels.judge}, not by people; from "
             f"{labels.level:g} a passage counts as relevant. recall, allhit and what is counted over steps count "
             f"statements of the reference answers that the passages carry. Pool {entry['fingerprint']}: compare runs "
             "on the same pool only (ragkit report scores a run again on what its store holds by now)"]
    reasons = Counter(reason for pool in pools for reason in unjudged(pool).values())
    notes += [f"{counted(count, 'pair')} not judged: {reason}" for reason, count in reasons.most_common(3)]
    bare = [pool.asked.id for pool in pools if not pool.asked.reference]
    if bare:
        notes.append(f"{counted(len(bare), 'question')} without a reference answer, so that nobody knows all that is "
                     f"relevant there: recall and the like are undefined: {listed(bare)}")
    nothing = [pool.asked.id for pool in pools if pool.grades
               and all(grade.grade < labels.level for grade in pool.grades.values())]
    if nothing:
        notes.append(f"{counted(len(nothing), 'question')} without a passage of grade {labels.level:g} in the pool: "
                     "counted with 0, as an answer that was not found (declare what has none as unanswerable): "
                     + listed(nothing))
    return notes


def judged_failures(labels: JudgedLabels) -> list[tuple[str, str, str]]:
    """(question id, what, why) of each question or query of which some pair was not judged."""
    found = []
    for pool in labels.pools:
        what = "relevance" if pool.asked.metric == "relevance" else "relevance to a step's query"
        found += [(pool.asked.id, f"{what} of {counted(count, 'passage')}", reason)
                  for reason, count in Counter(unjudged(pool).values()).items()]
    return found


def unjudged_pairs(labels: JudgedLabels) -> dict[str, dict[str, int]]:
    """By the ledger's name: pairs that were not judged since the judge was stopped, of all that were wanted."""
    found: dict[str, dict[str, int]] = {}
    for pool in labels.pools:
        entry = found.setdefault(pool.asked.metric, {"missing": 0, "of": 0})
        entry["missing"] += sum(STOPPED in reason for reason in unjudged(pool).values())
        entry["of"] += len(pool.asked.passages)
    return {metric: entry for metric, entry in found.items() if entry["missing"]}


def _collect(found: dict[str, dict[str, None]], lists: Iterable[Retrieval], dataset: Dataset) -> None:
    for retrieval in lists:
        for passage in retrieval.passages:
            text = passage_text(passage, dataset)
            if text is not None:
                found.setdefault(text, {})[passage.id] = None


def _passages(scoring: Scoring) -> dict[str, dict[str, Passage]]:
    """The passages of this run by question and text hash, each once."""
    found: dict[str, dict[str, Passage]] = {}
    for trajectory in scoring.trajectories:
        own = found.setdefault(trajectory.question_id, {})
        for retrieval in all_lists(trajectory):
            for passage in retrieval.passages:
                text = passage_text(passage, scoring.dataset)
                if text is not None:
                    own.setdefault(text_id(text), passage)
    return found
