"""What a judge is asked about a trajectory, and the score rows of what it said. Asks no model itself."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

from ragkit.evaluation.scoring import Scoring, final_list, passage_text
from ragkit.evaluation.table import FINAL, ScoreRow
from ragkit.judge.samples import JudgeSample
from ragkit.judge.verdicts import CONTEXT_METRICS
from ragkit.metrics.registry import Metric
from ragkit.records.judgements import Judgement, Score
from ragkit.records.trajectory import Trajectory

NO_JUDGE = "needs a judge"


def judge_sample(scoring: Scoring, trajectory: Trajectory) -> JudgeSample:
    """What a judge is asked about: the question, the answer, the texts of the final context, the reference answer."""
    question, end = scoring.dataset.by_id[trajectory.question_id], final_list(trajectory)
    texts = [passage_text(passage, scoring.dataset) for passage in end.passages]
    reference = question.answers[0] if question.answers else None
    contexts = tuple(text for text in texts if text)
    ranked = end.ranked and end.cuttable
    return JudgeSample(trajectory.key, question.text, trajectory.answer, contexts, ranked, reference)


def judge_samples_of(scoring: Scoring) -> list[JudgeSample]:
    """A sample for every trajectory that a judge can be asked about: the app did not fail, and was asked."""
    return [judge_sample(scoring, trajectory) for trajectory in scoring.trajectories if asks_a_judge(trajectory)]


def asks_a_judge(trajectory: Trajectory) -> bool:
    return trajectory.error is None and not trajectory.meta.get("not_asked")


def step_samples(scoring: Scoring, trajectory: Trajectory) -> dict[str, JudgeSample]:
    """What a judge is asked about each step's list, by step: as at the end, with the passages that the step found.

    A step that failed has none.
    """
    end = judge_sample(scoring, trajectory)
    found = {}
    for step in trajectory.steps:
        own = step.outermost
        if own.error is None:
            texts = (passage_text(passage, scoring.dataset) for passage in own.passages)
            found[str(step.index)] = replace(end, key=step_key(trajectory, str(step.index)), contexts_ranked=own.ranked,
                                             contexts=tuple(text for text in texts if text))
    return found


def step_key(trajectory: Trajectory, step: str) -> tuple[Hashable, ...]:
    """The key of a step's sample: its trajectory's, and the step."""
    return (*trajectory.key, step)


def step_metrics(scoring: Scoring) -> tuple[Metric, ...]:
    """The metrics that judge the list of a step: those that read no more than a list and the question's own texts."""
    return tuple(metric for metric in scoring.of_kind("judged") if scoring.judge_steps
                 and metric.name in CONTEXT_METRICS)


def judge_work_of(scoring: Scoring) -> list[tuple[JudgeSample, Metric]]:
    """All that a judge is asked: each judged metric at the end, then those of each step, a trajectory at a time."""
    work, at_the_end, at_steps = [], scoring.of_kind("judged"), step_metrics(scoring)
    for trajectory in scoring.trajectories:
        if asks_a_judge(trajectory):
            end = judge_sample(scoring, trajectory)
            work += [(end, metric) for metric in at_the_end]
            for sample in step_samples(scoring, trajectory).values() if at_steps else ():
                work += [(sample, metric) for metric in at_steps]
    return work


def judged_rows(
    scoring: Scoring, trajectory: Trajectory, judgements: Mapping[tuple[tuple[Any, ...], str], Judgement] | None
) -> list[ScoreRow]:
    """What a judge said about a trajectory, by (sample key, metric name); None: nobody was asked.

    A row a metric at the end, and a row a metric and step where the steps were judged.
    """
    rows = []
    for metric in scoring.of_kind("judged"):
        judgement = (judgements or {}).get((trajectory.key, metric.name))
        if judgement is not None:
            rows.append(_row(scoring, trajectory, FINAL, judgement))
        elif trajectory.error is not None and judgements is not None:
            failed = Score.failed(f"app failed: {trajectory.error}")
            rows.append(scoring.row(trajectory, FINAL, "judge", metric.name, failed))
        else:
            rows.append(scoring.row(trajectory, FINAL, "judge", metric.name, Score.undefined(NO_JUDGE)))
    for step in trajectory.steps if judgements is not None and asks_a_judge(trajectory) else ():
        broken, place = step.outermost.error, str(step.index)
        for metric in step_metrics(scoring):
            judgement = (judgements or {}).get((step_key(trajectory, place), metric.name))
            if broken is not None:
                failed = Score.failed(f"step failed: {broken}")
                rows.append(scoring.row(trajectory, place, "judge", metric.name, failed))
            elif judgement is not None:
                rows.append(_row(scoring, trajectory, place, judgement))
    return rows


def _row(scoring: Scoring, trajectory: Trajectory, step: str, judgement: Judgement) -> ScoreRow:
    return scoring.row(trajectory, step, "judge", judgement.metric, judgement.score, judge=judgement.judge,
                       n_calls=judgement.n_calls, n_stored=judgement.n_stored)
