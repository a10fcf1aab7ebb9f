"""Which answers of a run people should label: a sample, each row with the number of questions that it stands for.

How it is drawn is in label_draw.py, how the labels correct the run's means in label_report.py, the sheets that people
fill in in label_sheets.py.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from ragkit.errors import DataError
from ragkit.evaluation.judged_rows import asks_a_judge, judge_sample
from ragkit.evaluation.label_draw import Drawn, Unit, draw
from ragkit.evaluation.label_report import code_of
from ragkit.evaluation.reopen import PastRun
from ragkit.evaluation.scoring import Scoring
from ragkit.evaluation.table import final_values, read_scores
from ragkit.judge.samples import JudgeSample
from ragkit.metrics.registry import Metric, parse
from ragkit.records.human_labels import USUAL_METRIC, HumanLabel
from ragkit.records.trajectory import Trajectory

NO_GROUP = "(none)"
STAND_IN = "lexical_support"
_SUPPORTED = "Do the passages support every claim of the answer? 1 yes, 0 no; a share of the claims is fine"
_HOW = {
    "faithfulness": _SUPPORTED,
    "lexical_support": _SUPPORTED,
    "lexical_coverage": _SUPPORTED,
    "context_precision": "Are the passages useful for the question, the useful ones first? 1 yes, 0 no, or between",
    "context_recall": "Do the passages carry every statement of the reference answer? 1 yes, 0 no; a share is fine",
    "answer_relevancy": "Does the answer answer the question that was asked? 1 yes, 0 no, or between",
    "answer_accuracy": "Does the answer say the same as the reference answer? 1 yes, 0 no, or between",
    "context_relevance": "Are the passages about what the question asks? 1 yes, 0 no, or between",
    "response_groundedness": "Does the answer rest on the passages? 1 yes, 0 no, or between",
}


def how_to_label(metric: Metric) -> str:
    """What the labeller is to decide, in one sentence."""
    low, high = metric.definition.range
    ends = f"from {low:g} to {high:g}" if low is not None and high is not None else "as a number"
    return _HOW.get(metric.name, f"The value that you would give, {ends}: {metric.definition.summary.rstrip('.')}")


class LabelSample(NamedTuple):
    """Labels to be given: by what metric, and by whose scores they were drawn."""

    metric: Metric
    drawn_by: Metric
    labels: list[HumanLabel]
    pool: int


def sample_labels(past: PastRun, metric: str | None, count: int, by: str | None, seed: int) -> LabelSample:
    """Labels to be given on a sample of a run's answers.

    `metric` is what is labelled, the run's first judged one where it is None; where no judge has scored it yet, word
    overlap says what is likely to be bad. `by` is what the groups are: "category", a field of the questions' metadata,
    or "none". Where a question was asked several times, one of its answers is drawn.
    """
    wanted = _metric(past, metric)
    scores, drawn_by = _scores(past, wanted), wanted
    if not scores and wanted.definition.kind == "judged":
        drawn_by = parse(STAND_IN)
        scores = _scores(past, drawn_by)
    scoring = past.scoring()
    trajectories = {t.key: t for t in scoring.trajectories if asks_a_judge(t)}
    generator, repeats = random.Random(seed), dict[str, list[tuple[str, int]]]()
    for key in sorted(trajectories):
        if key in scores:
            repeats.setdefault(key[0], []).append(key)
    if not repeats:
        raise DataError(f"{past.folder.path}: no answer has a score by {wanted.name}; expected a run that a judge has "
                        "scored: nothing can be drawn by its scores")
    keys = [generator.choice(own) for own in repeats.values()]
    units = [Unit(*key, _group(scoring, key[0], by), scores[key]) for key in keys]
    made = []
    for drawn in draw(units, count, seed, drawn_by.definition.range):
        trajectory = trajectories[drawn.unit.question_id, drawn.unit.repeat]
        made.append(label_of(wanted.name, trajectory, judge_sample(scoring, trajectory), drawn))
    return LabelSample(wanted, drawn_by, made, len(units))


def label_of(metric: str, trajectory: Trajectory, sample: JudgeSample, drawn: Drawn) -> HumanLabel:
    """A label to be given: what is shown, and how it was drawn."""
    return HumanLabel(metric, trajectory.question_id, trajectory.repeat, None, code_of(trajectory, sample),
                      drawn.weight, drawn.stratum, sample.question, sample.answer or "", sample.contexts,
                      sample.reference or "")


def same_questions(past: PastRun, labels: Sequence[HumanLabel]) -> tuple[list[HumanLabel], int]:
    """The questions of another run's labels, with that run's weights, to be labelled here; and how many are missing.

    Labels of the same questions in both runs make a paired difference, which needs fewer of them.
    """
    scoring = past.scoring()
    trajectories = {t.key: t for t in scoring.trajectories if asks_a_judge(t)}
    made = []
    for label in labels:
        trajectory = trajectories.get((label.question_id, label.repeat)) or trajectories.get((label.question_id, 0))
        if trajectory is not None:
            drawn = Drawn(Unit(*trajectory.key, "", None), label.stratum, label.weight or 1.0)
            made.append(label_of(label.metric, trajectory, judge_sample(scoring, trajectory), drawn))
    return made, len(labels) - len(made)


def _metric(past: PastRun, name: str | None) -> Metric:
    judged = [metric for metric in past.plan.metrics if metric.definition.kind == "judged"]
    if name is not None:
        return parse(name)
    return next((metric for metric in judged if metric.name == USUAL_METRIC), judged[0] if judged else
                parse(USUAL_METRIC))


def _scores(past: PastRun, metric: Metric) -> dict[tuple[str, int], float]:
    found = final_values(read_scores(past.folder.scores), metric.name)
    return {key: value for key, value in found.items() if value is not None}


def _group(scoring: Scoring, question_id: str, by: str | None) -> str:
    question = scoring.dataset.by_id[question_id]
    if by == "none":
        return ""
    found: object = question.category if by in (None, "category") else question.metadata.get(str(by))
    if found is None and by not in (None, "category") and not any(str(by) in q.metadata
                                                                  for q in scoring.dataset.questions):
        raise DataError(f"--by {by}: no question has such a field; expected category, none, or a field of the "
                        "questions' metadata")
    return NO_GROUP if found is None else str(found)
