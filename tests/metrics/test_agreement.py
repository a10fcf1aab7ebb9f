"""Agreement of two raters: values worked by hand, the laws of each statistic, intervals that resample questions."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit.errors import DataError
from ragkit.metrics.agreement import (
    ONE_CLASS,
    ONE_RATING,
    Weights,
    auroc,
    balanced_accuracy,
    cohen_kappa,
    confusion,
    decision_figures,
    rating_figures,
    score_figures,
)
from ragkit.metrics.resampling import Resampling

PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30)
SCORED = st.lists(st.tuples(st.booleans(), st.integers(0, 6)), min_size=1, max_size=30)
KINDS: tuple[Weights | None, ...] = (None, "linear", "quadratic")


def split(pairs: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [a for a, _ in pairs], [b for _, b in pairs]


def test_kappa_worked_by_hand() -> None:
    # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: observed .7, by chance .5 * .6 + .5 * .4 = .5
    a = [1] * 25 + [0] * 25
    b = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    assert cohen_kappa(a, b) == pytest.approx(0.4)
    # 0-0, 1-2, 2-2: the squares of all nine differences are 0 4 4, 1 1 1, 4 0 0: together 15, the differences 9
    assert cohen_kappa([0, 1, 2], [0, 2, 2], "quadratic") == pytest.approx(1 - 1 / (15 / 3))
    assert cohen_kappa([0, 1, 2], [0, 2, 2], "linear") == pytest.approx(1 - 1 / (9 / 3))
    assert cohen_kappa([0, 1, 2], [0, 2, 2]) == pytest.approx((2 / 3 - 1 / 3) / (1 - 1 / 3))


def test_a_grade_that_nobody_gave_still_takes_its_room() -> None:
    assert cohen_kappa([0, 3, 0, 3], [0, 3, 3, 0], "quadratic") == 0
    with_neighbours = cohen_kappa([0, 1, 0, 3], [0, 3, 1, 0], "linear")
    renumbered = cohen_kappa([0, 1, 0, 2], [0, 2, 1, 0], "linear")  # as if 2 stood directly above 1
    assert with_neighbours != renumbered


@given(PAIRS)
def test_kappa_is_symmetric_at_most_one_and_one_for_equal_ratings(pairs: list[tuple[int, int]]) -> None:
    a, b = split(pairs)
    for kind in KINDS:
        found = cohen_kappa(a, b, kind)
        assert found == (None if found is None else pytest.approx(cohen_kappa(b, a, kind)))
        assert found is None or found <= 1
        assert cohen_kappa(a, a, kind) == (None if len(set(a)) == 1 else 1)


@given(PAIRS)
def test_kappa_of_two_classes_needs_no_weights_and_of_shifted_grades_is_the_same(pairs: list[tuple[int, int]]) -> None:
    a, b = split(pairs)
    two = [min(value, 1) for value in a], [min(value, 1) for value in b]
    assert len({None if (k := cohen_kappa(*two, kind)) is None else round(k, 9) for kind in KINDS}) == 1
    for kind in KINDS:
        one, other = cohen_kappa(a, b, kind), cohen_kappa([2 * x - 3 for x in a], [2 * x - 3 for x in b], kind)
        assert one == (None if other is None else pytest.approx(other))


def test_kappa_of_independent_ratings_is_about_zero() -> None:
    draw = random.Random(1)
    a, b = ([draw.choice((0, 1, 1, 2)) for _ in range(4000)] for _ in "ab")
    for kind in KINDS:
        assert abs(cohen_kappa(a, b, kind) or 1) < 0.05


@given(SCORED)
def test_auroc_is_the_share_of_pairs_in_order_ties_as_a_half(rows: list[tuple[bool, int]]) -> None:
    truth, scores = [a for a, _ in rows], [b for _, b in rows]
    wins = [1.0 if high > low else 0.5 if high == low else 0.0
            for is_high, high in rows if is_high for is_low, low in rows if not is_low]
    found = auroc(truth, scores)
    assert found == (pytest.approx(math.fsum(wins) / len(wins)) if wins else None)
    if found is not None:
        assert auroc(truth, [math.exp(score) for score in scores]) == pytest.approx(found)
        assert auroc(truth, [-score for score in scores]) == pytest.approx(1 - found)
        assert auroc([not yes for yes in truth], scores) == pytest.approx(1 - found)


@given(SCORED)
def test_balanced_accuracy_of_decisions_is_their_auroc(rows: list[tuple[bool, int]]) -> None:
    truth, decided = [a for a, _ in rows], [b > 2 for _, b in rows]
    found = balanced_accuracy(truth, decided)
    assert found == (None if found is None else pytest.approx(auroc(truth, decided)))
    always = balanced_accuracy(truth, [True] * len(truth))
    assert always in (None, 0.5)


@given(PAIRS)
def test_the_confusion_holds_every_row_once(pairs: list[tuple[int, int]]) -> None:
    a, b = split(pairs)
    found = confusion(a, b)
    for i, one in enumerate(found.levels):
        for j, other in enumerate(found.levels):
            assert found.counts[i][j] == pairs.count((int(one), int(other)))


@settings(max_examples=40)
@given(PAIRS, st.integers(-3, 2**70))
def test_figures_are_those_of_the_plain_functions_whatever_the_seed(pairs: list[tuple[int, int]], seed: int) -> None:
    a, b = split(pairs)
    rows = Resampling(len(a), seed=seed, resamples=50)
    positive, decided = [x >= 2 for x in a], [x >= 2 for x in b]
    ratings, scores = rating_figures(a, b, "quadratic", rows), score_figures(positive, b, rows)
    decisions = decision_figures(positive, decided, rows)
    pairs_of = ((ratings["kappa"].value, cohen_kappa(a, b)),
                (ratings["kappa_quadratic"].value, cohen_kappa(a, b, "quadratic")),
                (scores["auroc"].value, auroc(positive, b)),
                (decisions["balanced_accuracy"].value, balanced_accuracy(positive, decided)),
                (decisions["kappa"].value, cohen_kappa(positive, decided)))
    for found, expected in pairs_of:
        assert found == (None if expected is None else pytest.approx(expected))
    for figure in (*ratings.values(), *scores.values(), *decisions.values()):
        assert (figure.value is None) <= (figure.reason is not None)
        if figure.low is not None and figure.high is not None:
            assert figure.low <= figure.high


def test_undefined_says_why() -> None:
    rows = Resampling(3)
    assert score_figures([1, 1, 1], [0.1, 0.2, 0.3], rows)["auroc"].reason == ONE_CLASS
    assert decision_figures([0, 0, 0], [1, 0, 0], rows)["balanced_accuracy"].reason == ONE_CLASS
    assert decision_figures([0, 0, 0], [1, 0, 0], rows)["sensitivity"].reason == "no positive label"
    assert rating_figures([2, 2, 2], [2, 2, 2], None, rows)["kappa"].reason == ONE_RATING
    empty = {**rating_figures([], [], "linear", Resampling(0)), **score_figures([], [], Resampling(0))}
    assert {figure.reason for figure in empty.values()} == {"nothing to compare"}
    alone = rating_figures([0, 1], [0, 1], None, Resampling(2, ["q", "q"]))["kappa"]
    assert (alone.value, alone.low, alone.reason) == (1, None, "one question gives no interval")
    rare = score_figures([1, *[0] * 5], range(6), Resampling(6))["auroc"]  # a third of the resamples has no positive
    assert (rare.value, rare.low, rare.reason) == (0, None, "too few labels of one class for an interval")


def test_wrong_input_is_refused() -> None:
    for wrong in (lambda: cohen_kappa([1], [1, 2]), lambda: cohen_kappa([1], [1], "cubic"),  # type: ignore[arg-type]
                  lambda: auroc([1, 0], [1]), lambda: auroc([1, 0], [1, math.nan]), lambda: Resampling(2, ["q"]),
                  lambda: Resampling(2, weights=[1, 0]), lambda: Resampling(2, resamples=0)):
        with pytest.raises(DataError):
            wrong()


def test_one_rating_far_off_the_scale_does_not_outweigh_all_others() -> None:
    a, b = [0, 1, 2, 3] * 25, [0, 1, 2, 3] * 25
    odd = [1000, *b[1:]]
    rows = Resampling(100)
    assert (rating_figures(a, odd, "quadratic", rows)["kappa_quadratic"].value or 0) < 0.1
    assert (rating_figures(a, odd, "quadratic", rows, widest=3)["kappa_quadratic"].value or 0) > 0.9


def test_rows_of_one_question_are_drawn_together() -> None:
    draw = np.random.default_rng(0)
    quality = draw.random(40)
    truth = np.repeat(quality, 25) > draw.random(1000)
    scores = np.repeat(quality, 25) + draw.random(1000)  # what they share, they share with their question
    alone = score_figures(truth, scores, Resampling(1000))["auroc"]
    together = score_figures(truth, scores, Resampling(1000, np.repeat(range(40), 25).tolist()))["auroc"]
    assert alone.value == together.value
    assert (together.high or 0) - (together.low or 0) > 2 * ((alone.high or 0) - (alone.low or 0))


def test_the_intervals_cover_and_the_two_ways_to_draw_agree() -> None:
    draw, covered = np.random.default_rng(3), {"kappa": 0, "auroc": 0}
    for seed in range(120):
        truth = draw.random(80) < 0.5
        decided = np.where(draw.random(80) < 0.8, truth, ~truth)  # kappa 2 * .8 - 1 = .6
        scores = draw.normal(size=80) + truth * 1.19  # AUROC = Phi(1.19 / sqrt 2) = .80
        rows = Resampling(80, seed=seed, resamples=400)
        kappa, area = decision_figures(truth, decided, rows)["kappa"], score_figures(truth, scores, rows)["auroc"]
        covered["kappa"] += kappa.low <= 0.6 <= kappa.high  # type: ignore[operator]
        covered["auroc"] += area.low <= 0.80 <= area.high  # type: ignore[operator]
    assert all(106 <= count <= 120 for count in covered.values()), covered  # 95 % of 120 is 114
    few = [round(score) for score in scores]
    by_table = score_figures(truth, few, Resampling(80, resamples=4000))["auroc"]
    many = Resampling(80 * 500, [place // 500 for place in range(80 * 500)], resamples=500)  # too large for a table
    by_rows = score_figures(np.repeat(truth, 500), np.repeat(few, 500) + draw.random(40000) * 1e-9, many)["auroc"]
    assert by_rows.low == pytest.approx(by_table.low, abs=0.03)
    assert by_rows.high == pytest.approx(by_table.high, abs=0.03)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=12))
def test_a_weight_is_as_many_rows_of_the_same_question(rows: list[tuple[bool, int, int]]) -> None:
    weighted = Resampling(len(rows), seed=1, resamples=60, weights=[weight for *_, weight in rows])
    copies = [(place, *row[:2]) for place, row in enumerate(rows) for _ in range(row[2])]
    copied = Resampling(len(copies), [place for place, *_ in copies], 1, 60)
    truth, score = [yes for yes, *_ in rows], [found for _, found, _ in rows]
    more_truth, more_score = [yes for _, yes, _ in copies], [found for *_, found in copies]
    pairs = [(score_figures(truth, score, weighted), score_figures(more_truth, more_score, copied)),
             (decision_figures(truth, [x > 1 for x in score], weighted),
              decision_figures(more_truth, [x > 1 for x in more_score], copied))]
    for one, other in pairs:
        for name, figure in one.items():
            assert figure.value == (None if other[name].value is None else pytest.approx(other[name].value)), name
