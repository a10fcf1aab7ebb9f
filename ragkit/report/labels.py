"""The words of a report: what outcomes, fates and groups are called, and which numbers stand first. No numbers here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Outcome(NamedTuple):
    """One cell of evidence x answer: its words, whose it is, and the colour of its chip."""

    title: str
    owner: str
    tone: str


OUTCOMES: Mapping[str, Outcome] = {
    "complete_right": Outcome("evidence complete, answer right", "it works", "good"),
    "complete_wrong": Outcome("evidence complete, answer wrong", "the generator’s", "warn"),
    "complete_unchecked": Outcome("evidence complete, answer not checked", "retrieval is fine", "plain"),
    "incomplete_right": Outcome("evidence incomplete, answer right", "memory, or a label hole", "info"),
    "incomplete_wrong": Outcome("evidence incomplete, answer wrong", "retrieval’s", "bad"),
    "incomplete_unchecked": Outcome("evidence incomplete, answer not checked", "retrieval’s", "bad"),
    "unlabelled_right": Outcome("no labels, answer right", "no gold to check", "good"),
    "unlabelled_wrong": Outcome("no labels, answer wrong", "no gold to check", "warn"),
    "unlabelled_unchecked": Outcome("no labels, answer not checked", "nothing to check", "plain"),
    "unanswerable_refused": Outcome("unanswerable, and the app did not answer", "it works", "good"),
    "unanswerable_answered": Outcome("unanswerable, and the app answered all the same", "the generator’s", "warn"),
    "unanswerable_unchecked": Outcome("unanswerable, answer not known", "nothing to check", "plain"),
    "not_asked": Outcome("not asked", "nothing to check", "plain"),
    "failed": Outcome("the app failed", "the app’s", "failed"),
}
MATRIX = (("complete", "Evidence complete"), ("incomplete", "Evidence incomplete"))
ANSWERS = (("right", "Answer right"), ("wrong", "Answer wrong"), ("unchecked", "Answer not checked"))

GROUPS: Mapping[str, tuple[str, str]] = {
    "rank": ("Rank, at the end", "The context that the answer was written from, against the gold passages."),
    "trajectory": ("Trajectory", "All steps of a question together, against the same gold."),
    "judged": ("RAGAS, judged", "A model read question, context and answer and gave verdicts."),
    "answer": ("Keyless", "Computed from gold ids, words and reference answers; no model is asked."),
    "other": ("Other", "Metrics whose definition this report was not given."),
}
JUDGED_GROUPS: Mapping[str, str] = {
    "rank": "The context that the answer was written from, against labels that a judge gave.",
    "trajectory": "All steps of a question together, against labels that a judge gave.",
}
SIDES = (
    ("Retrieval", "rank metrics", ("rank", "trajectory"), (
        "hit@5", "recall", "recall@5", "allhit", "precision@5", "mrr", "map", "ndcg@5", "ndcg@10", "aucr@5",
        "survival")),
    ("Answer", "judge and keyless metrics", ("judged", "answer", "other"), (
        "faithfulness", "answer_relevancy", "answer_accuracy", "factual_correctness", "context_precision",
        "context_precision_without_reference", "context_recall", "context_relevance", "response_groundedness",
        "noise_sensitivity", "lexical_support",
        "lexical_coverage", "answer_f1", "exact_match", "id_context_precision", "id_context_recall")),
)
STEP_METRICS = ("recall", "ndcg", "ndcg@5", "ndcg@10", "mrr", "precision@5", "cumulative_recall", "marginal_recall",
                "novelty", "context_precision", "context_recall", "context_precision_without_reference",
                "context_relevance", "query_precision@", "query_ndcg@")
STEP_CURVE = ("recall", "ndcg", "ndcg@5", "ndcg@10", "cumulative_recall")
THIN_REACH, THIN_SHARE = 10, 0.1  # a step that fewer trajectories, or a smaller share of them, reached is marked thin
THIN, THIN_RULE = "few reached it", "fewer than 10 trajectories, or than a tenth of those of the first step"
STEP_JUDGED = (  # where a judge read the list of each step, or graded it for the step's own query
    "context_precision", "context_recall", "query_precision@", "query_ndcg@")
CATEGORY_METRICS = ("recall", "allhit", "mrr", "ndcg@10", "faithfulness", "context_recall", "answer_relevancy",
                    "lexical_support", "answer_f1", "exact_match")
QUESTION_METRICS = ("recall", "ndcg@5", "ndcg@10", "mrr", "faithfulness", "lexical_support", "answer_f1")

DIRECTIONS: Mapping[str, str] = {
    "higher": "higher is better", "lower": "lower is better", "none": "neither high nor low is better",
}
GUIDE = (
    ("hit@k", "did anything useful come back; quick to explain, blind to order"),
    ("mrr", "one passage answers the question. It is the mean of 1 / rank of the first relevant passage: 0.5 means a "
            "harmonic mean of the first ranks of 2, not “usually rank 2”"),
    ("recall@k and allhit@k", "the answer needs several passages; any-hit stays high while complete evidence "
                              "collapses"),
    ("precision@k", "how much noise goes into the prompt"),
    ("map", "binary labels, and all relevant passages should stand high"),
    ("ndcg@k", "graded labels, or the fine order matters. Better ndcg at the same hit rate means that questions that "
               "already worked got better while the failing ones still fail"),
)
FATES: Mapping[str, str] = {  # in the order of the funnel
    "not_in_index": "not in the index", "never_retrieved": "never retrieved", "lost_at_fuse": "lost at the fusion",
    "lost_at_rerank": "lost at the re-ranker", "lost_at_filter": "lost at a filter",
    "lost_at_cut": "cut before the context", "lost_at_budget": "no room in the context",
    "in_context_right": "in the context, answer right", "in_context_wrong": "in the context, answer wrong",
    "in_context_unchecked": "in the context, answer not checked", "in_context": "in the context",
}
FATE_FILLS: Mapping[str, str] = {  # the fill of a fate in every bar; fills of one hue differ in their hatching
    "not_in_index": "plain", "never_retrieved": "bad", "lost_at_fuse": "lost-1", "lost_at_rerank": "lost",
    "lost_at_filter": "lost-2", "lost_at_cut": "lost-3", "lost_at_budget": "lost-4", "in_context_right": "good",
    "in_context_wrong": "warn", "in_context_unchecked": "info", "in_context": "good",
}
STAGES: Mapping[str, str] = {
    "retrieve": "retriever", "rerank": "re-ranker", "filter": "filter", "fuse": "fusion", "context": "context",
    "union": "union", "other": "other stage",
}
SCORE_HEADS: Mapping[str, tuple[str, str]] = {
    "similarity": ("Similarity", "larger is nearer"),
    "distance": ("Distance", "smaller is nearer"),
}
NEEDS_JUDGE = "needs a judge"  # the reason of a score that only a model could have given
STATES: Mapping[str, str] = {
    "labelled": "labelled", "unanswerable": "declared unanswerable", "unlabelled": "unlabelled",
}


def outcome(key: str) -> Outcome:
    """The words of an outcome, found by its key or by its title; anything else is taken as words.

    >>> outcome("complete_wrong").owner, outcome("no idea").title
    ('the generator’s', 'no idea')
    """
    known = OUTCOMES.get(key) or next((outcome for outcome in OUTCOMES.values() if outcome.title == key), None)
    return known or Outcome(words(key), "", "plain")


def score_head(stage: str, name: str, score_kind: str) -> tuple[str, str]:
    """What the scores of a list are called, and how they are read.

    >>> score_head("fuse", "rrf", "similarity"), score_head("retrieve", "bm25", "unknown")
    (('RRF score', 'larger is better'), ('Score', 'kind not known'))
    """
    if stage == "fuse" and name == "rrf":  # a similarity in that larger is better, but of no two texts
        return "RRF score", "larger is better"
    return SCORE_HEADS.get(score_kind, ("Score", "kind not known"))


def state(status: str, reason: str | None) -> tuple[str, str]:
    """What is written for a score that is none, and why, where that says more.

    >>> state("undefined", "needs a judge"), state("undefined", "no order")
    (('needs a judge', ''), ('undefined', 'no order'))
    """
    return (NEEDS_JUDGE, "") if reason == NEEDS_JUDGE else (status, reason or "")


def words(key: str) -> str:
    """A key as words.

    >>> words("never_retrieved")
    'never retrieved'
    """
    return key.replace("_", " ")


def fate(key: str) -> str:
    """The words of a gold passage's fate.

    >>> fate("lost_at_rerank"), fate("lost_at_budget")
    ('lost at the re-ranker', 'no room in the context')
    """
    return FATES.get(key) or words(key)


def fate_tone(key: str) -> str:
    """The colour of a fate: good in the context, warn there with a wrong answer, lost, bad when never seen.

    >>> fate_tone("in_context"), fate_tone("lost_at_rerank")
    ('good', 'lost')
    """
    if key.startswith("in_context"):
        return "warn" if key.endswith("wrong") else "good"
    return "lost" if key.startswith("lost") else "bad" if key.startswith("never") else "plain"


def fate_fill(key: str) -> str:
    """The fill of a fate in a bar, the same wherever it stands.

    >>> fate_fill("lost_at_rerank"), fate_fill("lost_at_gate")
    ('lost', 'lost')
    """
    return FATE_FILLS.get(key) or fate_tone(key)


def chosen(names: Iterable[str], preferred: Iterable[str]) -> list[str]:
    """Those of the preferred names that exist, in the preferred order; one that ends in @ stands for every k.

    >>> chosen(["mrr", "hit@3", "ndcg@5"], ["hit@", "map", "mrr"])
    ['hit@3', 'mrr']
    """
    present = set(names)
    return [name for wanted in preferred for name in (
        sorted(one for one in present if one.startswith(wanted)) if wanted.endswith("@") else [wanted])
            if name in present]
