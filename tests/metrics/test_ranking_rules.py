"""Which list may be given which metric, and the reason where it may not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ragkit.errors import DataError
from ragkit.metrics.batch import check_level
from ragkit.metrics.ranking import RankedIds, build_batch, score_arrays, score_batch
from ragkit.metrics.registry import definitions, parse, parse_all
from ragkit.metrics.trajectory import EvidencePath

QRELS = {"q": {"a": 1.0, "b": 1.0}, "low": {"a": 0.5}, "nothing": {"a": 0.0}}
ALL = [parse(d.name if d.cut != "required" else f"{d.name}@3") for d in definitions("ranking")]


def reasons(ranking: RankedIds, names: str) -> dict[str, str | None]:
    metrics = parse_all(names)
    (row,) = score_batch(build_batch([ranking], QRELS), metrics)
    return {metric.name: score.reason for metric, score in zip(metrics, row, strict=True)}


def test_a_set_has_set_metrics_only() -> None:
    asked = "recall,precision_set,allhit,hit,id_context_precision,id_context_recall,recall@5,hit@1,mrr,map,ndcg," \
            "first_relevant_rank,precision@5"
    found = reasons(RankedIds("q", ["x", "a"], ranked=False), asked)
    assert [name for name, reason in found.items() if reason is None] == [
        "recall", "precision_set", "allhit", "hit", "id_context_precision", "id_context_recall"]
    assert {reason for reason in found.values() if reason} == {"no order"}


def test_a_union_counts_as_ranked_but_has_no_cut() -> None:
    found = reasons(RankedIds("q", ["x", "a"], cuttable=False), "mrr,map,ndcg,recall,recall@5,ndcg@5,precision@3")
    assert {name: reason for name, reason in found.items() if reason} == {
        "recall@5": "union, no cut", "ndcg@5": "union, no cut", "precision@3": "union, no cut"}


def test_no_label_metric_for_a_question_without_labels() -> None:
    batch = build_batch([RankedIds("q", ["a"], unlabelled_reason="declared unanswerable"), RankedIds("?", ["a"])],
                        QRELS)
    first, second = score_batch(batch, ALL)
    assert {score.reason for score in first} == {"declared unanswerable"}
    assert {score.reason for score in second} == {"unlabelled"}
    assert np.isnan(score_arrays(batch, ALL)).all()


def test_the_reason_of_each_gap() -> None:
    assert reasons(RankedIds("q", ["x"]), "first_relevant_rank,mrr") == {"first_relevant_rank": "not reached",
                                                                         "mrr": None}
    assert reasons(RankedIds("q", []), "judged@5,recall") == {"judged@5": "nothing returned", "recall": None}
    assert reasons(RankedIds("low", ["a"]), "ndcg,dcg@1,ndcg_exp,ndcg_returned,recall,first_relevant_rank") == {
        "ndcg": None, "dcg@1": None, "ndcg_exp": None, "ndcg_returned": None, "recall": "no relevant document",
        "first_relevant_rank": "no relevant document"}
    assert reasons(RankedIds("nothing", ["a"]), "ndcg,dcg,judged,ndcg_returned") == {
        "ndcg": "no relevant document", "dcg": "no relevant document", "judged": None,
        "ndcg_returned": "no relevant document"}


def test_an_empty_ranking_is_zero_wherever_gold_exists() -> None:
    (row,) = score_batch(build_batch([RankedIds("q", [])], QRELS), ALL)
    values = {metric.name: score.value for metric, score in zip(ALL, row, strict=True)}
    assert {name for name, value in values.items() if value is None} == {"judged", "first_relevant_rank"}
    assert {value for value in values.values() if value is not None} == {0.0}


def test_every_undefined_score_is_nan_in_the_arrays_and_every_other_is_the_same() -> None:
    ranks = [RankedIds("q", ["a", "x"]), RankedIds("q", [], ranked=False), RankedIds("low", ["a"], cuttable=False),
             RankedIds("nothing", ["a"]), RankedIds("?", [])]
    batch = build_batch(ranks, QRELS)
    for row, scores in zip(score_arrays(batch, ALL), score_batch(batch, ALL), strict=True):
        for number, score in zip(row, scores, strict=True):
            assert math.isnan(number) if score.value is None else number == score.value


def test_no_ranking_and_no_metric() -> None:
    empty = build_batch([], QRELS)
    assert score_batch(empty, ALL) == []
    assert score_arrays(empty, ALL).shape == (0, len(ALL))
    assert score_batch(build_batch([RankedIds("q", ["a"])], QRELS), []) == [[]]


def test_copies_keep_their_place_and_are_no_holes() -> None:
    batch = build_batch([RankedIds("q", ["a", "a", "x", "b"]), RankedIds("q", ["a"])], QRELS)
    assert batch.copies.tolist() == [False, True, False, False, False]
    assert batch.judged.tolist() == [True, False, False, True, True]
    assert batch.grades.tolist() == [1, 0, 0, 1, 1]
    assert batch.offsets.tolist() == [0, 4, 5]
    assert batch.ideal_grades.tolist() == [1, 1, 1, 1]


def test_ids_are_kept_byte_for_byte() -> None:
    assert value_of(["7"], {"007": 1}) == 0
    assert value_of(["e\u0301"], {"\u00e9": 1}) == 0, "composed and decomposed are two ids"
    assert value_of(["知识 😀"], {"知识 😀": 1}) == 1


def value_of(ids: list[str], grades: dict[str, float]) -> float | None:
    return score_batch(build_batch([RankedIds("q", ids)], {"q": grades}), parse_all("recall"))[0][0].value


@pytest.mark.parametrize("level", [0, -1, math.nan, math.inf, 10**400, True, None, "2"])
def test_level_must_be_a_finite_number_above_zero(level: Any) -> None:
    with pytest.raises(DataError, match="level: expected a grade above 0"):
        check_level(level)
    with pytest.raises(DataError, match="level: expected a grade above 0"):
        build_batch([RankedIds("q", ["a"])], QRELS, level=level)
    with pytest.raises(DataError, match="level: expected a grade above 0"):
        EvidencePath((("a",),), {"a": 1}, level=level)


@pytest.mark.parametrize("level", [1, 0.5, np.float32(2), np.int64(3)])
def test_a_level_may_be_any_other_number(level: Any) -> None:
    check_level(level)


@pytest.mark.parametrize("grade", [10**400, "much", None, math.inf])
def test_a_grade_must_be_a_finite_number(grade: Any) -> None:
    with pytest.raises(DataError, match="qrels of 'q': expected finite grades") as caught:
        build_batch([RankedIds("q", ["a"])], {"q": {"a": grade}})
    assert len(str(caught.value)) < 200


def test_bad_input_is_named() -> None:
    with pytest.raises(DataError, match="ranking of 'q': an id must be a string, got 7"):
        build_batch([RankedIds("q", ["a", 7])], QRELS)  # type: ignore[list-item]
    with pytest.raises(DataError, match="qrels of 'q': expected finite grades"):
        build_batch([RankedIds("q", ["a"])], {"q": {"a": math.nan}})
    with pytest.raises(DataError, match="expected a rank metric, got one of kind trajectory"):
        score_arrays(build_batch([], {}), parse_all("aucr"))
