"""What nobody judged, for `gate --frozen`: between which ends a score could lie, and the pairs that would settle it.

No model is called: what the judgement store holds is read, and where it is not at hand, the metric's range bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ragkit.comparison.gate_tally import Ends
from ragkit.comparison.sides import JUDGED, Side
from ragkit.evaluation.evaluate import run_async
from ragkit.evaluation.judged_bounds import ONE_WAY
from ragkit.evaluation.judged_labels import JudgedScorer
from ragkit.evaluation.label_sets import label_run
from ragkit.evaluation.relevance import JudgedLabels, unjudged
from ragkit.evaluation.reopen import RunParts, past_judge
from ragkit.evaluation.scoring import Scoring
from ragkit.evaluation.table import FINAL
from ragkit.metrics.registry import Metric
from ragkit.records.judgements import Score
from ragkit.records.questions import text_id

_OWN_FAULTS = ("app failed", "step failed")  # nothing that a judge could mend


@dataclass(frozen=True)
class Holes:
    """The ends of each score that nobody judged, and the pairs behind them: {"question", "passage" or "metric",
    "reason"}."""

    ends: Ends = field(default_factory=dict)
    pairs: tuple[dict[str, Any], ...] = ()


class FrozenJudge:
    """What a run's judge said and left unsaid. Its store is read once, when a judged metric has a hole."""

    def __init__(self, side: Side, labels: str) -> None:
        self._side, self._labels = side, labels
        self._read: tuple[Scoring, JudgedLabels] | None = None
        self._opened = False

    def holes(self, metric: Metric, rows: Mapping[str, Mapping[int, Score]], questions: Sequence[str]) -> Holes:
        """The holes of a metric on these questions; none where all was judged, or no judge is asked for it."""
        kind = metric.definition.kind
        if kind != "judged" and self._labels != JUDGED:
            return Holes()
        open_ = {(question, repeat): str(score.reason) for question in questions
                 for repeat, score in rows.get(question, {}).items() if _is_hole(score)}
        low, high = metric.definition.range
        if not open_ or low is None or high is None:  # an unbounded end bounds nothing: it stays a failure
            return Holes()
        ends: dict[tuple[str, int], tuple[float, float]] = dict.fromkeys(open_, (low, high))
        if kind == "judged":
            return Holes(ends, tuple({"question": question, "repeat": repeat, "metric": metric.name, "reason": reason}
                                     for (question, repeat), reason in open_.items()))
        found = self._labels_of_run()
        if found is None:
            return Holes(ends, tuple({"question": question, "repeat": repeat, "passage": None, "reason": reason}
                                     for (question, repeat), reason in open_.items()))
        return Holes(ends | _tight(*found, metric, open_), _pairs(found[1], {question for question, _ in open_}))

    def _labels_of_run(self) -> tuple[Scoring, JudgedLabels] | None:
        """The scoring and the judged labels, from the files; None where texts, data set or store are not at hand."""
        if not self._opened:
            self._opened, past = True, self._side.past
            store = None if past is None else past.run.get("store")
            if past is not None and store and Path(store).exists():
                self._read = run_async(_labels_in_store(past))
        return self._read


async def _labels_in_store(past: RunParts) -> tuple[Scoring, JudgedLabels] | None:
    scoring = past.scoring()
    with past_judge(past.run) as gateway:  # it is never asked
        labels = await label_run(scoring, True, gateway)
    return None if labels is None else (scoring, labels)


def _is_hole(score: Score) -> bool:
    return score.status == "failed" and not str(score.reason).startswith(_OWN_FAULTS)


def _tight(scoring: Scoring, labels: JudgedLabels, metric: Metric,
           open_: Mapping[tuple[str, int], str]) -> dict[tuple[str, int], tuple[float, float]]:
    """The value with every unjudged passage at the worst and at the best grade, where that is what bounds it."""
    if metric.definition.kind != "ranking" or metric.definition.name not in ONE_WAY:
        return {}
    alone = replace(scoring, metrics=(metric,), trajectories=tuple(t for t in scoring.trajectories if t.key in open_))
    values: list[dict[tuple[str, int], float | None]] = []
    for high in (False, True):
        rows = _AtOneEnd(alone, labels, high).rows()
        values.append({(row.question_id, row.repeat): row.value for row in rows if row.step == FINAL})
    found = {}
    for key in open_:
        ends = [end for end in (values[0].get(key), values[1].get(key)) if end is not None]
        if len(ends) == 2:
            found[key] = (min(ends), max(ends))
    return found


class _AtOneEnd(JudgedScorer):
    """Scores as if every unjudged passage had the worst grade, or (high) the best."""

    def __init__(self, scoring: Scoring, labels: JudgedLabels, high: bool) -> None:
        super().__init__(scoring, labels, lambda _: None)
        self._high = high

    def _between(self, cases: Sequence[Any], metrics: Sequence[Metric],
                 scored: Callable[[Sequence[int], bool], list[list[Score]]]) -> list[list[Score]]:
        return scored(range(len(cases)), self._high)


def _pairs(labels: JudgedLabels, questions: set[str]) -> tuple[dict[str, Any], ...]:
    """The (question, passage) pairs of these questions that have no grade."""
    found = []
    for question in sorted(questions):
        pool = labels.questions.get(question)
        missing = {} if pool is None else unjudged(pool)
        for text, ids in ({} if pool is None else pool.asked.passages).items():
            if text_id(text) in missing:
                found.append({"question": question, "passage": next(iter(ids), None), "reason": missing[text_id(text)]})
    return tuple(found)
