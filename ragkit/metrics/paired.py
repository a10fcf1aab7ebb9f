"""Two variants on the same questions: is the difference more than chance, and how many questions would tell.

The mean of one variant has its interval in statistics.py; several differences tested together are Holm's (`holm`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ragkit.errors import DataError
from ragkit.metrics.registry import Direction
from ragkit.metrics.resampling import Array, generator

RESAMPLES = 10_000
ALPHA = 0.05
POWER = 0.8
_ROUNDING = 1e-12  # values closer than that are the same value, computed in another order
_CELLS_AT_ONCE = 4_000_000  # bounds the memory of the draws to some 40 MB
_Z_TEST, _Z_POWER = NormalDist().inv_cdf(1 - ALPHA / 2), NormalDist().inv_cdf(POWER)


@dataclass(frozen=True, slots=True)
class Pair:
    """The values of one metric by question of two variants, repeats averaged already."""

    baseline: Mapping[str, float]
    variant: Mapping[str, float]
    direction: Direction = "higher"


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Variant minus baseline over the `n` questions that both scored, with a 95 % percentile bootstrap interval.

    `p` is of the paired randomisation test, (b+1)/(B+1) over B sign flips, two-sided. Wins and losses follow the
    metric's direction. `sd` is the standard deviation of the questions' differences. All None where no question was
    scored by both; low, high and sd where it is a single one. `questions_to_decide` is the total for 80 % power at
    this difference and spread, two-sided at 5 %; None where the difference is 0 or its spread unknown.
    """

    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    wins: int
    ties: int
    losses: int
    n: int
    sd: float | None
    questions_to_decide: int | None


def compare_pairs(pairs: Sequence[Pair], seed: int = 0, resamples: int = RESAMPLES, *, test: bool = True,
                  only: Container[str] | None = None) -> list[PairedDifference]:
    """Every pair's difference, interval and test. Pairs that scored the same questions share their draws.

    Questions are paired by id, never by position; what only one of both scored is left out. Identical variants give
    difference 0 and p = 1. The same arguments give the same numbers; any whole number is a seed. Without `test` the
    p is None, and the rest the same. `only` these questions, where they are named.

    >>> found = compare_pairs([Pair({"q1": 0.0, "q2": 0.5, "q3": 1.0}, {"q3": 1.0, "q1": 1.0, "q2": 0.5, "q9": 1.0})])
    >>> found[0].difference, found[0].n, (found[0].wins, found[0].ties, found[0].losses), found[0].p
    (0.3333333333333333, 3, (1, 2, 0), 1.0)
    """
    if resamples < 1:
        raise DataError(f"resamples: expected at least 1, got {resamples}")
    found: dict[int, PairedDifference] = {}
    for questions, places in _of_same_questions(pairs, only).items():
        if not questions:
            empty = PairedDifference(None, None, None, None, 0, 0, 0, 0, None, None)
            found |= dict.fromkeys(places, empty)
            continue
        differences = _differences([pairs[place] for place in places], questions)
        draws = _Draws(differences, seed, resamples, test)
        for column, place in enumerate(places):
            found[place] = _described(differences[:, column], draws, column, pairs[place].direction)
    return [found[place] for place in range(len(pairs))]


def _of_same_questions(pairs: Sequence[Pair], only: Container[str] | None) -> dict[tuple[str, ...], list[int]]:
    """The questions that both of a pair scored, in the order of their ids -> the places of these pairs."""
    sets: dict[tuple[str, ...], list[int]] = defaultdict(list)
    known: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[str, ...]] = {}
    for place, pair in enumerate(pairs):
        both = tuple(pair.baseline), tuple(pair.variant)
        if both not in known:  # sorting is what takes long, and most pairs hold the same questions
            shared = pair.baseline.keys() & pair.variant.keys()
            known[both] = tuple(sorted(shared if only is None else [name for name in shared if name in only]))
        sets[known[both]].append(place)
    return sets


def _differences(pairs: Sequence[Pair], questions: Sequence[str]) -> Array:
    """A column a pair, a row a question."""
    columns: dict[int, Array] = {}  # a baseline stands in many pairs

    def column(values: Mapping[str, float]) -> Array:
        if id(values) not in columns:
            columns[id(values)] = np.fromiter(map(values.__getitem__, questions), np.float64, len(questions))
        return columns[id(values)]

    found = np.stack([column(pair.variant) - column(pair.baseline) for pair in pairs], axis=1)
    found[np.abs(found) < _ROUNDING] = 0.0
    return found


def _described(differences: Array, draws: _Draws, column: int, direction: Direction) -> PairedDifference:
    n = len(differences)
    mean = math.fsum(differences.tolist()) / n
    up, down = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    wins, losses = (down, up) if direction == "lower" else (up, down)
    sd = float(np.std(differences, ddof=1)) if n > 1 else None
    return PairedDifference(
        mean, *draws.interval(column), draws.p(column), wins, n - up - down, losses, n, sd,
        None if sd is None else questions_to_decide(mean, sd))


class _Draws:
    """The bootstrap means and the sign-flipped means of many columns of differences, drawn once for all of them."""

    def __init__(self, differences: Array, seed: int, resamples: int, test: bool) -> None:
        n, columns = differences.shape
        self._differences = differences
        self._resamples = resamples
        self._means = np.empty((resamples, columns))
        self._extreme = np.zeros(columns, dtype=np.int64) if test else None
        totals = differences.sum(axis=0)
        # Sums of the same numbers in another order differ by rounding: equal is what equals up to that.
        enough = np.abs(totals) - _ROUNDING * np.abs(differences).sum(axis=0)
        random = generator(seed)
        signs = random.spawn(1)[0]  # of their own, so that the same questions are drawn with and without a test
        rows = max(1, _CELLS_AT_ONCE // n)
        weights = np.empty((min(rows, resamples), n))
        for done in range(0, resamples, rows):
            count = min(rows, resamples - done)
            for row, picks in enumerate(random.integers(0, n, size=(count, n), dtype=np.int32)):
                weights[row] = np.bincount(picks, minlength=n)
            self._means[done:done + count] = weights[:count] @ differences / n
            if self._extreme is not None:
                bits = signs.integers(0, 256, size=(count, -(-n // 8)), dtype=np.uint8)
                weights[:count] = np.unpackbits(bits, axis=1)[:, :n]
                self._extreme += np.sum(np.abs(totals - 2 * (weights[:count] @ differences)) >= enough, axis=0)

    def interval(self, column: int) -> tuple[float | None, float | None]:
        values = self._differences[:, column]
        if len(values) < 2:
            return None, None
        if np.all(values == values[0]):
            return float(values[0]), float(values[0])
        low, high = np.quantile(self._means[:, column], (ALPHA / 2, 1 - ALPHA / 2))
        return float(low), float(high)

    def p(self, column: int) -> float | None:
        return None if self._extreme is None else float((self._extreme[column] + 1) / (self._resamples + 1))


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p of values tested together, in their order; None stays None and counts for nothing.

    Source: Holm, 1979.

    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    order = sorted((p, place) for place, p in enumerate(values) if p is not None)
    adjusted: list[float | None] = [None] * len(values)
    highest = 0.0
    for done, (p, place) in enumerate(order):
        highest = max(highest, min(1.0, p * (len(order) - done)))
        adjusted[place] = highest
    return adjusted


def questions_to_decide(difference: float, sd: float) -> int | None:
    """How many questions in all would show this difference with 80 % power, two-sided at 5 %; None for no difference.

    >>> questions_to_decide(0.1, 0.5), questions_to_decide(0.0, 0.5)
    (197, None)
    """
    if difference == 0:
        return None
    return max(2, math.ceil(((_Z_TEST + _Z_POWER) * sd / difference) ** 2))


def detectable(sd: float, n: int) -> float:
    """The smallest mean difference that n questions show with 80 % power, two-sided at 5 %; `sd` as of the paired
    differences.

    >>> round(detectable(0.5, 197), 3)
    0.1
    """
    if n < 1:
        raise DataError(f"n: expected at least 1 question, got {n}")
    return (_Z_TEST + _Z_POWER) * sd / math.sqrt(n)
