"""Rank metrics against values worked out by hand, from the definitions and by running trec_eval."""

from __future__ import annotations

import numpy as np
import pytest

from ragkit.metrics.ranking import RankedIds, batch_of_run, build_batch, score_arrays, score_batch
from ragkit.metrics.registry import parse, parse_all
from ragkit.records.runs import RunRules
from tests.support.runs import judge_results


def value(metric: str, ids: list[str], grades: dict[str, float], level: float = 1.0) -> float:
    batch = build_batch([RankedIds("q", ids)], {"q": grades}, level=level)
    (score,), = score_batch(batch, [parse(metric)])
    assert score.value is not None, score.reason
    return score.value


def from_relevances(relevances: list[int], total: int) -> tuple[list[str], dict[str, float]]:
    ids = [f"d{i}" for i in range(len(relevances))]
    grades = {i: 1.0 for i, relevant in zip(ids, relevances, strict=True) if relevant}
    return ids, grades | {f"missed{i}": 1.0 for i in range(total - sum(relevances))}


THREE, FIVE = from_relevances([1, 0, 1, 0, 1], 3), from_relevances([1, 0, 1, 0, 1], 5)
DIALECT = (["A", "x1", "B", "x2", "x3"], {"A": 1, "B": 1, "C": 1})
GRADED = (["b", "x", "a"], {"b": 2, "a": 3, "c": 1})

WORKED = [
    ("map", *THREE, 0.755556), ("ndcg@5", *THREE, 0.885460), ("dcg@5", *THREE, 1.886853),
    ("precision@5", *THREE, 0.6), ("mrr", *THREE, 1.0),
    ("map", *FIVE, 0.453333), ("ap_retrieved", *FIVE, 0.755556),
    ("recall@5", *from_relevances([0, 1, 0, 1, 0], 3), 0.666667),
    ("map@5", *DIALECT, 0.555556), ("ap_retrieved@5", *DIALECT, 0.833333), ("ndcg@5", *DIALECT, 0.703918),
    ("ndcg_returned@5", *DIALECT, 0.919721),
    ("precision@5", ["A", "x"], {"A": 1}, 0.2), ("precision_returned@5", ["A", "x"], {"A": 1}, 0.5),
    ("map", ["d1", "d2", "d3"], {"d1": 1}, 1.0),
    ("map", ["d3", "d2", "d1"], {"d1": 1}, 0.333333), ("ndcg@5", ["d3", "d2", "d1"], {"d1": 1}, 0.5),
    ("map", ["a", "a", "b"], {"a": 1, "b": 1}, 0.833333), ("ndcg@3", ["a", "a", "b"], {"a": 1, "b": 1}, 0.919721),
    ("recall@3", ["a", "a", "b"], {"a": 1, "b": 1}, 1.0),
    ("ndcg@3", *GRADED, 0.735007), ("ndcg_exp@3", *GRADED, 0.692020),
    ("ndcg@2", ["a", "b"], {"a": 0.5, "b": 1.9}, 0.766777),
    ("mrr@2", *from_relevances([0, 0, 1], 1), 0.0), ("mrr@3", *from_relevances([0, 0, 1], 1), 0.333333),
    ("ndcg@2", *from_relevances([1, 0], 3), 0.613147), ("ndcg@5", *from_relevances([1, 0], 3), 0.469279),
    ("precision@5", *from_relevances([1, 0], 3), 0.2), ("recall@5", *from_relevances([1, 0], 3), 0.333333),
    ("map@5", *from_relevances([1, 0], 3), 0.333333),
    ("map@2", *from_relevances([1, 0, 1], 4), 0.25),
    ("map", ["b", "a"], {"a": 1, "b": -1}, 0.5), ("ndcg", ["b", "a"], {"a": 1, "b": -1}, 0.630930),
    # A perfect order has NDCG 1, whatever a text in circulation says.
    ("ndcg@5", ["d0", "d2", "d1", "d3", "d4"], {"d0": 1, "d2": 1}, 1.0),
    ("map", ["d1", "d3", "d2", "d4", "d0"], {"d1": 1, "d3": 1}, 1.0),
    ("ndcg@5", ["d0", "d1", "d2", "d3", "d4"], {"d0": 1, "d1": 1}, 1.0),
    # trulens 2746: a repeated chunk is credited once.
    ("recall@3", ["c4", "c4", "c8"], {"c4": 1}, 1.0), ("ndcg@3", ["c4", "c4", "c8"], {"c4": 1}, 1.0),
    ("precision@3", ["c4", "c4", "c8"], {"c4": 1}, 0.333333),
    ("recall@2", ["c4", "c4"], {"c4": 1, "c5": 1}, 0.5), ("map", ["c4", "c4"], {"c4": 1, "c5": 1}, 0.5),
    ("ndcg@2", ["c4", "c4"], {"c4": 1, "c5": 1}, 0.613147),
    # scikit-learn 18817: linear or exponential gain.
    ("ndcg@4", ["x", "a", "b", "c"], {"a": 1, "b": 3, "c": 2}, 0.628385),
    ("ndcg_exp@4", ["x", "a", "b", "c"], {"a": 1, "b": 3, "c": 2}, 0.577353),
    ("map", ["x", "a", "b", "c"], {"a": 1, "b": 3, "c": 2}, 0.638889),
    # scikit-learn 17639: a negative grade is gain 0.
    ("ndcg@3", ["b", "a", "c"], {"a": 2, "b": -1, "c": 1}, 0.669672), ("precision@1", ["b", "a"], {"a": 2, "b": -1}, 0),
    ("ndcg@5", ["r1", "r2"], {"r1": 1, "r2": 1, "r3": 1}, 0.765361),
    # beir 187: a document whose id is the question's is a document.
    ("precision@5", list("12q45"), dict.fromkeys("12q45", 1), 1.0),
    ("hit@1", *from_relevances([0, 1], 1), 0.0), ("hit@2", *from_relevances([0, 1], 1), 1.0),
    ("allhit@2", *from_relevances([1, 0, 1], 2), 0.0), ("allhit@3", *from_relevances([1, 0, 1], 2), 1.0),
    ("precision_set", ["a", "x", "y"], {"a": 1}, 0.333333), ("recall", ["a", "x"], {"a": 1, "b": 1}, 0.5),
    ("first_relevant_rank", *from_relevances([0, 0, 1], 1), 3.0),
    ("judged@2", ["a", "x", "b"], {"a": 1, "b": 0}, 0.5), ("judged", ["a", "x", "b"], {"a": 1, "b": 0}, 0.666667),
    ("judged@5", ["a", "a"], {"a": 1}, 1.0),
    ("id_context_precision", ["a", "a", "x"], {"a": 1, "b": 1}, 0.5),
    ("id_context_recall", ["a", "a", "x"], {"a": 1, "b": 1}, 0.5),
]


@pytest.mark.parametrize(("metric", "ids", "grades", "expected"), WORKED)
def test_worked_value(metric: str, ids: list[str], grades: dict[str, float], expected: float) -> None:
    assert value(metric, ids, grades) == pytest.approx(expected, abs=1e-6)


def test_level_moves_binary_metrics_and_never_ndcg() -> None:
    assert value("map", *GRADED, level=2) == pytest.approx(0.833333, abs=1e-6)
    assert value("ndcg@3", *GRADED, level=2) == value("ndcg@3", *GRADED)
    assert value("ndcg", ["a"], {"a": 0.5}, level=2) == 1.0, "defined wherever some grade is above 0"


GATHERED = [  # the three rankings of a text that claims 0.882 and 0.833
    ([1, 0, 1, 0, 0], [.9, .3, .8, .2, .1]), ([0, 1, 0, 1, 0], [.2, .9, .4, .7, .3]),
    ([1, 1, 0, 0, 0], [.8, .7, .5, .4, .2])]


def scored(names: str, scores: dict[str, dict[str, float]], qrels: dict[str, dict[str, float]],
           rules: RunRules = RunRules()) -> dict[str, float]:  # noqa: B008
    batch = batch_of_run(judge_results(scores, qrels, rules), qrels)
    means = np.nanmean(score_arrays(batch, parse_all(names)), axis=0)
    return dict(zip(names.split(","), means.tolist(), strict=True))


def test_three_perfect_rankings_have_a_mean_of_one() -> None:
    qrels = {f"q{i}": {f"d{j}": float(true) for j, true in enumerate(labels)} for i, (labels, _) in enumerate(GATHERED)}
    run = {f"q{i}": {f"d{j}": score for j, score in enumerate(scores)} for i, (_, scores) in enumerate(GATHERED)}
    assert scored("ndcg@5,map", run, qrels) == {"ndcg@5": 1.0, "map": 1.0}


def test_equal_scores_are_ordered_by_id_descending_and_a_list_is_not() -> None:
    tied = {"q": {"d1": 1.0, "d2": 1.0, "d3": 1.0}}
    found = scored("map,ndcg@5", tied, {"q": {"d1": 1}})
    assert found == {"map": pytest.approx(1 / 3), "ndcg@5": 0.5}
    assert scored("map", tied, {"q": {"d1": 1}}, RunRules(ties="rank")) == {"map": 1.0}


def test_scores_are_compared_as_float64_unless_asked_otherwise() -> None:
    near = {"q": {"a": 0.92226214537526, "b": 0.92226214537525}}
    assert scored("map", near, {"q": {"a": 1}}) == {"map": 1.0}
    assert scored("map", near, {"q": {"a": 1}}, RunRules(float32=True)) == {"map": 0.5}


def test_means_over_missing_questions_and_questions_with_nothing_relevant() -> None:
    assert scored("map,mrr", {"q1": {"a": 1.0}}, {"q1": {"a": 1}, "q2": {"b": 1}}) == {"map": 0.5, "mrr": 0.5}
    assert scored("map,mrr", {"q1": {"a": 1.0}}, {"q1": {"a": 1}, "q2": {"b": 0}}) == {"map": 1.0, "mrr": 1.0}


def test_missing_results_are_zero_and_questions_without_relevant_documents_leave_the_mean() -> None:
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 0}}
    batch = build_batch([RankedIds("q1", ["a"]), RankedIds("q2", []), RankedIds("q3", ["c"])], qrels)
    column = score_arrays(batch, parse_all("map"))[:, 0]
    assert column[:2].tolist() == [1.0, 0.0]
    assert score_batch(batch, parse_all("map"))[2][0].reason == "no relevant document"


def test_a_question_without_judgements_does_not_touch_its_neighbours() -> None:  # pytrec_eval 49
    qrels = {"q1": {"n1": 0, "n2": 1}, "q2": {}, "q3": {"n2": 1, "n3": 1}}
    ranks = [RankedIds("q1", ["n1", "n2"]), RankedIds("q2", ["n2"]), RankedIds("q3", ["n1", "n2", "n3"])]
    first, second, third = score_batch(build_batch(ranks, qrels), parse_all("map,ndcg"))
    assert [score.value for score in first] == pytest.approx([0.5, 0.630930], abs=1e-6)
    assert [score.reason for score in second] == ["unlabelled", "unlabelled"]
    assert [score.value for score in third] == pytest.approx([0.583333, 0.693426], abs=1e-6)


@pytest.mark.parametrize("grade", [1e-300, 1e-17, 1e-4, 1e-3, 0.5, 1.9, 30.0, 500.0, 600.0, 1e300])
def test_graded_metrics_are_defined_wherever_a_grade_is_above_zero(grade: float) -> None:
    for metric in ("ndcg", "ndcg_exp", "ndcg_returned"):
        assert value(metric, ["a"], {"a": grade, "b": -grade}) == 1.0
        assert value(metric, ["x", "a"], {"a": grade}) == pytest.approx(0.6309297535714575)


def test_exponential_gains_are_whole_numbers_for_whole_grades() -> None:
    assert value("ndcg_exp@2", ["b", "a"], {"a": 3, "b": 1}) == (1 + 7 / np.log2(3)) / (7 + 1 / np.log2(3))
    assert value("ndcg_exp", ["b", "a"], {"a": 9e-4, "b": 3e-4}) == pytest.approx(0.796707, abs=1e-4)


def test_huge_and_tiny_grades_stay_in_range() -> None:
    assert value("ndcg_exp", ["b", "a"], {"a": 5000.0, "b": 1.0}) == pytest.approx(0.630930, abs=1e-6)
    assert 0 <= value("ndcg", ["b", "a"], {"a": 1e-300, "b": 1e-301}) <= 1
