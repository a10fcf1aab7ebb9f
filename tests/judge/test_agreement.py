"""Judges and annotators compared: which kind of ratings they gave, on which rows, and what is left out."""

from __future__ import annotations

import random

import pytest

from ragkit.errors import DataError
from ragkit.judge.agreement import Rules, calibrated, compare, compare_all, is_same_scale, middle_level
from ragkit.judge.labelled import Ratings, Value


def rater(name: str, *values: Value) -> Ratings:
    return Ratings(name, values, {place: "no label" for place, value in enumerate(values) if value is None})


def names(count: int) -> list[str]:
    return [f"q{place}" for place in range(count)]


def test_grades_on_one_scale_and_what_leaves_it() -> None:
    human = rater("human", *[0, 1, 2, 3] * 10)
    judge = rater("m", *[0, 1, 2, 3] * 9, 0, 1, 3, 5)
    found = compare(human, judge, names(40))
    assert (found.kind, found.level, found.scale, dict(found.off_scale)) == ("grades", 2, (0, 3), {5: 1})
    assert found.figures["exact"].value == pytest.approx(38 / 40)
    assert found.levels == ("0", "1", "2", "3", "5")
    assert found.confusion[3] == (0, 0, 0, 9, 1)
    assert {"kappa", "kappa_quadratic", "auroc", "balanced_accuracy", "base_rate"} <= set(found.figures)
    linear = compare(human, judge, names(40), Rules(weights="linear"))
    assert "kappa_linear" in linear.figures and "kappa_quadratic" not in linear.figures
    plain = compare(human, judge, names(40), Rules(weights=None))
    assert [name for name in plain.figures if name.startswith("kappa")] == ["kappa"]


def test_a_scale_may_be_wider_than_its_labels() -> None:
    human, judge = rater("human", *[0, 1, 2] * 20), rater("m", *[0, 1, 3] * 20)
    assert compare(human, judge, names(60)).kind == "scores"  # a third lies off the scale of the labels
    found = compare(human, judge, names(60), Rules(scale=(0, 3)))
    assert (found.kind, found.level, dict(found.off_scale)) == ("grades", 2, {})


def test_scores_are_decided_by_a_threshold_from_other_rows_or_a_given_one() -> None:
    draw = random.Random(2)
    labels = [float(draw.random() < 0.5) for _ in range(80)]
    scores = [0.3 * label + 0.5 * draw.random() for label in labels]
    found = compare(rater("human", *labels), rater("m", *scores), names(80))
    assert (found.kind, len(found.thresholds), found.threshold_given) == ("scores", 5, False)
    assert found.levels == ("no", "yes")
    assert sum(map(sum, found.confusion)) == 80
    given = compare(rater("human", *labels), rater("m", *scores), names(80), Rules(threshold=0.9))
    assert (given.thresholds, given.threshold_given) == ((0.9,), True)
    assert given.figures["sensitivity"].value == 0
    assert given.figures["auroc"] == found.figures["auroc"]


def test_yes_or_no_on_both_sides_needs_no_threshold() -> None:
    found = compare(rater("human", 1, 1, 0, 0), rater("m", 1, 0, 0, 0), names(4))
    assert (found.kind, found.thresholds) == ("decisions", ())
    assert found.figures["kappa"].value == pytest.approx(0.5)
    assert [name for name in found.figures if name.startswith("kappa")] == ["kappa"]
    assert found.figures["balanced_accuracy"].value == pytest.approx(0.75)


def test_names_agree_or_not() -> None:
    found = compare(rater("ann", "good", "bad", "odd", None), rater("bob", "good", "odd", "odd", "bad"), names(4))
    assert (found.kind, found.n, found.levels) == ("categories", 3, ("bad", "good", "odd"))
    assert found.figures["exact"].value == pytest.approx(2 / 3)
    with pytest.raises(DataError, match="--positive NAME"):
        compare(rater("ann", "good", "bad"), rater("m", 0.3, 0.4), names(2))


def test_rows_without_a_rating_are_left_out_and_counted_by_reason() -> None:
    human = rater("human", 1, 0, None, 1, 0)
    judge = Ratings("m", (0.9, None, 0.8, None, 0.2), {1: "failed: timed out", 3: "undefined: answer refused"})
    found = compare(human, judge, names(5))
    assert (found.n, found.n_questions) == (2, 2)
    assert found.missing == {"failed: timed out": 1, "no label": 1, "undefined: answer refused": 1}
    assert found.figures["balanced_accuracy"].reason == "too few labels to choose a threshold on other rows"
    assert found.figures["auroc"].value == 1


def test_one_class_only_is_undefined_and_says_so() -> None:
    found = compare(rater("human", 1, 1, 1), rater("m", 0.2, 0.5, 0.9), names(3))
    for name in ("auroc", "balanced_accuracy"):
        assert found.figures[name].value is None
        assert found.figures[name].reason
    assert found.figures["base_rate"].value == 1


def test_annotators_first_then_each_judge_with_each_of_them_then_the_slices() -> None:
    ann, bob, judge = rater("ann", 0, 1, 1, 0), rater("bob", 0, 1, 0, 0), rater("m", 0, 1, 1, 1)
    found = compare_all([ann, bob], [judge], names(4), slices={"de": [0, 1], "en": [2, 3]})
    pairs = [("ann", "bob"), ("ann", "m"), ("bob", "m")]
    assert [(one.human, one.judge) for one in found] == pairs * 3
    assert [one.slice for one in found] == [None] * 3 + ["de"] * 3 + ["en"] * 3
    assert [one.n for one in found] == [4] * 3 + [2] * 6
    with pytest.raises(DataError, match="two raters"):
        compare_all([ann], [], names(4))


def test_a_slice_is_decided_by_the_threshold_of_all_rows_and_keeps_their_level() -> None:
    labels = [place % 2 for place in range(40)]
    scores = [0.1 + 0.8 * (place % 2) for place in range(38)] + [0.9, 0.1]  # wrong on the last two
    found = compare_all([rater("human", *labels)], [rater("m", *scores)], names(40), slices={"odd": [38, 39]})
    assert found[1].thresholds == found[0].thresholds
    assert found[1].figures["exact"].value == 0
    grades = compare_all([rater("human", 0, 1, 2, 3)], [rater("m", 0, 1, 2, 3)], names(4), slices={"low": [0, 1]})
    assert grades[1].level == grades[0].level == 2


def test_the_figures_of_the_rows_are_weighted_where_the_rows_are() -> None:
    human, judge = rater("human", 1, 0, 0), rater("m", 1, 0, 1)
    plain = compare(human, judge, names(3))
    weighted = compare(human, judge, names(3), Rules(row_weights=(2, 7, 1)))
    assert (plain.figures["base_rate"].value, weighted.figures["base_rate"].value) == (pytest.approx(1 / 3), 0.2)
    assert weighted.figures["specificity"].value == pytest.approx(7 / 8)
    assert weighted.confusion == plain.confusion


def test_calibration_needs_numbers_and_keeps_the_level() -> None:
    human = rater("human", *[0, 1, 2, 3] * 5, None)
    judge = rater("m", *[0.1, 0.2, 0.8, 0.9] * 5, 0.4)
    found = calibrated("faithfulness", {"name": "m"}, (human, judge), names(21), Rules(), {"file": "l.csv"})
    assert found.threshold == 0.5
    assert found.labels == {"file": "l.csv", "level": 2, "weighted": False, "rows": 20, "positive": 10}
    with pytest.raises(DataError, match="got names"):
        calibrated("faithfulness", {"name": "m"}, (rater("human", "a", "b"), judge), names(2), Rules(), {})


def test_which_level_and_which_scale() -> None:
    assert [middle_level(labels, (min(labels), max(labels))) for labels in
            ([0, 1], [1, 2, 3, 4, 5], [0, 1, 2], [-2, 0, 2], [0, 0.5, 1], [4, 4])] == [1, 4, 2, 2, 1, 4]
    assert is_same_scale([0, 1, 2, 3], [0, 0, 3], (0, 3))
    assert not is_same_scale([0, 1, 2, 3], [0, 50, 100], (0, 3))
    assert not is_same_scale([0, 1], [0.5, 1], (0, 1))
