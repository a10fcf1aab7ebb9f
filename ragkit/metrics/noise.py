"""How much a metric moves when nothing was changed: variance split over repeats, and what follows from it.

What a run can detect at all, how many repeats would show a difference, and which margin a gate can enforce without
turning red by chance. Differences of two variants are in paired.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

import numpy as np

from ragkit.errors import DataError
from ragkit.metrics.paired import detectable, questions_to_decide

_ENOUGH_CHANGES = 20
_MOST_REPEATS = 1000


@dataclass(frozen=True, slots=True)
class VarianceSplit:
    """Where the spread of a metric comes from: variance between questions, and of one question asked again.

    `question` is of the questions' true means: what the repeats themselves add is taken off, and it is never below 0.
    `app` is of the values of one question's repeats, the app's and the judge's whims together; None where no question
    has two. `repeats` is the harmonic mean of repeats a question, `n` the number of questions.
    """

    question: float | None
    app: float | None
    repeats: float
    n: int


def variance_split(values: Mapping[str, Sequence[float]]) -> VarianceSplit:
    """Split the variance of the values of a metric, question id -> values of its repeats; unscored ones left out.

    Variances within questions are pooled by their degrees of freedom.

    >>> variance_split({"q1": [1.0, 0.0], "q2": [1.0, 1.0], "q3": [0.0, 0.0]}).app
    0.16666666666666666
    """
    lists = [found for found in values.values() if len(found)]
    if not lists:
        return VarianceSplit(None, None, 0.0, 0)
    counts = np.array([len(found) for found in lists])
    flat = np.array([value for found in lists for value in found], dtype=np.float64)
    means = np.add.reduceat(flat, np.cumsum(counts) - counts) / counts
    harmonic, freedom = len(lists) / math.fsum(1 / counts), len(flat) - len(lists)
    within = float(np.sum((flat - np.repeat(means, counts)) ** 2)) / freedom if freedom else None
    if len(lists) < 2:
        return VarianceSplit(None, within, harmonic, len(lists))
    between = float(np.var(means, ddof=1))
    return VarianceSplit(max(0.0, between - (within or 0.0) / harmonic), within, harmonic, len(lists))


def detectable_of_run(values: Mapping[str, Sequence[float]]) -> float | None:
    """The smallest mean difference to a run like this one, on the same questions, that is found in four of five cases.

    With repeats it is what the app's own whims would hide. Without, those are unknown: then it is the upper bound of
    two runs whose values have nothing to do with each other. None below two questions, and where nothing varied: that
    repeats happened to agree does not mean that any difference would be found. Two-sided at 5 %.
    """
    split = variance_split(values)
    if split.n < 2 or split.question is None:
        return None
    noise = split.question if split.app is None else split.app / split.repeats
    return detectable(math.sqrt(2 * noise), split.n) if noise > 0 else None


def repeats_to_decide(
    difference: float, baseline: Mapping[str, Sequence[float]], variant: Mapping[str, Sequence[float]]
) -> int | None:
    """How many repeats of each question, in both variants, would show this difference on the same questions.

    None where the difference is 0, where there are no repeats to learn from, or where no number of them would do,
    because the questions themselves differ too much in what they gain.
    """
    shared = [question for question in baseline.keys() & variant.keys() if baseline[question] and variant[question]]
    repeated = (any(len(side[question]) > 1 for question in shared) for side in (baseline, variant))
    if difference == 0 or len(shared) < 2 or not all(repeated):
        return None
    splits = [variance_split({question: side[question] for question in shared}) for side in (baseline, variant)]
    gains = [fmean(variant[question]) - fmean(baseline[question]) for question in shared]
    noise = math.fsum(split.app or 0.0 for split in splits)
    lasting = max(0.0, float(np.var(gains, ddof=1)) - math.fsum((s.app or 0.0) / s.repeats for s in splits))
    for repeats in range(1, _MOST_REPEATS + 1):
        needed = questions_to_decide(difference, math.sqrt(lasting + noise / repeats))
        if needed is not None and needed <= len(shared):
            return repeats
    return None


def smallest_margin(
    runs: Sequence[Mapping[str, Sequence[float]]], metric_range: tuple[float | None, float | None]
) -> float | None:
    """The smallest margin of non-inferiority that a release without any change keeps in at least 95 of 100 cases.

    `runs` are runs of the same app: one with repeats tells by them, several tell by their differences. None where
    nothing tells (one run without repeats), or with fewer than two questions. Where fewer than 20 questions changed at
    all, one more that changes by the metric's whole range each way is assumed, since rare changes are easily unseen.

    A release passes where the lower end of its paired 95 % interval is above minus the margin; the margin therefore
    holds that interval's half width and the release's own luck, both at 2.5 % (Student's t), more than the 5 % that
    the promise needs: an interval from 40 questions is a little too narrow itself.
    """
    if not runs:
        raise DataError("smallest_margin: expected at least one run")
    found = _noise(runs)
    if found is None:
        return None
    variance, n, changed = found
    low, high = metric_range
    if changed < _ENOUGH_CHANGES and low is not None and high is not None:
        variance += 2 * (high - low) ** 2 / n / _repeats(runs)
    from scipy import stats  # half a second, only for who asks for a margin

    return float(2 * stats.t.ppf(0.975, n - 1) * math.sqrt(variance / n))


def _repeats(runs: Sequence[Mapping[str, Sequence[float]]]) -> float:
    return min(variance_split(run).repeats for run in runs)


def _noise(runs: Sequence[Mapping[str, Sequence[float]]]) -> tuple[float, int, int] | None:
    """(variance of a question's difference between two runs without a change, questions, questions that changed)."""
    shared = [question for question in runs[0] if all(run.get(question) for run in runs)]
    if len(shared) < 2:
        return None
    if len(runs) > 1:
        # No change means a mean difference of 0, so the squares themselves are the variance.
        squares = [np.array([(fmean(one[q]) - fmean(other[q])) ** 2 for q in shared])
                   for one, other in combinations(runs, 2)]
        return float(np.mean(squares)), len(shared), int(np.sum(np.any(np.array(squares) > 0, axis=0)))
    split = variance_split({question: runs[0][question] for question in shared})
    if split.app is None:
        return None
    changed = sum(len(set(runs[0][question])) > 1 for question in shared)
    return 2 * split.app / split.repeats, len(shared), changed
