"""An agent's searches as one session: worked values, edges."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from ragkit.metrics.registry import parse, parse_all
from ragkit.metrics.trajectory import EvidencePath, score_path
from ragkit.records.judgements import Score
from tests.support.laws import paths

WORKED = EvidencePath((("a", "x", "b"), ("x", "a", "y"), ("y", "c", "a")), {"a": 1, "b": 1, "c": 1}, ("a", "c"))


def one(path: EvidencePath, name: str) -> Score:
    score = score_path(path, parse_all(name))[parse(name).name]
    assert isinstance(score, Score)
    return score


@pytest.mark.parametrize(("name", "expected"), [("sdcg@3", 2.5515), ("nsdcg@3", 0.8061), ("overrun", 0)])
def test_worked_value(name: str, expected: float) -> None:
    assert one(WORKED, name).value == pytest.approx(expected, abs=5e-5)


def test_cost_of_each_piece_of_evidence() -> None:
    assert one(replace(WORKED, cost=60.0), "cost_per_evidence").value == 20
    assert one(WORKED, "cost_per_evidence") == Score.undefined("no cost recorded")
    nothing = EvidencePath((("x",),), {"a": 1}, cost=20.0)
    assert one(nothing, "cost_per_evidence") == Score.undefined("no evidence found")
    assert parse("cost_per_evidence").definition.ratio(nothing) == (20.0, 0.0), "its cost counts in the mean"
    assert one(replace(WORKED, cost=0.0), "cost_per_evidence").value == 0, "free is not unknown"


def test_overrun_counts_the_steps_after_the_evidence_was_complete() -> None:
    path = EvidencePath((("a",), ("b",), ("a",), ("x",)), {"a": 1, "b": 1})
    assert one(path, "overrun").value == 2
    assert one(replace(path, gold={"z": 1}), "overrun") == Score.undefined("not reached")


def test_drift_of_the_queries_from_the_question() -> None:
    path = EvidencePath((("a",), ("b",), ("c",)), {}, question="Mayor of Rome",
                        queries=("rome history", "mayor, of ROME?", ""), label_state="unlabelled")
    drifts = score_path(path, parse_all("query_drift"))["query_drift"]
    assert drifts == [Score.scored(0.75), Score.scored(0.0), Score.undefined("no query")], "needs no labels"
    assert score_path(replace(path, queries=()), parse_all("query_drift"))["query_drift"] == (
        [Score.undefined("no query")] * 3)


def test_the_same_document_gains_once_in_the_normalised_session() -> None:
    twice = EvidencePath((("a",), ("a",)), {"a": 1})
    assert one(twice, "sdcg@1").value == pytest.approx(1 + 1 / 1.5)
    assert one(twice, "nsdcg@1").value == 1.0
    copies = EvidencePath((("a", "a"),), {"a": 1, "b": 1})
    assert one(copies, "sdcg@2").value == 1.0, "a later copy in one list gains nothing"


def test_what_stands_below_the_cut_was_not_seen() -> None:
    path = EvidencePath((("x", "a"), ("a",)), {"a": 1})
    assert one(path, "nsdcg@1").value == pytest.approx(1 / 1.5)
    assert one(path, "nsdcg@2").value == pytest.approx(0.6309, abs=5e-5), "gained where it first stood"


def test_grades_weigh_and_the_level_does_not() -> None:
    path = EvidencePath((("a", "b"),), {"a": 1, "b": 3}, level=2)
    assert one(path, "sdcg@2").value == pytest.approx(1 + 3 / 1.58496, abs=1e-5)
    assert one(path, "nsdcg@2").value == pytest.approx((1 + 3 / 1.58496) / (3 + 1 / 1.58496), abs=1e-5)
    assert one(replace(path, gold={"a": 0, "b": -1}), "sdcg@2") == Score.undefined("no relevant document")


def test_a_session_without_steps_gained_nothing() -> None:
    none = EvidencePath((), {"a": 1}, ())
    assert one(none, "sdcg") == one(none, "nsdcg") == Score.scored(0)
    assert one(none, "overrun") == Score.undefined("not reached")


def test_evidence_that_only_the_second_step_found_counts() -> None:
    """Never the steps one after the other, cut at k: there it would stand at rank k + 1."""
    path = EvidencePath((("x1", "x2", "x3"), ("a",)), {"a": 1}, ("x1", "x2", "x3", "a"))
    assert one(path, "nsdcg@3").value == pytest.approx(1 / 1.5)
    assert one(path, "sdcg@3").value == pytest.approx(1 / 1.5)
    assert one(path, "steps_to_evidence").value == 2
    assert one(path, "survival").value == 1
    assert one(path, "aucr@2").value == 0.5


@settings(max_examples=60)
@given(paths())
def test_the_normalised_session_is_one_only_where_nothing_could_be_better(path: EvidencePath) -> None:
    score = one(path, "nsdcg@5")
    if score.value == 1.0:
        found = {name for ids in path.steps for name in ids[:5] if path.gold.get(name, 0) > 0}
        places = 5 * len(path.steps)
        assert len(found) == min(places, sum(grade > 0 for grade in path.gold.values()))
