"""What a run's scores of one metric come to on some of its questions: mean, coverage, and bounds. Decides nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ragkit.comparison.sides import GOLD, JUDGED, Side
from ragkit.errors import DataError, shown
from ragkit.evaluation.judged_labels import NO_STATEMENT
from ragkit.evaluation.judged_rows import NO_JUDGE
from ragkit.metrics.batch import UNLABELLED
from ragkit.metrics.ranking import NO_RELEVANT
from ragkit.metrics.registry import Metric
from ragkit.metrics.statistics import Interval, summarize
from ragkit.records.judgements import Score

UNANSWERABLE: Final = "declared unanswerable"
BY_GOLD: Final = {UNANSWERABLE, UNLABELLED, NO_RELEVANT, NO_STATEMENT, "no reference answer",
                   "no claim in the reference answer"}

Ends = Mapping[tuple[str, int], tuple[float, float]]
"""(question id, repeat) -> the least and the greatest value that an unjudged score could have had."""


@dataclass(frozen=True)
class Tally:
    """The mean with its interval and counts. `by_gold` counts questions without a value since nothing is to be found.

    `coverage` is n_scored / (n_asked - by_gold); with holes, these count as covered. `bounds` is the mean with every
    hole at its worst and at its best end, where there are holes.
    """

    interval: Interval
    by_gold: int
    coverage: float
    reasons: Mapping[str, int]
    bounds: tuple[float, float] | None = None
    holes: int = 0


def labels_of(side: Side, wanted: str | None) -> str:
    """By which labels a run is gated: as asked for, else gold where it has any, else a judge's."""
    if wanted not in (None, GOLD, JUDGED):
        raise DataError(f"--labels {shown(wanted)}: expected gold or judged")
    if wanted == JUDGED and not side.judged:
        raise DataError(f"--labels judged: {side.name} has no judged labels; expected a run made with --relevance "
                        "judge")
    return wanted or (JUDGED if side.judged and not side.by_gold else GOLD)


def rows_of(side: Side, metric: Metric, labels: str, what: str) -> Mapping[str, Mapping[int, Score]]:
    """The scores of a metric by question and repeat; DataError where the run has none, `what` says who asks."""
    held = side.scores_by(labels)
    if metric.name not in held:
        other = JUDGED if labels == GOLD else GOLD
        hint = f"it has it by {other} labels (--labels {other})" if metric.name in side.scores_by(other) else \
            f"it has {', '.join(held) or 'none'}; `ragkit score` adds others to a folder"
        raise DataError(f"{what}: {metric.name} was not measured in {side.name}; {hint}")
    return held[metric.name]


def unanswerable_of(side: Side) -> frozenset[str]:
    """The questions that the data declare unanswerable, as their scores tell; the data set need not be at hand."""
    rows = [*side.scores.values(), *side.judged.values()]
    return frozenset(question for found in rows for question, repeats in found.items()
                     if any(score.reason == UNANSWERABLE for score in repeats.values()))


def is_by_gold(question: str, repeats: Mapping[int, Score], unanswerable: Collection[str]) -> bool:
    """Whether a question has no value because nothing is to be found there, as its gold says."""
    return bool(repeats) and all(score.status == "undefined" for score in repeats.values()) and (
        question in unanswerable or all(score.reason in BY_GOLD for score in repeats.values()))


def tally(metric: Metric, rows: Mapping[str, Mapping[int, Score]], questions: Sequence[str],
          unanswerable: Collection[str], seed: int, holes: Ends | None = None) -> Tally:
    """The tally of these questions. `holes`: the ends of scores that nobody judged."""
    own = {question: rows.get(question, {}) for question in questions}
    interval = summarize(((question, score) for question, repeats in own.items() for score in repeats.values()),
                         metric.definition.range, len(own), seed, direction=metric.definition.direction)
    by_gold = sum(is_by_gold(question, repeats, unanswerable) for question, repeats in own.items())
    ends = {key: found for key, found in (holes or {}).items() if key[0] in own}
    open_ = {question for question, _ in ends
             if not any(score.status == "scored" for score in own[question].values())}
    able = len(own) - by_gold
    coverage = (interval.n_scored + len(open_)) / able if able else 0.0
    return Tally(interval, by_gold, coverage, _reasons(own), _bounds(own, ends) if ends else None,
                 len({question for question, _ in ends}))


def _reasons(own: Mapping[str, Mapping[int, Score]]) -> dict[str, int]:
    """Why questions have no value, a reason a question, the most frequent first."""
    found: Counter[str] = Counter()
    for repeats in own.values():
        if not any(score.status == "scored" for score in repeats.values()):
            failed = [str(score.reason) for score in repeats.values() if score.status == "failed"]
            found[(failed or [str(score.reason) for score in repeats.values()] or ["no score"])[0]] += 1
    return dict(found.most_common())


def _bounds(own: Mapping[str, Mapping[int, Score]], ends: Ends) -> tuple[float, float]:
    means = []
    for question, repeats in own.items():
        pairs = [ends.get((question, repeat), (score.value, score.value))
                 for repeat, score in repeats.items() if (question, repeat) in ends or score.value is not None]
        if pairs:
            means.append(tuple(sum(pair[end] or 0.0 for pair in pairs) / len(pairs) for end in (0, 1)))
    low, high = (sum(mean[end] for mean in means) / len(means) for end in (0, 1))
    return low, high


def not_scored(found: Tally, subject: str, run: str) -> DataError:
    """What is said of a metric without any value: no flag makes that pass."""
    told = ", ".join(f"{count} x {reason}" for reason, count in list(found.reasons.items())[:3])
    hint = "; judge it first: `ragkit run` or `ragkit score` with --judge" if NO_JUDGE in found.reasons else ""
    return DataError(f"{subject}: nothing was scored in {run} (0 of {found.interval.n_asked} questions: "
                     f"{told or 'none asked'}){hint}")
