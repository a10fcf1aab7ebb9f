"""Means with intervals: what enters them, and what never does."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import DataError
from ragkit.metrics.statistics import Interval, bootstrap, summarize
from ragkit.records.judgements import Score

FAILED, UNDEFINED = Score.failed("timed out"), Score.undefined("no gold")


def scored(*values: float) -> list[tuple[str, Score]]:
    return [(f"q{i}", Score.scored(value)) for i, value in enumerate(values)]


def test_repeats_are_averaged_per_question_first() -> None:
    scores = [("q1", Score.scored(1)), ("q1", Score.scored(1)), ("q1", Score.scored(1)), ("q2", Score.scored(0))]
    interval = summarize(scores, (0, 1))
    assert interval.mean == 0.5
    assert (interval.n_scored, interval.n_asked) == (2, 2)


def test_failures_never_enter_the_mean() -> None:  # ragas 2832: half the rows failed and the mean stood at 0.9
    scores = scored(*[0.9] * 5) + [(f"f{i}", FAILED) for i in range(5)] + [("u", UNDEFINED)]
    interval = summarize(scores, (0, 1), n_asked=12)
    assert interval.mean == pytest.approx(0.9)
    assert interval.worst == pytest.approx(0.45)
    assert interval.best == pytest.approx(0.95)
    assert (interval.n_scored, interval.n_failed, interval.n_undefined, interval.n_asked) == (5, 5, 1, 12)


def test_a_question_is_scored_where_any_repeat_was() -> None:
    scores = [("a", FAILED), ("a", Score.scored(1)), ("b", FAILED), ("b", UNDEFINED), ("c", UNDEFINED)]
    interval = summarize(scores, (0, 1))
    assert (interval.n_scored, interval.n_failed, interval.n_undefined) == (1, 1, 1)
    assert interval.mean == 1.0
    assert (interval.worst, interval.best) == (0.25, 1.0)


def test_ends_follow_the_direction_and_the_range() -> None:
    scores = [*scored(2, 4), ("f", FAILED)]
    higher, lower = summarize(scores, (0, 9)), summarize(scores, (0, 9), direction="lower")
    assert (higher.worst, higher.best) == (2.0, 5.0) == (lower.best, lower.worst)
    unbounded = summarize(scores, (1, None), direction="lower")
    assert unbounded.worst is None
    assert unbounded.best == pytest.approx(7 / 3)
    whole = summarize(scored(2, 4), (1, None))
    assert whole.worst == whole.best == whole.mean == 3.0


def test_nothing_to_average() -> None:
    assert summarize([], (0, 1)) == Interval(None, None, None, None, None, 0, 0, 0, 0)
    interval = summarize([("a", UNDEFINED)], (0, 1), n_asked=3)
    assert (interval.mean, interval.worst, interval.n_undefined, interval.n_asked) == (None, None, 1, 3)
    only_failed = summarize([("a", FAILED)], (0, 1))
    assert (only_failed.mean, only_failed.worst, only_failed.best) == (None, 0.0, 1.0)


def test_a_single_value_has_no_spread_to_speak_of() -> None:
    interval = summarize(scored(0.7), (0, 1))
    assert (interval.mean, interval.low, interval.high) == (0.7, None, None)


def test_equal_values_have_an_interval_of_width_zero() -> None:
    interval = summarize(scored(*[0.1] * 30), (0, 1))
    assert interval.mean == interval.low == interval.high == 0.1


def test_the_seed_decides() -> None:
    scores = scored(*np.random.default_rng(1).random(40).tolist())
    assert summarize(scores, (0, 1), seed=3) == summarize(scores, (0, 1), seed=3)
    assert summarize(scores, (0, 1), seed=3) != summarize(scores, (0, 1), seed=4)


@pytest.mark.parametrize("seed", [-1, -2**70, 2**70])
def test_any_whole_number_is_a_seed(seed: int) -> None:
    scores = scored(*np.random.default_rng(1).random(40).tolist())
    once = summarize(scores, (0, 1), seed=seed)
    assert once == summarize(scores, (0, 1), seed=seed) != summarize(scores, (0, 1), seed=seed - 1)
    assert once.low is not None and once.high is not None and once.mean is not None
    assert once.low < once.mean < once.high


def test_chunks_of_the_bootstrap_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.random.default_rng(1).random(50)
    monkeypatch.setattr("ragkit.metrics.statistics._DRAWS_AT_ONCE", 120)
    low, high = bootstrap(data, 0, 1001)
    assert low is not None and high is not None
    assert low < data.mean() < high


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for seed in range(300):
        low, high = bootstrap(rng.binomial(1, 0.4, size=60).astype(float), seed, 400)
        assert low is not None and high is not None
        inside += low <= 0.4 <= high
    assert 0.90 <= inside / 300 <= 0.98


def test_bad_arguments() -> None:
    with pytest.raises(DataError, match="n_asked: expected at least the 2 questions"):
        summarize(scored(1, 0), (0, 1), n_asked=1)
    with pytest.raises(DataError, match="resamples: expected at least 1"):
        summarize(scored(1, 0), (0, 1), resamples=0)


OUTCOME = st.floats(0, 1).map(Score.scored) | st.just(FAILED) | st.just(UNDEFINED)


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), OUTCOME), max_size=30), st.randoms(use_true_random=False))
def test_laws(scores: list[tuple[str, Score]], shuffler: random.Random) -> None:
    interval = summarize(scores, (0, 1), resamples=50)
    assert interval.n_scored + interval.n_failed + interval.n_undefined == len({q for q, _ in scores})
    numbers = (interval.worst, interval.mean, interval.best, interval.low, interval.high)
    assert all(n is None or (math.isfinite(n) and -1e-12 <= n <= 1 + 1e-12) for n in numbers)
    if interval.worst is not None and interval.best is not None:
        assert interval.worst <= interval.best + 1e-12
    if interval.low is not None and interval.high is not None:
        assert interval.low <= interval.high
    shuffled = list(scores)
    shuffler.shuffle(shuffled)
    again = summarize(shuffled, (0, 1), resamples=50)
    assert (again.mean is None) == (interval.mean is None)
    assert again.mean is None or again.mean == pytest.approx(interval.mean)
