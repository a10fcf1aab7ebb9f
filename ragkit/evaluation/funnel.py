"""Evidence x answer, and where each gold passage was lost: the table that names whom to fix first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ragkit.metrics.fates import fates
from ragkit.metrics.text import is_refusal
from ragkit.metrics.trajectory import EvidencePath
from ragkit.records.judgements import Score
from ragkit.records.trajectory import Trajectory

_NOUNS = {
    "not_in_index": "not in the index",
    "never_retrieved": "never retrieved",
    "lost_at_fuse": "lost at fusion",
    "lost_at_rerank": "lost at re-ranking",
    "lost_at_filter": "lost at a filter",
    "lost_at_cut": "cut before the context",
    "lost_at_budget": "cut off with the context, for want of room",
}


@dataclass(frozen=True)
class RightRule:
    """When an answer counts as right: the judge's answer_accuracy where scored, else exact_match or answer_f1."""

    threshold: float = 0.5

    def describe(self, judged: bool) -> str:
        """The rule in words; the judge's part only where a judge scored some answer."""
        limit = f"{self.threshold:g}"
        overlap = f"it equals a reference answer (exact_match), or its words overlap with one (answer_f1 >= {limit})"
        if judged:
            return (f"An answer counts as right where the judge's answer_accuracy is at least {limit}; where no judge "
                    f"scored it, where {overlap}.")
        return (f"An answer counts as right where {overlap}. No judge checked it: a right answer in other words than "
                "the reference counts as wrong.")


def answer_right(scores: Mapping[str, Score], rule: RightRule) -> bool | None:
    """Whether the answer is right; None where it cannot be checked (no reference, no answer, failed)."""
    judged = scores.get("answer_accuracy")
    if judged is not None and judged.value is not None:
        return judged.value >= rule.threshold
    exact, overlap = scores.get("exact_match"), scores.get("answer_f1")
    if exact is not None and exact.value == 1:
        return True
    if overlap is not None and overlap.value is not None:
        return overlap.value >= rule.threshold
    return None


def outcome(path: EvidencePath, trajectory: Trajectory) -> str:
    """The cell of evidence x answer of one trajectory, a key of the report's OUTCOMES."""
    if trajectory.error is not None:
        return "failed"
    if trajectory.meta.get("not_asked"):
        return "not_asked"
    if path.label_state == "unanswerable":
        if trajectory.answer is None:  # unknown: a log of retrieval alone, say
            return "unanswerable_unchecked"
        silent = not trajectory.answer.strip() or is_refusal(trajectory.answer)
        return "unanswerable_refused" if silent else "unanswerable_answered"
    right = {True: "right", False: "wrong", None: "unchecked"}[path.answer_right]
    if path.label_state == "unlabelled" or not path.relevant:  # no grade reaches the level: nothing could be complete
        return f"unlabelled_{right}"
    return f"{'complete' if evidence_complete(path) else 'incomplete'}_{right}"


def evidence_complete(path: EvidencePath) -> bool:
    """Every relevant thing stands in the context (in the union of the steps where the context is unknown)."""
    seen = set(path.context) if path.context is not None else {name for step in path.steps for name in step}
    return bool(path.relevant) and path.relevant <= seen


def funnel(paths: Iterable[EvidencePath]) -> dict[str, int]:
    """How many gold things ended at which stage, over all labelled trajectories; the counts add up to all gold."""
    counts: Counter[str] = Counter()
    for path in paths:
        if path.label_state == "labelled":
            counts.update(fates(path).values())
    return dict(counts.most_common())


@dataclass(frozen=True)
class Findings:
    """What the sentence of what to fix first looks at.

    outcomes: trajectories by cell. lost: the gold of the failing questions by where it was lost. context_known: whether
    the app showed what the answer was written from. matched, gold: how many gold ids of how many ever occurred in what
    the app returned. noun: what is counted, "questions", or "trajectories" where there are repeats. labels: "labelled",
    or "judged" where no person labelled.
    """

    outcomes: Mapping[str, int]
    lost: Mapping[str, int]
    context_known: bool = True
    matched: int = 1
    gold: int = 1
    noun: str = "questions"
    labels: str = "labelled"


def fix_first(found: Findings) -> str:
    """The one sentence of what to fix first, from the largest bad cell of evidence x answer."""
    outcomes = found.outcomes
    failed, total = outcomes.get("failed", 0), sum(outcomes.values())
    labelled = sum(n for key, n in outcomes.items() if key.startswith(("complete", "incomplete")))
    if failed and failed * 2 >= total:
        return f"Fix the app itself first: it failed on {failed} of {total} {found.noun}; little else can be read here."
    if labelled and found.gold and not found.matched:
        return (f"Check the ids first: none of the {found.gold} gold ids occurs in anything that the app returned, so "
                "either nothing right was found at all or its ids are not those of the labels.")
    retrieval = outcomes.get("incomplete_wrong", 0) + outcomes.get("incomplete_unchecked", 0)
    generator = outcomes.get("complete_wrong", 0)
    invented = outcomes.get("unanswerable_answered", 0)
    worst = max(retrieval, generator, invented)
    if worst == 0:
        return _nothing_wrong(found, labelled, failed)
    place = "in the context" if found.context_known else "in what was retrieved"
    if worst == generator and generator > retrieval:
        return (f"Fix the generator first: on {generator} of {labelled} {found.labels} {found.noun} all the evidence "
                f"stood {place} and the answer still does not match the reference.")
    if worst == retrieval:
        wrong = "and the answer is wrong" if outcomes.get("incomplete_wrong") else "(answers were not checked)"
        if outcomes.get("incomplete_wrong") and (unchecked := outcomes.get("incomplete_unchecked")):
            wrong += f" (on {unchecked} of them nobody checked it)"
        return (f"Fix retrieval first: on {retrieval} of {labelled} {found.labels} {found.noun} the evidence {place} "
                f"is incomplete {wrong}; {_where(found)}.")
    asked = invented + outcomes.get("unanswerable_refused", 0)
    return (f"Fix the refusals first: {invented} of {asked} {found.noun} that the documents cannot answer were "
            "answered all the same.")


def _nothing_wrong(found: Findings, labelled: int, failed: int) -> str:
    """The sentence where no cell is bad: what was not checked, or that nothing stands out."""
    outcomes = found.outcomes
    wrong = outcomes.get("unlabelled_wrong", 0)
    if labelled == 0:
        tail = f" {wrong} answers do not match their reference." if wrong else ""
        return ("No question has relevance labels, so retrieval cannot be told from generation: label a few, or let a "
                f"judge grade what was retrieved (--relevance judge).{tail}")
    if outcomes.get("incomplete_right", 0):
        return (f"Look at the labels first: {outcomes['incomplete_right']} of {labelled} answers are right without all "
                "of the labelled evidence, from the model's memory or because other passages hold it too.")
    unchecked = outcomes.get("complete_unchecked", 0)
    if unchecked:
        return (f"Evidence was complete on all {labelled} {found.labels} {found.noun}, so retrieval is fine there; "
                f"{unchecked} answers were not checked, for want of a reference answer, an answer, or a judge.")
    tail = f" ({failed} {found.noun} failed in the app)" if failed else ""
    return (f"Nothing stands out: on all {labelled} {found.labels} {found.noun} evidence was complete, no answer "
            f"wrong{tail}.")


def _where(found: Findings) -> str:
    counted = Counter({key: n for key, n in found.lost.items() if key in _NOUNS})
    if not counted:
        return "no stage can be named"
    stage, count = counted.most_common(1)[0]
    what = "statements" if found.labels == "judged" else "passages"
    return f"{count} of {counted.total()} missing {what} were {_NOUNS[stage]}"
