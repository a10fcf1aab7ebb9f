"""From trajectories to score rows: all rank metrics in one flat call, trajectory and answer metrics. Asks no model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ragkit.evaluation.funnel import answer_right
from ragkit.evaluation.judged_rows import judge_sample, judged_rows
from ragkit.evaluation.scoring import Scoring, scored_lists
from ragkit.evaluation.table import FINAL, ScoreRow
from ragkit.judge.offline import OFFLINE_JUDGE, OfflineResults, judge_offline
from ragkit.metrics.ranking import RankedIds, build_batch, score_batch
from ragkit.metrics.registry import Metric, definitions
from ragkit.metrics.trajectory import EvidencePath, StageList, score_path
from ragkit.records.judgements import Judgement, Score
from ragkit.records.trajectory import Passage, Trajectory

_LABEL_REASONS = {"unanswerable": "declared unanswerable", "unlabelled": "unlabelled"}


class Scorer:
    """Scores one variant. `judgements` holds what a judge said, by (question id, repeat) and metric name."""

    def __init__(self, scoring: Scoring, judgements: Mapping[tuple[tuple[Any, ...], str], Judgement] | None) -> None:
        self._scoring, self._row = scoring, scoring.row
        self._judgements = judgements
        self._states = scoring.dataset.label_states()
        self._questions = scoring.dataset.by_id
        self.answers: dict[tuple[str, int], dict[str, Score]] = {}  # what the rule "right" looks at
        self.paths: dict[tuple[str, int], EvidencePath] = {}
        self.offline: OfflineResults = {}
        self.unsure: set[tuple[str, int]] = set()  # whose path could be another one, had a judge judged all of it

    def rows(self, gold: bool = True) -> list[ScoreRow]:
        """All rows: every step's list, the trajectory metrics, and the metrics at the end.

        Without `gold` only those that no label is needed for.
        """
        self.offline = self._judge_offline()
        for trajectory in self._scoring.trajectories:
            self.answers[trajectory.key] = self._answer_scores(trajectory)
            self.paths[trajectory.key] = self._path(trajectory)
        result = self._ranking_rows() if gold else []
        for trajectory in self._scoring.trajectories:
            result += self._trajectory_rows(trajectory) if gold else []
            result += self._answer_rows(trajectory)
            result += judged_rows(self._scoring, trajectory, self._judgements)
        return result

    def after_the_end(self, trajectory: Trajectory) -> Score | None:
        """Cumulative recall at a step that was not taken: failed with the app, 0 where no step was taken at all.

        None where the last step's value holds on.
        """
        path = self.paths[trajectory.key]
        if trajectory.error is not None:
            return Score.failed(f"app failed: {trajectory.error}")
        if path.label_state != "labelled":
            return Score.undefined(_LABEL_REASONS[path.label_state])
        if not path.relevant:
            return Score.undefined("no relevant document")
        return None if trajectory.steps else Score.scored(0.0)

    def _labels(self, trajectory: Trajectory) -> str:
        return "gold" if self._states[trajectory.question_id] == "labelled" else "none"

    def _ranking_rows(self) -> list[ScoreRow]:
        scoring, metrics = self._scoring, self._scoring.of_kind("ranking")
        if not metrics:
            return []
        lists = [(trajectory, found) for trajectory in scoring.trajectories for found in scored_lists(trajectory)]
        rankings = [
            RankedIds(t.question_id, scoring.projection.names(t.question_id, found.passages), found.ranked,
                      found.cuttable, _LABEL_REASONS.get(self._states[t.question_id])) for t, found in lists
        ]
        scores = score_batch(build_batch(rankings, scoring.projection.qrels, level=scoring.level), metrics)
        rows = []
        for (trajectory, found), line in zip(lists, scores, strict=True):
            labels = self._labels(trajectory)
            for metric, score in zip(metrics, line, strict=True):
                shown = score if found.failed is None else Score.failed(found.failed)
                rows.append(self._row(trajectory, found.step, found.stage, metric.name, shown, labels=labels))
        return rows

    def _path(self, trajectory: Trajectory) -> EvidencePath:
        question_id, projection = trajectory.question_id, self._scoring.projection
        return evidence_path(
            trajectory, lambda passages: projection.names(question_id, passages),
            projection.qrels.get(question_id, {}), index_ids=projection.index_ids(question_id),
            answer_right=self.right(trajectory), label_state=self._states[question_id], level=self._scoring.level,
        )

    def right(self, trajectory: Trajectory) -> bool | None:
        """Whether the answer is right by the rule in use; None where nobody can tell."""
        return answer_right(self.answers[trajectory.key], self._scoring.rule)

    def _trajectory_rows(self, trajectory: Trajectory) -> list[ScoreRow]:
        metrics = self._scoring.of_kind("trajectory")
        outcomes = score_path(self.paths[trajectory.key], metrics)
        return placed_rows(self._scoring, trajectory, outcomes, labels=self._labels(trajectory))

    def _judge_offline(self) -> OfflineResults:
        """All answer metrics of all trajectories: the rule for "right" needs some that nobody asked to see."""
        fine = [trajectory for trajectory in self._scoring.trajectories if trajectory.error is None]
        samples = [judge_sample(self._scoring, trajectory) for trajectory in fine]
        references = [self._questions[trajectory.question_id].answers for trajectory in fine]
        return judge_offline(samples, [Metric(definition) for definition in definitions("answer")], references)

    def _answer_scores(self, trajectory: Trajectory) -> dict[str, Score]:
        names = [definition.name for definition in definitions("answer")]
        if trajectory.error is not None:
            return dict.fromkeys(names, Score.failed(f"app failed: {trajectory.error}"))
        scores = {name: self.offline[trajectory.key, name].score for name in names}
        judged = (self._judgements or {}).get((trajectory.key, "answer_accuracy"))
        return scores if judged is None else {**scores, "answer_accuracy": judged.score}

    def _answer_rows(self, trajectory: Trajectory) -> list[ScoreRow]:
        scores = self.answers[trajectory.key]
        return [
            self._row(trajectory, FINAL, "answer", metric.name, scores[metric.name], judge=OFFLINE_JUDGE)
            for metric in self._scoring.of_kind("answer")
        ]


def evidence_path(trajectory: Trajectory, names: Callable[[Sequence[Passage]], tuple[str, ...]],
                  gold: Mapping[str, float], **known: Any) -> EvidencePath:
    """The path of a trajectory in the units that `names` gives its passages; `known`: EvidencePath's other fields."""
    steps = trajectory.steps
    return EvidencePath(
        steps=tuple(() if step.outermost.error is not None else names(step.outermost.passages) for step in steps),
        gold=gold,
        context=None if trajectory.context is None else names(trajectory.context.passages),
        errors=tuple(step.outermost.error is not None for step in steps),
        stages=tuple(tuple(StageList(r.stage, names(r.passages)) for r in step.retrievals) for step in steps),
        truncated=any(p.truncated for p in getattr(trajectory.context, "passages", ())),
        question=trajectory.question,
        queries=tuple(step.outermost.query for step in steps),
        cost=_cost(trajectory),
        **known,
    )


def _cost(trajectory: Trajectory) -> float | None:
    """What the steps cost; the whole question's where the app told no step's."""
    costs = [step.usage["cost"] for step in trajectory.steps if "cost" in step.usage]
    return sum(costs) if costs else trajectory.usage.get("cost")


def placed_rows(scoring: Scoring, trajectory: Trajectory, outcomes: Mapping[str, Score | list[Score]],
                **more: Any) -> list[ScoreRow]:
    """Trajectory metrics as rows: a series has one a step, the others stand at the end and fail with the app."""
    rows = []
    for name, outcome in outcomes.items():
        if isinstance(outcome, list):
            for step, score in zip(trajectory.steps, outcome, strict=True):
                rows.append(scoring.row(trajectory, str(step.index), step.outermost.stage, name, score, **more))
            continue
        shown = outcome if trajectory.error is None else Score.failed(f"app failed: {trajectory.error}")
        rows.append(scoring.row(trajectory, FINAL, "trajectory", name, shown, **more))
    return rows
