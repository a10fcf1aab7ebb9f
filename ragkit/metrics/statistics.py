"""What a list of scores says about a metric: a mean with its interval, and what could not be scored.

Comparisons of variants do not live here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ragkit.errors import DataError
from ragkit.metrics.registry import Direction
from ragkit.metrics.resampling import generator
from ragkit.records.judgements import Score

_CONFIDENCE = 0.95
_DRAWS_AT_ONCE = 4_000_000  # bounds the memory of the bootstrap to some 50 MB


@dataclass(frozen=True)
class Interval:
    """The mean of a metric over questions, with a 95 % percentile bootstrap interval [low, high].

    None where there is nothing to average; low and high are None too where a single question was scored, since one
    value says nothing of the spread. worst, best: the mean with every failed score taken as the end of the metric's
    range, None where it is unbounded there. All counts are of questions: scored where any repeat was, else failed
    where any repeat failed, else undefined; n_asked may be larger, by questions that have no score at all.
    """

    mean: float | None
    low: float | None
    high: float | None
    worst: float | None
    best: float | None
    n_scored: int
    n_asked: int
    n_undefined: int
    n_failed: int


def summarize(
    scores: Iterable[tuple[str, Score]],
    metric_range: tuple[float | None, float | None],
    n_asked: int | None = None,
    seed: int = 0,
    resamples: int = 2000,
    direction: Direction = "higher",
) -> Interval:
    """Summarise (question id, score) pairs of one metric; the same arguments give the same numbers.

    Repeats are averaged per question first, then questions are resampled. Failed and undefined scores never enter
    the mean; a failed one enters worst and best. Where the direction is "lower", worst is the upper end. Any whole
    number is a seed, also a negative one.
    Raises DataError where n_asked is less than the questions given.

    >>> interval = summarize([("q1", Score.scored(1)), ("q2", Score.scored(0)), ("q3", Score.failed("timed out"))],
    ...                      (0, 1))
    >>> interval.mean, interval.n_scored, interval.n_asked, round(interval.worst, 3), round(interval.best, 3)
    (0.5, 2, 3, 0.333, 0.667)
    """
    values: dict[str, list[float]] = {}
    failures: dict[str, int] = {}
    for question_id, score in scores:
        found = values.setdefault(question_id, [])
        if score.value is not None:
            found.append(score.value)
        elif score.status == "failed":
            failures[question_id] = failures.get(question_id, 0) + 1
    asked = len(values) if n_asked is None else n_asked
    if asked < len(values):
        raise DataError(f"n_asked: expected at least the {len(values)} questions that have scores, got {asked}")
    means = np.array([sum(found) / len(found) for found in values.values() if found], dtype=np.float64)
    n_failed = sum(1 for question_id in failures if not values[question_id])
    low, high = bootstrap(means, seed, resamples)
    ends = metric_range if direction != "lower" else metric_range[::-1]
    return Interval(
        mean=_mean(means.tolist()), low=low, high=high,
        worst=_with_failures(values, failures, ends[0]), best=_with_failures(values, failures, ends[1]),
        n_scored=len(means), n_asked=asked, n_undefined=len(values) - len(means) - n_failed, n_failed=n_failed)


def bootstrap(values: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]], seed: int,
              resamples: int) -> tuple[float | None, float | None]:
    """The 95 % percentile bootstrap interval of the mean; (None, None) for fewer than two values.

    >>> bootstrap([0.5, 0.5, 0.5], seed=0, resamples=100)
    (0.5, 0.5)
    """
    if resamples < 1:
        raise DataError(f"resamples: expected at least 1, got {resamples}")
    data = np.asarray(values, dtype=np.float64)
    count = len(data)
    if count < 2:
        return None, None
    if np.all(data == data[0]):  # the mean of equal numbers may be off by a rounding error
        return float(data[0]), float(data[0])
    random = generator(seed)
    rows = max(1, _DRAWS_AT_ONCE // count)
    means = np.concatenate([
        data[random.integers(0, count, size=(min(rows, resamples - done), count), dtype=np.int32)].mean(axis=1)
        for done in range(0, resamples, rows)])
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(means, (tail, 1 - tail))
    return float(low), float(high)


def _with_failures(values: dict[str, list[float]], failures: dict[str, int], end: float | None) -> float | None:
    if failures and end is None:
        return None
    means = []
    for question_id, found in values.items():
        failed = failures.get(question_id, 0)
        if found or failed:
            means.append((sum(found) + failed * (end or 0.0)) / (len(found) + failed))
    return _mean(means)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
