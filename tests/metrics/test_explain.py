"""The terms of a value are those that it was computed from, for every registered rank metric."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import pytest
from hypothesis import given, settings

from ragkit.errors import DataError
from ragkit.metrics.explain import EXAMPLE, Explanation, Row, Sum, explain
from ragkit.metrics.registry import definitions, parse
from tests.support.laws import RankCase, metrics_of, rank_cases, values

FIRST = "rank of the first relevant document"  # its sum has no cut: mrr@1 is 0 because it stands at 2
GRADED = (("b", "x", "a", "b"), {"b": 2.0, "a": 3.0, "c": 1.0})


@settings(max_examples=15)
@given(rank_cases())
def test_the_value_is_that_of_the_arrays_and_the_terms_add_up(case: RankCase) -> None:
    metrics = metrics_of("ranking")
    for metric, value in zip(metrics, values(metrics, case), strict=True):
        found = explain(metric, case.ids, case.gold, level=case.level)
        assert found.metric == metric.name
        assert found.value == value if not math.isnan(value) else (found.value is None and found.reason)
        for one in found.sums:
            assert one.label, "a sum has a name"
            assert math.fsum(term for _, term in one.terms) == pytest.approx(one.total, rel=1e-12)
            assert [rank for rank, _ in one.terms] == sorted({rank for rank, _ in one.terms})
            cut = math.inf if metric.k is None or one.label == FIRST else metric.k
            assert all(1 <= rank <= cut for rank, _ in one.terms)
        json.dumps(asdict(found), allow_nan=False)


@pytest.mark.parametrize("definition", definitions("ranking"), ids=lambda d: d.name)
def test_every_rank_metric_shows_what_it_added(definition) -> None:  # type: ignore[no-untyped-def]
    cut = "" if definition.cut == "none" else "@5"
    found = explain(parse(definition.name + cut), *EXAMPLE)
    assert found.value is not None
    assert found.sums, "a value without a sum cannot be followed"
    assert any(term for one in found.sums for _, term in one.terms)
    assert found.formula == definition.formula != ""


def sums(name: str, case: tuple[tuple[str, ...], dict[str, float]] = EXAMPLE) -> dict[tuple[str, bool], Sum]:  # type: ignore[assignment]
    return {(one.label, one.ideal): one for one in explain(parse(name), *case).sums}


def rounded(one: Sum) -> list[tuple[int, float]]:
    return [(rank, round(term, 6)) for rank, term in one.terms]


def test_terms_of_ndcg() -> None:
    gain = "grade / log2(rank + 1)"
    found = sums("ndcg@5")
    assert rounded(found[gain, False]) == [(1, 1.0), (3, 0.5)]
    assert rounded(found[gain, True]) == [(1, 1.0), (2, 0.63093), (3, 0.5)]
    assert rounded(sums("ndcg@2")[gain, False]) == [(1, 1.0)]
    assert rounded(sums("ndcg@3", GRADED)[gain, False]) == [(1, 2.0), (3, 1.5)]
    assert rounded(sums("ndcg@3", GRADED)[gain, True]) == [(1, 3.0), (2, 1.26186), (3, 0.5)]
    assert rounded(sums("ndcg", GRADED)[gain, False]) == [(1, 2.0), (3, 1.5), (4, 0.0)], "a copy gains nothing"


def test_terms_of_its_dialects() -> None:
    assert rounded(sums("ndcg_exp@3", GRADED)["(2^grade - 1) / log2(rank + 1)", False]) == [(1, 3.0), (3, 3.5)]
    ideal = sums("ndcg_returned@5")["grade / log2(rank + 1)", True]
    assert [term for term in rounded(ideal) if term[1]] == [(1, 1.0), (2, 0.63093)], "made of what was returned"


def test_terms_of_map_and_precision() -> None:
    assert rounded(sums("map@5")["precision at each relevant document", False]) == [(1, 1.0), (3, 0.666667)]
    assert sums("map@5").keys() != sums("ap_retrieved@5").keys(), "one divides by what was found"
    assert sums("ap_retrieved@5")["relevant documents", False].total == 2.0
    assert rounded(sums("precision@5")["relevant documents", False]) == [(1, 1.0), (3, 1.0)]
    assert sums("precision_returned@10")["documents returned", False].total == 5.0
    assert rounded(sums("mrr", (("x", "a"), {"a": 1.0}))[FIRST, False]) == [(2, 2.0)]
    assert rounded(sums("judged@4", GRADED)["repeated copies", False]) == [(1, 0.0), (3, 0.0), (4, 1.0)]


def test_the_list_and_the_ideal_down_to_the_cut() -> None:
    found = explain(parse("ndcg@2"), *GRADED, level=3)
    assert found.rows == (Row(1, "b", 2.0, False, False), Row(2, "x", None, False, False))
    assert found.ideal == ((1, "a", 3.0), (2, "b", 2.0))
    assert (found.n_relevant, found.n_returned, found.level) == (1, 4, 3.0)
    assert explain(parse("ndcg"), *GRADED).rows[3] == Row(4, "b", 2.0, False, True)


@pytest.mark.parametrize(("name", "ids", "gold", "ranked", "reason"), [
    ("map", ("a",), {"a": 0.0}, True, "no relevant document"), ("map", ("a",), {}, True, "unlabelled"),
    ("map", ("a",), {"a": 1.0}, False, "no order"), ("judged", (), {"a": 1.0}, True, "nothing returned"),
    ("first_relevant_rank", ("x",), {"a": 1.0}, True, "not reached")])
def test_what_is_undefined_has_a_reason_and_no_sums(
        name: str, ids: tuple[str, ...], gold: dict[str, float], ranked: bool, reason: str) -> None:
    found = explain(parse(name), ids, gold, ranked=ranked)
    assert (found.value, found.reason, found.sums) == (None, reason, ())


def test_what_cannot_be_explained_is_said() -> None:
    with pytest.raises(DataError, match="expected a rank metric, got one of kind trajectory"):
        explain(parse("aucr"), *EXAMPLE)
    with pytest.raises(DataError, match="level: expected a grade above 0"):
        explain(parse("map"), *EXAMPLE, level=0)


def test_a_dialect_says_the_numbers_that_it_gives() -> None:
    cases = {"ndcg_exp": (("b", "x", "a"), GRADED[1]), "precision_returned": (("A", "x"), {"A": 1.0}),
             "id_context_precision": (("a", "a", "x"), {"a": 1.0, "b": 1.0}),
             "id_context_recall": (("a", "a", "x"), {"a": 1.0, "b": 1.0})}
    for definition in definitions("ranking"):
        assert bool(definition.dialect_of) == bool(definition.differs), definition.name
        if not definition.dialect_of:
            continue
        cut = "" if definition.cut == "none" else "@3" if definition.name == "ndcg_exp" else "@5"
        for name in (definition.name + cut, parse(definition.dialect_of + cut).name):
            found: Explanation = explain(parse(name), *cases.get(definition.name, EXAMPLE))
            assert f"{name} is {found.value:.6f}".rstrip("0") in definition.differs, definition.differs
