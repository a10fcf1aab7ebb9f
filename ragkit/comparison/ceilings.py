"""How high a metric can come on a question set at all: precision@5 cannot exceed 0.4 with two gold passages each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragkit.comparison.rules import Rule
from ragkit.comparison.sides import QuestionFacts
from ragkit.metrics.ranking import RankedIds, build_batch, score_arrays
from ragkit.metrics.registry import Metric
from ragkit.report.numbers import counted, number, plain


@dataclass(frozen=True)
class Attainable:
    """The least and the greatest mean that a metric can have, None where it is unbounded.

    `gold` says in words what sets the better end, where it is the questions' gold and not the metric's own range.
    """

    low: float | None
    high: float | None
    gold: str | None = None


def attainable(metric: Metric, facts: Sequence[QuestionFacts], level: float = 1.0) -> Attainable:
    """What the mean over these questions can be: of a rank metric its value on ideal lists, all gold first, best first.

    Of other metrics, and where the gold is not known, the metric's range. Questions without gold count for nothing.

    >>> from ragkit.metrics.registry import parse
    >>> two = [QuestionFacts("q1", n_gold=2, grades={"a": 1.0, "b": 1.0})]
    >>> attainable(parse("precision@5"), two)
    Attainable(low=0.0, high=0.4, gold='2 gold passages each')
    """
    low, high = metric.definition.range
    best = _ideal_mean(metric, facts, level)
    if best is None or best == (low if metric.definition.direction == "lower" else high):
        return Attainable(low, high)
    if metric.definition.direction == "lower":
        return Attainable(best, high, _gold(facts))
    return Attainable(low, best, _gold(facts))


def out_of_reach(rule: Rule, ends: Attainable) -> str | None:
    """Why no answer of any app could keep the rule; None where one could.

    >>> from ragkit.comparison.rules import parse_rule
    >>> out_of_reach(parse_rule("precision@5>0.6"), Attainable(0.0, 0.4, "2 gold passages each"))
    'above its ceiling: precision@5 cannot exceed 0.4 (2 gold passages each)'
    """
    why = f"({ends.gold})" if ends.gold else "(its range)"
    low, high = ends.low, ends.high
    if rule.compare in (">=", ">") or (rule.compare == "==" and high is not None and rule.threshold > high):
        return None if high is None or rule.holds(high) else \
            f"above its ceiling: {rule.subject} cannot exceed {_short(high)} {why}"
    if rule.compare in ("<=", "<") or (low is not None and rule.threshold < low):
        return None if low is None or rule.holds(low) else \
            f"below its floor: {rule.subject} cannot fall below {_short(low)} {why}"
    return None


def _ideal_mean(metric: Metric, facts: Sequence[QuestionFacts], level: float) -> float | None:
    """The mean on ideal lists; None for a metric that an ideal list need not be the best for."""
    definition = metric.definition
    if definition.kind != "ranking" or "swap_up" not in definition.laws or definition.against == "query":
        return None
    grades = {one.id: one.grades for one in facts if one.grades and one.label_state != "unanswerable"}
    if not grades:
        return None
    ideal = [RankedIds(question, sorted((name for name, grade in own.items() if grade > 0), key=own.__getitem__,
                                        reverse=True))
             for question, own in grades.items()]
    values = score_arrays(build_batch(ideal, grades, level=level), [metric])[:, 0]
    known = values[~np.isnan(values)]
    return math.fsum(known.tolist()) / len(known) if len(known) else None


def _gold(facts: Sequence[QuestionFacts]) -> str:
    counts = [one.n_gold for one in facts if one.n_gold]
    if not counts:
        return "as its gold is"
    if len(set(counts)) == 1:
        return f"{counted(counts[0], 'gold passage')} each"
    return f"{min(counts)} to {max(counts)} gold passages each, {number(sum(counts) / len(counts), 1)} in the mean"


def _short(value: float) -> str:
    return plain(round(value, 4))
