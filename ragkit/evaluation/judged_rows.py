"""What a judge is asked about a trajectory, and the score rows of what it said. Asks no model itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragkit.evaluation.scoring import Scoring, final_list, passage_text
from ragkit.evaluation.table import FINAL, ScoreRow
from ragkit.judge.samples import JudgeSample
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
    return [judge_sample(scoring, trajectory) for trajectory in scoring.trajectories
            if trajectory.error is None and not trajectory.meta.get("not_asked")]


def judged_rows(
    scoring: Scoring, trajectory: Trajectory, judgements: Mapping[tuple[tuple[Any, ...], str], Judgement] | None
) -> list[ScoreRow]:
    """What a judge said about a trajectory, by (trajectory key, metric name); None: nobody was asked."""
    rows = []
    for metric in scoring.of_kind("judged"):
        judgement = (judgements or {}).get((trajectory.key, metric.name))
        if judgement is not None:
            rows.append(
                scoring.row(trajectory, FINAL, "judge", metric.name, judgement.score, judge=judgement.judge,
                            n_calls=judgement.n_calls, n_stored=judgement.n_stored)
            )
        elif trajectory.error is not None and judgements is not None:
            failed = Score.failed(f"app failed: {trajectory.error}")
            rows.append(scoring.row(trajectory, FINAL, "judge", metric.name, failed))
        else:
            rows.append(scoring.row(trajectory, FINAL, "judge", metric.name, Score.undefined(NO_JUDGE)))
    return rows
