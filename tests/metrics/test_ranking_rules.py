"""Which list may be given which metric, and the reason where it may not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ragkit.errors import DataError
from ragkit.metrics.batch import check_level
from ragkit.metrics.ranking import (
    RankedIds,
    batch_of_lists,
    batch_of_run,
    build_batch,
    score_arrays,
    score_batch,
)
from ragkit.metrics.registry import definitions, parse, parse_all
from ragkit.metrics.trajectory import EvidencePath
from ragkit.records.runs import JudgedRun

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
    batch = build_batch([RankedIds("q", ["a", "a", "x", "b", "x"]), RankedIds("q", ["a"])], QRELS)
    assert batch.lengths.tolist() == [5, 1]
    assert batch.rows.tolist() == [0, 0, 0, 0, 1], "the judged, and the copies; the first x is neither"
    assert batch.ranks.tolist() == [1, 2, 4, 5, 1]
    assert batch.grades.tolist() == [1, 0, 1, 0, 1]
    assert batch.copies.tolist() == [False, True, False, True, False]
    assert batch.distinct().tolist() == [3, 1]
    assert batch.distinct(2).tolist() == [1, 1]


def test_rankings_of_one_question_share_its_ideal() -> None:
    batch = build_batch([RankedIds("q", ["a"]), RankedIds("low", ["a"]), RankedIds("q", [])], QRELS)
    assert batch.questions.tolist() == [0, 1, 0]
    assert batch.ideal_grades.tolist() == [1, 1, 0.5]
    assert batch.ideal_offsets.tolist() == [0, 2, 3]
    assert batch.n_relevant.tolist() == [2, 0, 2]


def test_lists_by_question_are_the_same_batch() -> None:
    names, lists = ["q", "low", "q", "?"], [("x", "a"), ["a"], [], ["a"]]
    rankings = [RankedIds(name, ids) for name, ids in zip(names, lists, strict=True)]
    assert score_batch(batch_of_lists(names, lists, QRELS), ALL) == score_batch(build_batch(rankings, QRELS), ALL)
    with pytest.raises(DataError, match="ranking of 'low': an id must be a string, got None"):
        batch_of_lists(iter(names), [["a"], ["a", None], [], []], QRELS)  # type: ignore[list-item]


def test_a_long_list_is_joined_as_a_short_one() -> None:
    ids = [f"d{i}" for i in range(3000)]
    gold = {f"d{i}": float(i % 4 - 1) for i in range(0, 4000, 7)}
    batch = build_batch([RankedIds("q", [*ids, "d7", "d1"]), RankedIds("q", ids[:3])], {"q": gold})
    found = [i for i in range(3000) if i % 7 == 0]
    assert batch.ranks.tolist() == [i + 1 for i in found] + [3001, 3002, 1]
    assert batch.grades.tolist() == [gold[f"d{i}"] for i in found] + [0, 0, gold["d0"]]
    assert np.flatnonzero(batch.copies).tolist() == [len(found), len(found) + 1]
    assert batch.ideal_grades.tolist() == sorted(gold.values(), reverse=True)


def test_a_run_that_was_judged_while_it_was_read_is_the_same_batch() -> None:
    qrels = {"q": {"a": 2.0, "b": -1.0, "c": 0.5}, "low": {"a": 0.5}, "missing": {"a": 1.0}, "none": {}}
    run = JudgedRun("run", tuple(qrels), np.array([True, True, False, True]), np.array([4, 1, 0, 2]),
                    rows=np.array([0, 0, 0]), ranks=np.array([2, 3, 4]), grades=np.array([-1.0, 2.0, 0.0]),
                    copies=np.array([False, False, True]))
    lists = [RankedIds("q", ["x", "b", "a", "a"]), RankedIds("low", ["x"]), RankedIds("missing", []),
             RankedIds("none", ["a", "b"])]
    read, built = batch_of_run(run, qrels, level=0.5), build_batch(lists, qrels, level=0.5)
    assert score_batch(read, ALL) == score_batch(built, ALL)
    with pytest.raises(DataError, match="qrels of 'low': expected finite grades"):
        batch_of_run(run, {**qrels, "low": {"a": math.nan}})


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
    batch = build_batch([RankedIds("q", ["a", "b"])], {"q": {"a": level, "b": level - 0.25}}, level=level)
    assert batch.n_relevant.tolist() == [1]


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
