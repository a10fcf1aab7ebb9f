"""What human labels say of a run: corrected means beside the raw ones, agreement of the judge, labels still needed.

The statistics are in metrics/prediction_powered.py and metrics/agreement.py, the draw of a sample in label_sample.py,
differences of two runs in label_difference.py.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from ragkit.errors import DataError
from ragkit.evaluation.judged_rows import judge_samples_of
from ragkit.evaluation.label_sheets import checked_sheet
from ragkit.evaluation.scoring import Scoring
from ragkit.evaluation.table import FINAL, ScoreRow
from ragkit.judge.samples import JudgeSample
from ragkit.metrics import agreement
from ragkit.metrics.prediction_powered import Corrected, Labelled, corrected_mean
from ragkit.metrics.registry import Metric, parse
from ragkit.metrics.resampling import Resampling
from ragkit.records.human_labels import HumanLabel, content_code, read_human_labels
from ragkit.records.trajectory import Trajectory
from ragkit.report.numbers import counted

DIFFERENCES = (0.1, 0.05, 0.02)  # of a mean with the range 0 to 1, for which the labels still needed are told
_FEW = 20
_RESAMPLES = 1000
Key = tuple[str, int]


def read_labels(path: str | Path) -> list[HumanLabel]:
    """The labels of a JSON Lines file, or of a filled-in sheet whose texts nobody changed."""
    return checked_sheet(path)[0] if Path(path).suffix.lower() in (".csv", ".tsv") else read_human_labels(path)


@dataclass(frozen=True)
class Matched:
    """The labels of one metric that fit a run: judge's scores a question, labelled questions, what was left out."""

    judged: Mapping[str, float]
    labelled: Mapping[str, Labelled]
    finite: bool
    notes: tuple[str, ...]

    @property
    def pairs(self) -> list[tuple[str, float, float, float | None]]:
        """(question, human, judge, weight) of the labelled questions."""
        return [(question, row.human, row.judge, row.weight) for question, row in self.labelled.items()]


def code_of(trajectory: Trajectory, sample: JudgeSample) -> str:
    """The code of all that a label of this answer was given on."""
    texts = [sample.question, sample.answer, sample.reference, *sample.contexts]
    return content_code(trajectory.question_id, trajectory.repeat, texts)


def codes_of(scoring: Scoring) -> dict[Key, str]:
    """The code of every answer of a run, by which a label finds the answer that it was given on."""
    by_key: dict[tuple[Any, ...], Trajectory] = {trajectory.key: trajectory for trajectory in scoring.trajectories}
    return {by_key[sample.key].key: code_of(by_key[sample.key], sample) for sample in judge_samples_of(scoring)}


def require_fitting(scoring: Scoring, labels: Sequence[HumanLabel]) -> None:
    """DataError where not one label belongs to an answer of the run, before a judge is paid for nothing."""
    if not labels:
        return
    codes = codes_of(scoring)
    known = set(codes.values())
    for label in labels:
        parse(label.metric)
        if label.row in known or (not label.row and (label.question_id, label.repeat) in codes):
            return
    raise DataError(f"labels: not one of {len(labels)} belongs to an answer of this run (the first is of question "
                    f"{labels[0].question_id!r}); expected labels of these answers: draw them with `ragkit labels "
                    "sample`, read them with `ragkit labels import`")


def corrected_entries(scoring: Scoring, rows: Sequence[ScoreRow], labels: Sequence[HumanLabel],
                      seed: int = 0) -> dict[str, Any]:
    """summary["corrected"]: an entry for every metric that has labels.

    A label of an answer that the run does not hold is left out and counted.
    """
    codes = codes_of(scoring)
    by_metric: dict[str, list[HumanLabel]] = defaultdict(list)
    for label in labels:
        by_metric[label.metric].append(label)
    entries = {}
    for name, own in by_metric.items():
        metric = parse(name)
        scores = {(row.question_id, row.repeat): row.value for row in rows
                  if row.metric == metric.name and row.step == FINAL}
        entries[metric.name] = _entry(metric, matched(scores, own, codes), seed)
    return entries


def matched(scores: Mapping[Key, float | None], labels: Sequence[HumanLabel], codes: Mapping[Key, str]) -> Matched:
    """Put labels and judge's scores together, question by question; repeats are averaged."""
    values = {key: value for key, value in scores.items() if value is not None}
    questions: dict[str, list[float]] = defaultdict(list)
    for (question, _), value in values.items():
        questions[question].append(value)
    by_code = {code: key for key, code in codes.items()}
    left: Counter[str] = Counter()
    pairs: dict[str, list[tuple[float, float, float | None, str]]] = defaultdict(list)
    weights = _weights(labels)
    for label in labels:
        key = (label.question_id, label.repeat)
        if label.row and label.row not in by_code:
            left["of an answer that this run does not hold (another run, or it was answered again)"] += 1
        elif label.value is None:
            left["left empty by the labeller"] += 1
        elif (key := by_code.get(label.row, key)) not in values:
            left["of an answer without a judge's score" if key in scores else "of a question that is not here"] += 1
        else:
            pairs[key[0]].append((values[key], label.value, weights.get(label.key), label.stratum))
    labelled = {question: Labelled(fmean(p[0] for p in own), fmean(p[1] for p in own), own[0][2], own[0][3])
                for question, own in pairs.items()}
    notes = tuple(f"{count} of {counted(len(labels), 'label')} {'was' if count == 1 else 'were'} {why}"
                  for why, count in left.most_common())
    return Matched({question: fmean(own) for question, own in questions.items()}, labelled,
                   len(values) == len(questions), notes)


def _weights(labels: Sequence[HumanLabel]) -> dict[tuple[str, str, int], float | None]:
    """Weights with which the labels that were given also stand for those of their stratum that were left empty."""
    strata: dict[str, list[HumanLabel]] = defaultdict(list)
    for label in labels:
        strata[label.stratum].append(label)
    made: dict[tuple[str, str, int], float | None] = {}
    for stratum, own in strata.items():
        given = [label for label in own if label.value is not None]
        whole = sum(label.weight or 0.0 for label in own)
        part = sum(label.weight or 0.0 for label in given)
        for label in given:
            scale = whole / part if stratum and part else 1.0
            made[label.key] = None if label.weight is None else label.weight * scale
    return made


def _entry(metric: Metric, found: Matched, seed: int) -> dict[str, Any]:
    made = corrected_mean(found.judged, found.labelled, metric.definition.range, finite=found.finite)
    warnings = [text for text in (made.warning, made.reason) if text]
    if made.mean is not None and made.n_labels < _FEW:
        warnings.append(f"only {counted(made.n_labels, 'label')}: the interval holds, and it is wide")
    return {
        "mean": made.mean, "low": made.low, "high": made.high, "raw": made.raw, "bias": made.bias, "trust": made.trust,
        "n_labels": made.n_labels, "n_questions": made.n_questions, "weighted": made.weighted,
        "warning": "; ".join(warnings) or None, "notes": list(found.notes),
        "labels_to_decide": labels_to_decide(made, metric), "agreement": agreement_of(found.pairs, metric, seed),
    }


def labels_to_decide(made: Corrected, metric: Metric) -> dict[str, dict[str, int | None]]:
    """For some differences: the labels in all that would decide them, and how many more than there are. None where
    the questions are too few for any number of labels: then `questions` says how many there must be."""
    low, high = metric.definition.range
    width = 1.0 if low is None or high is None else high - low
    found: dict[str, dict[str, int | None]] = {}
    for size in DIFFERENCES if made.mean is not None else ():
        needed = made.labels_to_decide(size * width)
        more = None if needed is None else max(0, needed - made.n_labels)
        questions = made.questions_to_decide(size * width) if needed is None else None
        found[f"{size * width:g}"] = {"labels": needed, "more": more, "questions": questions}
    return found


def agreement_of(pairs: Sequence[tuple[str, float, float, float | None]], metric: Metric,
                 seed: int = 0) -> dict[str, Any]:
    """How far the judge agrees with people on (question, human, judge, weight) rows, as plain data: AUROC, kappa, ….

    A label or score from the middle of the metric's range on is a yes. Where all weights are known the figures are of
    the whole run, else of the labelled rows as they came.
    """
    if not pairs:
        return {}
    low, high = metric.definition.range
    middle = 0.5 if low is None or high is None else (low + high) / 2
    people = [human >= middle for _, human, *_ in pairs]
    judges = [score for _, _, score, _ in pairs]
    weights = [weight for *_, weight in pairs if weight is not None]
    rows = Resampling(len(pairs), [question for question, *_ in pairs], seed, _RESAMPLES,
                      weights if len(weights) == len(pairs) else None)
    figures = agreement.score_figures(people, judges, rows)
    figures |= agreement.decision_figures(people, [score >= middle for score in judges], rows)
    return {"n": len(pairs), "level": middle, **{name: asdict(figure) for name, figure in figures.items()}}
