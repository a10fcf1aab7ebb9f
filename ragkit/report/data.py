"""The plain data of a report, prepared by the evaluation. Renderers only show it; nothing is computed here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class PassageView:
    """One passage in a list: its rank from 1, and what is known about it. `grade` is None where it is unjudged."""

    id: str
    rank: int
    text: str | None = None
    doc_id: str | None = None
    score: float | None = None
    grade: float | None = None
    gold: bool = False
    new: bool = False  # not seen in an earlier step
    copy: bool = False  # a later copy of an id in the same list
    hint: str = ""  # what makes its text read like an instruction to a model
    truncated: bool = False  # the context holds the start of its text alone


@dataclass(frozen=True)
class ListView:
    """One ranked list (or set) of a step, or the context."""

    stage: str
    name: str
    ranked: bool
    score_kind: str
    passages: tuple[PassageView, ...]
    error: str | None = None
    lost: tuple[str, ...] = ()  # gold ids that stood in the list beneath and are missing here


@dataclass(frozen=True)
class StepView:
    """One search; `lists[0]` is what the app got, the others are the stages beneath it."""

    index: int
    turn: int
    query: str
    lists: tuple[ListView, ...]
    ms: float | None = None
    new_gold: tuple[str, ...] = ()  # gold ids that no earlier step had found
    lost_gold: tuple[str, ...] = ()  # gold ids that a stage beneath held and the app did not get
    recall: float | None = None  # cumulative recall after the step; None without labels
    repeated: bool = False  # the query was asked before, case, blanks and quotes ignored
    drift: float | None = None  # 1 - Jaccard of the words of the question and of the query
    error: str | None = None  # why the search failed


@dataclass(frozen=True)
class ScoreView:
    """One score of one question: `value` is None unless status is "scored"; `reason` says why not."""

    metric: str
    step: str
    value: float | None
    status: str
    reason: str | None = None
    judge: str | None = None
    verdicts: tuple[tuple[str, float, str], ...] = ()  # subject, value, reason
    raw: str | None = None  # of a failed judgement: the reply as it came


@dataclass(frozen=True)
class QuestionView:
    """One question of the "worst questions" list, with all that is needed to see why."""

    id: str
    text: str
    repeat: int
    category: str | None
    label_state: str
    outcome: str  # evidence x answer: a key of ragkit.report.labels.OUTCOMES, or words
    answer: str | None
    references: tuple[str, ...]
    error: str | None
    steps: tuple[StepView, ...]
    context: ListView | None
    scores: tuple[ScoreView, ...]
    fates: Mapping[str, str] = field(default_factory=dict)  # gold id -> the deepest stage it reached
    warnings: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()  # of the reference answer, numbered from 1, where a judge's labels count them
    flags: tuple[str, ...] = ()  # shown under the answer: "no passage holds the number 1874", and the like
    ms: float | None = None


@dataclass(frozen=True)
class MetricInfo:
    """What a metric's number means, from the registry."""

    name: str
    summary: str
    range: tuple[float | None, float | None]
    direction: str
    undefined: str
    source: str
    group: str  # "rank", "trajectory", "judged" (RAGAS), "answer" (keyless)
    formula: str = ""


@dataclass(frozen=True)
class ReportData:
    """All that a report shows.

    `summary` is summary.json: {"schema", "variant", "questions": {"asked", "labelled", "unanswerable", "unlabelled"},
    "metrics": {name: {mean, low, high, worst, best, n_scored, n_asked, n_undefined, n_failed, labels, reasons}},
    "per_step": {"0": {metric: {...same...}}}, "categories": {name: {metric: {...same...}}}, "outcomes": {...},
    "app": {...}, "judge": {...}}. In it
    - a metric may also have "median" and "share" {"mean", "low", "high"} (steps_to_evidence: the share of questions
      that ever got there, and the median of those that did);
    - "reasons" is {reason: count}; the order of "metrics" is the order of the tables;
    - "outcomes" counts questions under the keys of `ragkit.report.labels.OUTCOMES`;
    - "app" is {"ms": {"mean", "median", "p95"}, "tokens": {"input", "output"}, "cost": {"total", "per_question"}};
      null or an absent key is shown as "not recorded";
    - "judge" is the ledger; nested mappings are flattened, and an unknown price is null, never 0;
    - "funnel" is {"labels": "gold" | "judged", "noun", "all": {"total", "stages": {fate: {"count", "share"}}},
      "categories": {name: {...same...}}}, its fates those of `ragkit.report.labels.FATES`;
    - "retrieval" is {"answered_without", "failing_steps", "repeated_queries", "wasted_steps": {"count", "of", "share"}
      each, "steps", "turns": {"mean", "median", "max"} each, "context": {"known", "of", "truncated", "sets"}};
    - "per_turn" is like "per_step", where searches ran at once; "recall_spread" is {"0": {"q10", "q25", "median",
      "q75", "q90", "n"}}: cumulative recall over trajectories, the last value carried forward.
    A summary of an earlier version may lack the last four.

    Of `run` (run.json) the header shows "app", "dataset", "judge", "embedder", "started", "label", "git", "seeds",
    "versions", "fingerprints" and "config", each a text, a number or a mapping, each where present.
    """

    summary: Mapping[str, Any]
    run: Mapping[str, Any]
    fix_first: str  # one sentence: what to fix first
    rule: str  # how an answer was taken as right, in words
    unit: str  # "chunk" or "document"
    metrics: Mapping[str, MetricInfo]  # by the name in the tables ("ndcg@5")
    rank_histogram: Mapping[str, int]  # "1", "2", ..., "11-20", "missed" -> relevant passages, final list
    hit_curve: Mapping[str, float]  # "hit@1" -> mean
    step_reach: Mapping[str, int]  # "0" -> trajectories that reached the step
    rerank: Mapping[str, int]  # {"helped", "hurt", "unchanged"} questions; empty without a re-ranker
    worst: tuple[QuestionView, ...]
    failures: tuple[tuple[str, str, str], ...]  # question id, metric or "app", reason
    notes: tuple[str, ...] = ()  # holes, unlabelled, copies, unknown ids: what a reader must know
    agreement: tuple[Mapping[str, Any], ...] = ()  # measured agreement of the keyless judge, rows of a table
    needs_judge: str = ""  # the line of how to give a judge, shown where RAGAS metrics have no value
    lost_stages: Mapping[str, int] = field(default_factory=dict)  # incomplete and wrong: where the gold was lost
    worst_rule: str = ""  # by what the worst questions were picked, and how many of how many are shown
