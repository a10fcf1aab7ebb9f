"""Paired differences against enumeration, scipy and theory: what is paired, what a test says, how many would decide."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from ragkit.errors import DataError
from ragkit.metrics.paired import Pair, compare_pairs, detectable, holm, questions_to_decide


def pair_of(baseline: np.ndarray, variant: np.ndarray, **kind: str) -> Pair:
    named = [{f"q{i}": float(value) for i, value in enumerate(values)} for values in (baseline, variant)]
    return Pair(*named, **kind)  # type: ignore[arg-type]


def one(baseline: np.ndarray, variant: np.ndarray, **settings: int) -> object:
    return compare_pairs([pair_of(baseline, variant)], **settings)[0]


def test_identical_variants_give_no_difference_and_p_one() -> None:
    values = np.linspace(0, 1, 7)
    found = one(values, values)
    assert (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)
    assert (found.wins, found.ties, found.losses, found.questions_to_decide) == (0, 7, 0, None)


def test_variants_that_differ_by_rounding_alone_are_identical() -> None:
    values = np.array([0.1, 0.2, 0.3, 0.7])
    found = one(values, values + 1e-16)
    assert (found.difference, found.ties, found.p, found.questions_to_decide) == (0.0, 4, 1.0, None)


def test_questions_are_paired_by_id_whatever_their_order() -> None:
    baseline = {"a": 0.0, "b": 0.5, "c": 1.0}
    variant = {"c": 1.0, "x": 0.0, "b": 1.0, "a": 0.25}
    found = compare_pairs([Pair(baseline, variant)])[0]
    assert found.n == 3
    assert found.difference == pytest.approx(0.25)
    assert (found.wins, found.ties, found.losses) == (2, 1, 0)


def test_nothing_in_common_has_no_number() -> None:
    found = compare_pairs([Pair({"a": 1.0}, {"b": 1.0})])[0]
    assert (found.difference, found.low, found.p, found.n) == (None, None, None, 0)


def test_a_single_question_has_a_difference_and_no_interval() -> None:
    found = compare_pairs([Pair({"a": 0.0}, {"a": 1.0})])[0]
    assert (found.difference, found.low, found.high, found.sd) == (1.0, None, None, None)
    assert found.questions_to_decide is None
    assert found.p == 1.0  # both signs are as extreme


def test_wins_follow_the_direction_and_the_difference_does_not() -> None:
    baseline, variant = np.array([3.0, 2.0, 2.0]), np.array([1.0, 2.0, 3.0])
    found = compare_pairs([pair_of(baseline, variant, direction="lower"), pair_of(baseline, variant)])
    assert [(f.wins, f.losses) for f in found] == [(1, 1), (1, 1)]
    faster = compare_pairs([pair_of(baseline, np.array([1.0, 1.0, 1.0]), direction="lower")])[0]
    assert (faster.wins, faster.losses) == (3, 0)
    assert faster.difference is not None
    assert faster.difference < 0


def test_p_equals_the_enumeration_of_all_sign_flips() -> None:
    differences = np.array([0.3, 0.5, -0.1, 0.4, 0.2, 0.0, 0.6])
    signs = np.array(list(itertools.product((1, -1), repeat=len(differences))))
    exact = float(np.mean(np.abs(signs @ differences) >= abs(differences.sum()) - 1e-12))
    found = one(np.zeros(7), differences, resamples=100_000)
    assert found.p == pytest.approx(exact, abs=0.003)
    theirs = stats.permutation_test((differences,), lambda x, axis: x.mean(axis), permutation_type="samples",
                                    vectorized=True, n_resamples=np.inf)
    assert found.p == pytest.approx(theirs.pvalue, abs=0.003)


def test_pairs_give_the_same_numbers_alone_and_together() -> None:
    random = np.random.default_rng(1)
    values = random.random((4, 30))
    pairs = [pair_of(values[0], values[1]), pair_of(values[0], values[2]),
             Pair({"q1": 1.0, "q2": 0.0}, {"q1": 0.0, "q2": 0.0}), pair_of(values[3], values[1])]
    together = compare_pairs(pairs)
    for pair, found in zip(pairs, together, strict=True):
        alone = compare_pairs([pair])[0]
        assert (found.n, found.wins, found.p) == (alone.n, alone.wins, alone.p)
        assert found.difference == pytest.approx(alone.difference, abs=1e-12)
        assert found.low == pytest.approx(alone.low, abs=1e-12)


def test_intervals_hold_the_truth_and_tests_err_as_often_as_they_say() -> None:
    random = np.random.default_rng(7)
    covered = rejected = 0
    rounds = 400
    for seed in range(rounds):
        baseline = random.random(60)
        found = one(baseline, baseline + random.normal(0, 0.3, 60), seed=seed, resamples=1000)
        covered += found.low <= 0 <= found.high
        rejected += found.p < 0.05
    assert 0.91 <= covered / rounds <= 0.975
    assert 0.025 <= rejected / rounds <= 0.08


def test_the_questions_that_decide_decide_in_four_of_five_cases() -> None:
    random = np.random.default_rng(3)
    needed = questions_to_decide(0.1, 0.35)
    assert needed is not None
    assert detectable(0.35, needed) == pytest.approx(0.1, rel=0.01)
    decided = sum(one(np.zeros(needed), random.normal(0.1, 0.35, needed), resamples=999).p < 0.05 for _ in range(300))
    assert 0.73 <= decided / 300 <= 0.87


def test_holm_against_worked_values() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
    adjusted = holm([None, 0.02])
    assert adjusted == [None, 0.02]


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(DataError, match="resamples"):
        compare_pairs([Pair({"a": 1.0}, {"a": 1.0})], resamples=0)
    with pytest.raises(DataError, match="at least 1 question"):
        detectable(0.5, 0)
    assert math.isfinite(detectable(0.0, 3))
