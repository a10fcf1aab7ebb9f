"""Gold and judged labels of one run: which of them the summary is made of, and what stands beside it. Never mixed.

Where some question has gold, the metrics are the gold's, and the judged ones stand apart, for all questions; where none
has, the judged ones are the metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ragkit.evaluation.join import listed
from ragkit.evaluation.judged_labels import JudgedScorer
from ragkit.evaluation.judged_rows import NO_JUDGE
from ragkit.evaluation.relevance import (
    JudgedLabels,
    gold_agreement,
    judge_labels,
    judged_failures,
    judged_notes,
    pool_entry,
    relevance_wanted,
    unjudged_pairs,
)
from ragkit.evaluation.score import Scorer
from ragkit.evaluation.scoring import Scoring, scored_lists
from ragkit.evaluation.summary import build_summary
from ragkit.evaluation.table import FINAL, ScoreRow
from ragkit.evaluation.trajectory_summary import Watched, add_ratios
from ragkit.judge.store import JudgementStore
from ragkit.metrics.trajectory import EvidencePath
from ragkit.records.judgements import Judgement, Score
from ragkit.report.data import QuestionView
from ragkit.report.numbers import counted

if TYPE_CHECKING:
    from pathlib import Path

    from ragkit.judge.gateway import Gateway

Key = tuple[str, int]


async def label_run(scoring: Scoring, relevance: bool, gateway: Gateway | None,
                    on_judged: Callable[[], None] | None = None, stores: Sequence[Path] = ()) -> JudgedLabels | None:
    """The judged labels of a run; None where none are wanted, or there is no judge.

    The passages of each step are judged against its own query where a metric needs it. `stores` are judgement stores
    to read besides the judge's own, so that several runs are scored on one pool.
    """
    if gateway is None or not (relevance or scoring.query_metrics):
        return None
    wanted = relevance_wanted(scoring, relevance, bool(scoring.query_metrics))
    others = [JudgementStore(path) for path in stores if path != gateway.store.path]
    try:
        return await judge_labels(scoring, gateway, wanted, on_judged, others)
    finally:
        for store in others:
            store.close()


@dataclass(frozen=True)
class LabelSets:
    """The rows of a run by the labels that they were made with.

    `rows` are those of the summary, `beside` the judged ones where gold stands there. `shown` is what lists are shown
    against (gold, or the judged grades where they are all there is); `stopped` as build_summary takes it.
    """

    scoring: Scoring
    shown: Scoring
    scorer: Scorer
    rows: list[ScoreRow]
    beside: list[ScoreRow]
    stopped: Mapping[Key, Score | None]
    graded: Mapping[Key, EvidencePath]
    labels: JudgedLabels | None
    judged: JudgedScorer | None

    @property
    def only_judged(self) -> bool:
        """Whether the summary's metrics are made with judged labels, since there are no others."""
        return self.judged is not None and not self.beside

    @property
    def notes(self) -> list[str]:
        notes = [] if self.labels is None else judged_notes(self.labels)
        if self.scorer.unsure:
            notes.append(f"{counted(len(self.scorer.unsure), 'trajectory', 'trajectories')} left out of the funnel and "
                         "of what is counted over steps, since passages were not judged that could change it: "
                         + listed(list(dict.fromkeys(question for question, _ in sorted(self.scorer.unsure)))))
        return notes

    @property
    def failures(self) -> list[tuple[str, str, str]]:
        return [] if self.labels is None else judged_failures(self.labels)

    @property
    def not_judged(self) -> dict[str, dict[str, int]]:
        """Pairs that are missing since the judge was stopped, for summary["judge"]."""
        return {} if self.labels is None else unjudged_pairs(self.labels)

    @property
    def rule(self) -> str:
        """What complete evidence means, where no gold says it."""
        if not self.only_judged or self.labels is None:
            return ""
        return (f" Evidence counts as complete where the passages carry every statement of the reference answer, as "
                f"{self.labels.judge} judged it; no person labelled it.")

    def entry(self, seed: int) -> dict[str, Any] | None:
        """summary["judged_labels"]; None where relevance was not judged."""
        if self.judged is None or self.labels is None:
            return None
        scoring, judged = self.scoring, self.judged
        own = self.beside or [row for row in self.rows if row.labels == "judged"]
        stopped = {trajectory.key: judged.after_the_end(trajectory) for trajectory in scoring.trajectories}
        made = build_summary(scoring.variant, own, scoring.metrics, scoring.dataset.label_states(), stopped, seed)
        add_ratios(made["metrics"], Watched(scoring.trajectories, judged.paths, {}, True), scoring.metrics, seed)
        return {"metrics": made["metrics"], "per_step": made["per_step"], "pool": pool_entry(self.labels),
                "agreement_with_gold": gold_agreement(scoring, self.labels)}

    def with_statements(self, views: Sequence[QuestionView]) -> tuple[QuestionView, ...]:
        """The questions with the statements of their reference answers, which fates and recall speak of."""
        if not self.only_judged or self.labels is None:
            return tuple(views)
        pools = self.labels.questions
        return tuple(replace(view, statements=pools[view.id].statements) if view.id in pools else view
                     for view in views)


def score_labels(scoring: Scoring, judgements: Mapping[tuple[tuple[Any, ...], str], Judgement] | None,
                 labels: JudgedLabels | None) -> LabelSets:
    """Scores a run with what labels there are."""
    states = scoring.dataset.label_states()
    relevance = labels is not None and bool(labels.questions)
    gold = not relevance or any(states[t.question_id] == "labelled" for t in scoring.trajectories)
    scorer = Scorer(scoring, judgements)
    rows, judged = scorer.rows(gold), None
    if labels is not None:
        judged = JudgedScorer(scoring, labels, scorer.right)
    queries = _unasked_query_rows(scoring) if judged is None else judged.query_rows()
    made = judged.rows() if judged is not None and relevance else []
    if judged is not None and labels is not None and not gold:
        scorer.paths, scorer.unsure = dict(judged.paths), judged.unsure
        shown = replace(scoring, projection=labels.projection(), level=labels.level)
        stopped = {t.key: judged.after_the_end(t) for t in scoring.trajectories}
        return LabelSets(scoring, shown, scorer, [*made, *rows, *queries], [], stopped, judged.graded, labels, judged)
    stopped = {t.key: scorer.after_the_end(t) for t in scoring.trajectories}
    return LabelSets(scoring, scoring, scorer, [*rows, *queries], made, stopped, scorer.paths, labels,
                     judged if relevance else None)


def _unasked_query_rows(scoring: Scoring) -> list[ScoreRow]:
    """What stands for the metrics of the steps' own queries where no judge was asked."""
    return [scoring.row(trajectory, found.step, found.stage, metric.name, Score.undefined(NO_JUDGE))
            for trajectory in scoring.trajectories for found in scored_lists(trajectory) if found.step != FINAL
            for metric in scoring.query_metrics]
