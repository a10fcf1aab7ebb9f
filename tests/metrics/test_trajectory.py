"""Trajectory metrics: worked values, edges, fates, and laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings

from ragkit.errors import DataError
from ragkit.metrics.fates import FATES, fates
from ragkit.metrics.ranking import RankedIds, build_batch, score_arrays
from ragkit.metrics.registry import Metric, definitions, parse, parse_all
from ragkit.metrics.trajectory import EvidencePath, StageList, score_path
from ragkit.records.judgements import Score
from tests.support.laws import paths

WORKED = EvidencePath((("a", "x", "b"), ("x", "a", "y"), ("y", "c", "a")), {"a": 1, "b": 1, "c": 1}, ("a", "c"))
ALL = [Metric(d, k) for d in definitions("trajectory")
       for k in ((d.default_cut,) if d.cut != "optional" else (None, 2))]


def one(path: EvidencePath, name: str) -> Score:
    score = score_path(path, [parse(name)])[parse(name).name]
    assert isinstance(score, Score)
    return score


def series(path: EvidencePath, name: str) -> list[Score]:
    scores = score_path(path, [parse(name)])[name]
    assert isinstance(scores, list)
    return scores


def numbers(scores: list[Score]) -> list[float | None]:
    return [score.value for score in scores]


def test_worked_series() -> None:
    assert numbers(series(WORKED, "cumulative_recall")) == pytest.approx([2 / 3, 2 / 3, 1])
    assert numbers(series(WORKED, "marginal_recall")) == pytest.approx([2 / 3, 0, 1 / 3])
    assert numbers(series(WORKED, "novelty")) == pytest.approx([1, 1 / 3, 1 / 3])


@pytest.mark.parametrize(("name", "expected"), [
    ("aucr@3", 0.7778), ("aucr@5", 0.8667), ("aucr", 0.8667), ("aucr@1", 0.6667), ("steps_to_evidence", 3),
    ("redundancy", 0.4444), ("step_efficiency", 0.6667), ("survival", 0.6667)])
def test_worked_value(name: str, expected: float) -> None:
    assert one(WORKED, name).value == pytest.approx(expected, abs=5e-5)


def test_each_step_is_a_ranking_of_its_own() -> None:
    batch = build_batch([RankedIds("q", step) for step in WORKED.steps], {"q": WORKED.gold})
    assert score_arrays(batch, parse_all("ndcg@3"))[:, 0] == pytest.approx([0.7039, 0.2961, 0.5307], abs=5e-5)


def lifted(*lists: StageList, gold: Mapping[str, float] | None = None) -> EvidencePath:
    return EvidencePath((lists[0].ids,), gold or {"a": 1, "b": 1}, stages=(lists,))


RERANKED = lifted(StageList("rerank", ("a", "b")), StageList("retrieve", ("x", "a", "y", "b")))


@pytest.mark.parametrize(("name", "expected"), [("rerank_lift@4", 0.3491), ("rerank_lift@2", 0.6131),
                                                ("rerank_lift_mrr", 0.5)])
def test_rerank_lift(name: str, expected: float) -> None:
    assert one(RERANKED, name).value == pytest.approx(expected, abs=5e-5)


def test_a_reranker_that_hurts_is_below_zero() -> None:
    path = lifted(StageList("rerank", ("x", "a")), StageList("retrieve", ("a", "x")), gold={"a": 1})
    assert one(path, "rerank_lift_mrr").value == -0.5


def test_rerank_lift_averages_the_steps_that_rerank() -> None:
    plain = (StageList("retrieve", ("a",)),)
    cut_after = (StageList("filter", ("a",)), StageList("rerank", ("a", "b")), StageList("fuse", ("x", "a", "y", "b")))
    path = EvidencePath((("a", "b"), ("a",), ("a",), ()), {"a": 1, "b": 1}, errors=(False, False, False, True),
                        stages=(RERANKED.stages[0], plain, cut_after, RERANKED.stages[0]))
    assert one(path, "rerank_lift@4").value == pytest.approx(one(RERANKED, "rerank_lift@4").value)


def test_without_a_reranker() -> None:
    assert one(WORKED, "rerank_lift").reason == "no re-ranker"
    assert one(lifted(StageList("rerank", ("a",))), "rerank_lift").reason == "no re-ranker", "nothing beneath it"


def test_rerank_lift_reads_grades_below_the_level() -> None:
    path = replace(RERANKED, gold={"a": 0.5, "b": 0.2})
    assert one(path, "rerank_lift").status == "scored"
    assert one(path, "rerank_lift_mrr").reason == "no relevant document"
    assert one(replace(RERANKED, gold={"a": 0}), "rerank_lift").reason == "no relevant document"


def test_an_agent_that_never_searched() -> None:
    path = EvidencePath((), {"a": 1}, ())
    scores = score_path(path, ALL)
    assert scores["aucr@5"] == Score.scored(0)
    assert scores["steps_to_evidence"] == Score.undefined("not reached")
    assert scores["step_efficiency"] == Score.undefined("no step")
    assert scores["redundancy"] == Score.undefined("nothing returned")
    assert scores["survival"] == Score.undefined("no evidence found")
    assert scores["cumulative_recall"] == scores["novelty"] == []


def test_an_empty_step_and_a_failed_step() -> None:
    path = EvidencePath((("a",), (), ("b",)), {"a": 1, "b": 1}, ("a",), errors=(False, False, True))
    failed = Score.failed("step failed")
    assert series(path, "cumulative_recall") == [Score.scored(0.5), Score.scored(0.5), Score.scored(1)]
    assert series(path, "novelty") == [Score.scored(1), Score.undefined("nothing returned"), failed]
    assert series(path, "marginal_recall")[2] == failed
    wasted = EvidencePath((("a",), ()), {"a": 1}, errors=(False, True))
    assert one(wasted, "step_efficiency").value == 0.5, "an error step is a wasted step"


@pytest.mark.parametrize(("change", "reason"), [
    ({"gold": {}}, "no relevant document"), ({"gold": {"a": 0, "b": -1}}, "no relevant document"),
    ({"label_state": "unanswerable"}, "declared unanswerable"), ({"label_state": "unlabelled"}, "unlabelled")])
def test_without_gold_all_is_undefined(change: dict[str, object], reason: str) -> None:
    asked = [m for m in ALL if m.definition.needs_gold and not m.name.startswith("rerank_lift")]
    scores = score_path(replace(WORKED, **change), asked)
    assert {s.reason for score in scores.values() for s in (score if isinstance(score, list) else [score])} == {reason}
    assert len(series(replace(WORKED, **change), "novelty")) == 3


def test_level_chooses_the_gold() -> None:
    path = EvidencePath((("a",),), {"a": 1, "b": 2}, ("a",), level=2)
    assert one(path, "steps_to_evidence").reason == "not reached"
    assert list(fates(path)) == ["b"]


def test_survival_of_an_unknown_context_is_unknown() -> None:
    assert one(replace(WORKED, context=None), "survival").reason == "context unknown"
    assert one(replace(WORKED, context=()), "survival").value == 0
    assert one(replace(WORKED, context=("a", "b", "c", "z")), "survival").value == 1


def test_a_path_must_fit_its_steps() -> None:
    with pytest.raises(DataError, match="expected errors of 3 steps, got 1"):
        replace(WORKED, errors=(True,))
    with pytest.raises(DataError, match="expected stages of 3 steps, got 1"):
        replace(WORKED, stages=((StageList("other", ()),),))
    with pytest.raises(DataError, match="level"):
        replace(WORKED, level=0)
    with pytest.raises(DataError, match="expected a trajectory metric, got one of kind ranking"):
        score_path(WORKED, parse_all("ndcg"))


@settings(max_examples=60)
@given(paths())
def test_what_adds_up(path: EvidencePath) -> None:
    scores = score_path(path, ALL)
    assert set(scores) == {metric.name for metric in ALL}
    for metric in ALL:
        assert isinstance(scores[metric.name], list) == metric.definition.series
    ended = fates(path)
    assert set(ended) == {i for i, grade in path.gold.items() if grade >= path.level}, "they add up to |G|"
    assert set(ended.values()) <= set(FATES)
    if path.relevant and path.steps and not any(path.errors):
        gained = sum(score.value or 0 for score in series(path, "marginal_recall"))
        assert gained == pytest.approx(series(path, "cumulative_recall")[-1].value)


def test_a_lift_without_a_cut_does_not_blame_the_cut() -> None:
    lists = (StageList("rerank", ("a", "b")), StageList("retrieve", ("x", "a", "y", "b")))
    path = EvidencePath(steps=(("a", "b"),), gold={"a": 1.0, "b": 1.0}, stages=(lists,))
    names = parse_all("rerank_lift,rerank_lift@2,rerank_lift@4")
    found = score_path(path, names)
    assert [round(found[name].value, 4) for name in ("rerank_lift", "rerank_lift@2", "rerank_lift@4")] == [  # type: ignore[union-attr,arg-type]
        0.6131, 0.6131, 0.3491]
    same = (StageList("rerank", ("x", "a")), StageList("retrieve", ("x", "a", "y", "b")))
    kept = score_path(EvidencePath(steps=(("x", "a"),), gold={"a": 1.0, "b": 1.0}, stages=(same,)), names)
    assert kept["rerank_lift"] == Score.scored(0.0)
